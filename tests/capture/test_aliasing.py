"""Storages shared by several tensors: what must be copied before a write, what is seen after it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

from endoscope.capture.data.nodes import Read
from endoscope.capture.record.aliasing import Aliasing


class Ledger:
    """The least that a recorder does around `Aliasing`: one slot per value."""

    def __init__(self, held: bool = True) -> None:
        self.held = held
        self.ids: dict[int, int] = {}
        self.objects: list[Any] = []
        self.aliasing = Aliasing(self.ids, self.objects, held)
        self.copied: list[int] = []
        self.versions: list[int] = []

    def new(self, tensor: Tensor) -> int:
        slot = len(self.objects)
        self.ids[id(tensor)] = slot
        self.objects.append(tensor if self.held else weakref.ref(tensor))
        self.versions.append(tensor._version)
        self.aliasing.readers.pop(id(tensor), None)
        return slot

    def write(self, tensor: Tensor) -> int:
        """Announce, write and note an in-place change; returns its slot."""
        self.copied = []
        self.aliasing.before_write([tensor], lambda slots, _: self.copied.extend(slots))
        tensor.add_(1)
        slot = self.new(tensor)
        self.aliasing.after_write(tensor, slot)
        return slot

    def is_explained(self, slot: int) -> bool:
        """The version counter of its tensor stands where it should."""
        return self.aliasing.explains(self.objects[slot], self.versions[slot])

    def read(self, tensor: Tensor) -> Read:
        note = self.aliasing.readers.get(id(tensor))
        return note.read() if note else self.ids[id(tensor)]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def test_without_writes_nothing_is_indexed(ledger: Ledger) -> None:
    ledger.new(torch.zeros(3))
    assert not ledger.aliasing.readers
    assert not ledger.aliasing._by_storage


def test_a_write_through_a_view_is_seen_through_the_base(ledger: Ledger) -> None:
    base = torch.zeros(3, 4)
    row = base[0]
    made, viewed = ledger.new(base), ledger.new(row)
    written = ledger.write(row)
    assert sorted(ledger.copied) == [made, viewed]
    assert ledger.read(base) == (made, written)
    assert ledger.read(row) == written


def test_a_write_to_the_base_is_all_that_a_view_sees(ledger: Ledger) -> None:
    base = torch.zeros(3, 4)
    row = base[0]
    ledger.new(base), ledger.new(row)
    written = ledger.write(base)
    assert ledger.read(row) == (written,)
    assert ledger.read(base) == written


def test_a_neighbour_that_was_not_hit_is_neither_copied_nor_changed(ledger: Ledger) -> None:
    base = torch.zeros(3, 4)
    first, last = base[0], base[2]
    for tensor in (base, first, last):
        ledger.new(tensor)
    ledger.write(first)
    assert ledger.ids[id(last)] not in ledger.copied
    assert ledger.is_explained(ledger.ids[id(last)])
    assert ledger.read(last) == ledger.ids[id(last)]


def test_every_value_of_an_untouched_neighbour_is_still_good(ledger: Ledger) -> None:
    """A tensor that two operations returned (`contiguous()` gives the same object back) holds two values."""
    base = torch.zeros(3, 4)
    first, last = base[0], base[2]
    ledger.new(base), ledger.new(first)
    slots = [ledger.new(last), ledger.new(last)]
    ledger.write(first)
    assert all(map(ledger.is_explained, slots))


def test_a_write_that_was_not_announced_is_not_explained(ledger: Ledger) -> None:
    base = torch.zeros(3)
    slot = ledger.new(base)
    assert ledger.is_explained(slot)
    base.add_(1)
    assert not ledger.is_explained(slot)


def test_a_value_is_copied_once(ledger: Ledger) -> None:
    base = torch.zeros(3)
    made = ledger.new(base)
    first = ledger.write(base)
    assert ledger.copied == [made]
    second = ledger.write(base)
    assert ledger.copied == [first]
    assert ledger.read(base) == second


def test_writes_lie_over_each_other_in_order(ledger: Ledger) -> None:
    base = torch.zeros(4)
    parts = [base[:2], base[1:3], base[2:]]
    for tensor in (base, *parts):
        ledger.new(tensor)
    writes = [ledger.write(part) for part in parts]
    assert ledger.read(base) == tuple(writes)
    again = ledger.write(parts[1])
    assert ledger.read(base) == (writes[0], writes[2], again)
    whole = ledger.write(base.view(2, 2))
    assert ledger.read(base) == (whole,)


def test_another_storage_is_nobodys_business(ledger: Ledger) -> None:
    base, other = torch.zeros(3), torch.zeros(3)
    ledger.new(base), ledger.new(other)
    ledger.write(base)
    assert ledger.read(other) == ledger.ids[id(other)]
    assert ledger.ids[id(other)] not in ledger.copied


def test_a_new_value_of_the_same_object_starts_afresh(ledger: Ledger) -> None:
    base = torch.zeros(3, 4)
    row = base[0]
    ledger.new(base), ledger.new(row)
    ledger.write(row)
    assert isinstance(ledger.read(base), tuple)
    whole = ledger.write(base)
    assert ledger.read(base) == whole


def test_views_of_what_was_overwritten_in_part(ledger: Ledger) -> None:
    base = torch.zeros(3, 4)
    row = base[0]
    made, _ = ledger.new(base), ledger.new(row)
    written = ledger.write(row)
    narrow, read = ledger.aliasing.narrow, ledger.read(base)
    assert narrow(base, read, [base[2]]) == made
    assert narrow(base, read, [base[0]]) == (written,)
    assert narrow(base, read, [base[:, 1]]) == (made, written)
    assert narrow(base, read, [base[0], base[2]]) == (made, written)
    assert narrow(base, read, [base[0].clone()]) == read


def test_a_stranger_over_known_memory(ledger: Ledger) -> None:
    base = torch.zeros(3, 4)
    row = base[0]
    made, _ = ledger.new(base), ledger.new(row)
    adopt = ledger.aliasing.adopt
    assert adopt(base.detach()) == (made, True)
    assert adopt(torch.zeros(3)) == (None, False)
    written = ledger.write(row)
    assert adopt(base.detach()) == ((made, written), True)
    assert adopt(base[0].detach()) == (written, True)
    assert adopt(base[2])[1]


def test_a_stranger_of_which_only_a_part_is_known(ledger: Ledger) -> None:
    base = torch.zeros(3, 4)
    row = base[0]
    slot = ledger.new(row)
    assert ledger.aliasing.adopt(base) == ((slot,), False)


def test_dead_tensors_leave_their_writes_behind() -> None:
    ledger = Ledger(held=False)
    base = torch.zeros(3, 4)
    row = base[0]
    made, _ = ledger.new(base), ledger.new(row)
    written = ledger.write(row)
    del row
    gc.collect()
    assert ledger.read(base) == (made, written)
    assert [slot for slot, _ in ledger.aliasing.neighbours(base)] == [made]


def test_a_tensor_that_moved_to_another_storage_is_no_neighbour(ledger: Ledger) -> None:
    base = torch.zeros(3)
    other = base.detach()
    ledger.new(base), ledger.new(other)
    ledger.aliasing.index()
    other.data = torch.ones(3)
    ledger.new(other)
    assert [t is base for _, t in ledger.aliasing.neighbours(base)] == [True]


def test_without_a_storage_a_tensor_stands_alone(ledger: Ledger) -> None:
    sparse = torch.eye(3).to_sparse()
    slot = ledger.new(sparse)
    copied: list[int] = []
    ledger.aliasing.before_write([sparse], lambda slots, _: copied.extend(slots))
    assert copied == [slot]


def test_a_stranger_in_known_memory_of_which_it_sees_nothing(ledger: Ledger) -> None:
    data, known = torch.arange(12.0), torch.zeros(4)
    ledger.new(known)
    assert ledger.aliasing.adopt(data[4:]) == (None, False)
    part = ledger.new(data[:2])
    assert ledger.aliasing.adopt(data[4:]) == (None, False)  # in the same memory, and yet nothing of it is seen
    assert ledger.aliasing.adopt(data[:2]) == (part, True) or not ledger.held  # a tensor that is not held is gone
