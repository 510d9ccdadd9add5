"""Which bytes a tensor covers: every answer against plain sets of byte numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from endoscope.capture.record import regions
from endoscope.capture.record.regions import Region, overlaps, region_of, storage_key, visible

DTYPES = (torch.float32, torch.int16, torch.uint8, torch.complex64)
MEMORY = torch.zeros(640, dtype=torch.uint8)


def bytes_of(tensor: Tensor) -> set[int]:
    """Every byte of the storage that the tensor covers, element by element."""
    size = tensor.element_size()
    found: set[int] = set()
    for index in itertools.product(*map(range, tensor.shape)):
        place = tensor.storage_offset() + sum(i * s for i, s in zip(index, tensor.stride(), strict=True))
        found.update(range(place * size, (place + 1) * size))
    return found


def last_writers(tensor: Tensor, writes: Sequence[Tensor]) -> list[int | None]:
    """Of whom something is still seen through the tensor; None, in front, for bytes that nobody wrote."""
    owner: dict[int, int] = {}
    for number, write in enumerate(writes):
        owner.update(dict.fromkeys(bytes_of(write), number))
    return sorted({owner.get(byte) for byte in bytes_of(tensor)}, key=lambda number: -1 if number is None else number)


@st.composite
def tensors(draw: st.DrawFn, least: int = 0) -> Tensor:
    """Strided looks at one memory: gaps, overlaps, repeated elements, single elements, nothing at all."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(least, 3), max_size=3))
    strides = [draw(st.integers(0, 7)) for _ in shape]
    offset = draw(st.integers(0, 20))
    memory = MEMORY.view(dtype)
    return memory.as_strided(shape, strides, offset)


@given(tensors())
def test_a_region_knows_its_bounds(tensor: Tensor) -> None:
    region, covered = region_of(tensor), bytes_of(tensor)
    assert region.empty == (not covered)
    if covered:
        assert (region.start, region.stop) == (min(covered), max(covered) + 1)
        assert not region.dense or len(covered) == region.stop - region.start


@given(tensors(), tensors())
def test_overlap_is_a_common_byte(a: Tensor, b: Tensor) -> None:
    expected = bool(bytes_of(a) & bytes_of(b))
    assert overlaps(region_of(a), region_of(b)) is expected
    assert overlaps(region_of(b), region_of(a)) is expected


@given(tensors(least=1), st.lists(tensors(least=1), max_size=5))
def test_visible_writes_are_those_that_wrote_a_byte_last(tensor: Tensor, writes: list[Tensor]) -> None:
    assert visible(region_of(tensor), [region_of(w) for w in writes]) == last_writers(tensor, writes)


@given(tensors(least=1), st.lists(tensors(), min_size=1, max_size=4))
def test_empty_writes_change_nothing(tensor: Tensor, writes: list[Tensor]) -> None:
    assert visible(region_of(tensor), [region_of(w) for w in writes]) == last_writers(tensor, writes)


@given(st.lists(tensors(), max_size=4))
def test_through_nothing_no_write_is_seen(writes: list[Tensor]) -> None:
    assert visible(region_of(MEMORY[5:5]), [region_of(w) for w in writes]) == [None]


@given(tensors(least=1), st.integers(0, 4))
def test_the_same_region_written_again_hides_all_before(tensor: Tensor, times: int) -> None:
    region = region_of(tensor)
    assert visible(region, [region] * times) == ([times - 1] if times else [None])


def test_above_a_size_the_answer_is_the_safe_one(monkeypatch: pytest.MonkeyPatch) -> None:
    even, odd = MEMORY[::2], MEMORY[1::2]
    assert not overlaps(region_of(even), region_of(odd))
    assert visible(region_of(even), [region_of(odd)]) == [None]
    monkeypatch.setattr(regions, "EXACT_UNITS", 10)
    assert overlaps(region_of(even), region_of(odd))
    assert visible(region_of(even), [region_of(odd)]) == [None, 0]


def test_large_strided_regions_are_compared_in_units_not_bytes() -> None:
    """A whole megabyte as columns of eight bytes: cheap, because one unit is as large as the layout allows."""
    table = torch.zeros(1 << 10, 1 << 7, dtype=torch.float64)
    assert not overlaps(region_of(table[:, ::2]), region_of(table[:, 1::2]))
    assert overlaps(region_of(table[:, ::2]), region_of(table[:, 2:3]))


def test_a_region_is_one_tuple_of_numbers() -> None:
    base = torch.zeros(3, 4)
    assert region_of(base.t()) == Region(0, 48, (4, 3, 4), (4, 16, 1), True)
    assert region_of(base[1]) == Region(16, 32, (4, 4), (4, 1), True)
    assert region_of(base[:, 1]) == Region(4, 40, (3, 4), (16, 1), False)
    assert region_of(base[0].expand(5, 4)) == region_of(base[0])


def test_the_key_is_that_of_the_storage() -> None:
    base = torch.zeros(3, 4)
    assert (
        storage_key(base) == storage_key(base[1]) == storage_key(base.detach()) == storage_key(base.view(torch.int32))
    )
    assert storage_key(base) != storage_key(base.clone())
    assert storage_key(base.to_sparse()) is None


def test_a_nested_tensor_covers_its_storage() -> None:
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    region = region_of(nested)
    assert (region.start, region.stop) == (0, nested.untyped_storage().nbytes())
