"""How tensors are taken apart into samples, rows and units."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from endoscope.schema.stats import UNIT_CAP
from endoscope.stats.geometry import arranged, batch_axis, unit_axes
from endoscope.stats.kernels import COLUMNS, NO_UNITS, RUNS


@pytest.mark.parametrize(
    ("shape", "batch_dim", "axis"),
    [((3, 4), None, None), ((3, 4), 0, 0), ((3, 4), 1, 1), ((3, 4), -1, 1), ((3, 4), 2, None), ((), 0, None)],
)
def test_the_batch_axis(shape: tuple[int, ...], batch_dim: int | None, axis: int | None) -> None:
    assert batch_axis(shape, batch_dim) == axis


@pytest.mark.parametrize(
    ("shape", "batch", "axes"),
    [
        ((128, 512), 0, (1,)),
        ((128, 512), 1, (0,)),
        ((16, 8, 512), 0, (1, 2)),  # exactly the cap
        ((16, 9, 512), 0, (2,)),  # above it: the last dimension
        ((9, 16, 512), 1, (2,)),
        ((16, 64, 28, 28), 0, (1,)),  # images: channels
        ((64, 16, 28, 28), 1, (3,)),
        ((16, 64, 4, 4), 0, (1, 2, 3)),
        ((16, UNIT_CAP + 1), 0, ()),
        ((16, UNIT_CAP + 1, 2, 2), 0, ()),
        ((16,), 0, ()),
        ((16, 5), None, ()),
        ((0, 5), 0, ()),
    ],
)
def test_the_axes_of_units(shape: tuple[int, ...], batch: int | None, axes: tuple[int, ...]) -> None:
    assert unit_axes(shape, batch) == axes


@pytest.mark.parametrize(
    ("tensor", "batch", "dense", "kind"),
    [
        (torch.zeros(8, 6), 0, True, COLUMNS),
        (torch.zeros(8, 6), None, True, NO_UNITS),
        (torch.zeros(6, 8).t(), None, True, NO_UNITS),  # a transposed matrix is one dense piece
        (torch.zeros(6, 8).t(), 0, False, COLUMNS),
        (torch.zeros(8, 10)[:, :6], 0, True, COLUMNS),
        (torch.zeros(8, 10)[:, ::2], 0, False, COLUMNS),
        (torch.zeros(8, 10, 4, 64).transpose(1, 2), 0, True, COLUMNS),  # heads of attention
        (torch.zeros(8, 40, 4, 64).transpose(1, 2), 0, False, RUNS),  # one unit for each head
        (torch.zeros(8, 16, 33, 31), 0, True, RUNS),
        (torch.zeros(8, 16, 33, 31).contiguous(memory_format=torch.channels_last), 0, True, COLUMNS),
        (torch.zeros(1).expand(8, 6), 0, False, COLUMNS),
        (torch.zeros(64, 8, 256), 1, False, COLUMNS),
    ],
)
def test_what_is_dense(tensor: torch.Tensor, batch: int | None, dense: bool, kind: int) -> None:
    how = arranged(tensor.shape, tensor.stride(), batch, True)
    assert (how.dims == ()) is dense
    assert how.unit_kind == kind


@given(st.lists(st.integers(1, 20), max_size=5).map(tuple), st.booleans(), st.booleans())
def test_without_strides_a_tensor_is_contiguous(shape: tuple[int, ...], has_batch: bool, units: bool) -> None:
    batch = 0 if has_batch and shape else None
    assert arranged(shape, None, batch, units) == arranged(shape, torch.empty(shape).stride(), batch, units)
