"""Storages shared by several tensors: who must be copied before a write, who depends on it afterwards.

    before an in-place call   Aliasing.before_write(tensors)   copies kept values that are about to be lost
    after it                  Aliasing.after_write(...)        notes the write for every other tensor on that storage
    when a tensor is read     Aliasing.readers[id(tensor)]     says that more than its producer is seen through it

Tensors are indexed by storage only when the first write (or a stranger) makes it necessary, and then each tensor
once, so a model without in-place operations pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from endoscope.capture.data.nodes import Read, slots_of
from endoscope.capture.record.parts import part_of
from endoscope.capture.record.regions import (
    Region,
    is_alone,
    overlaps,
    region_of,
    storage_key,
    version_of,
    visible,
)


@dataclass(slots=True)
class Overwritten:
    """A tensor whose memory was written through another tensor since it was made."""

    base: int  # the slot that made the tensor
    region: Region
    slots: list[int] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    answer: Read | None = None

    def read(self) -> Read:
        if self.answer is None:
            self.answer = self.read_part(self.region)
        return self.answer

    def read_part(self, part: Region) -> Read:
        """What is seen of a part of the tensor: a view taken of it sees only what was written there."""
        slots = [self.base if i is None else self.slots[i] for i in visible(part, self.regions)]
        # A tuple even for one: that value lies in the same memory, but maybe in another shape.
        return self.base if slots == [self.base] else tuple(slots)


@dataclass(slots=True)
class _Member:
    """A living tensor on a storage."""

    reference: Any
    region: Region | None
    latest: int  # the slot it holds now
    uncopied: list[int] = field(default_factory=list)  # slots whose value is still read from it


class Aliasing:
    """The tensors of one trace, by storage."""

    def __init__(self, ids: dict[int, int], objects: list[Any], held: bool) -> None:
        self._ids = ids
        self._objects = objects
        self._held = held  # `objects` are tensors, not weak references
        self._indexed = 0
        self._by_storage: dict[int, dict[int, _Member]] = {}  # storage -> id of tensor -> who
        self._homes: dict[int, int] = {}  # id of tensor -> storage
        self._versions: dict[int, set[int]] = {}  # storage -> where recorded writes left its version counters
        self.readers: dict[int, Overwritten] = {}  # id of tensor -> what was written behind it
        self.has_wrappers = False  # of two objects for one memory neither knows of the other

    def _dereference(self, reference: Any) -> Any:
        return reference if self._held else reference()

    def index(self) -> None:
        """Take in the tensors that were made since the last time."""
        self._take_in(range(self._indexed, len(self._objects)))
        self._indexed = len(self._objects)

    def _take_in(self, slots: range) -> None:
        for slot in slots:
            tensor = self._dereference(self._objects[slot])
            if tensor is not None:
                key = storage_key(tensor)
                old = self._homes.get(id(tensor))
                if old is not None and old != key:  # moved by `x.data = y`, or a dead tensor's number
                    self._by_storage.get(old, {}).pop(id(tensor), None)
                if key is not None:
                    self._homes[id(tensor)] = key
                    members = self._by_storage.setdefault(key, {})
                    member = members.get(id(tensor))
                    if member is None or self._dereference(member.reference) is not tensor:
                        member = members[id(tensor)] = _Member(self._objects[slot], None, slot)
                    member.region = None  # worked out when a neighbour is written
                    member.latest = slot
                    member.uncopied.append(slot)

    def neighbours(self, tensor: torch.Tensor) -> Iterable[tuple[int, torch.Tensor]]:
        """Living tensors that use the storage of `tensor` (itself included), with their latest slots."""
        return [(member.latest, other) for member, other in self._members(tensor)]

    def _members(self, tensor: torch.Tensor, within: Region | None = None) -> list[tuple[_Member, torch.Tensor]]:
        """Living tensors on a storage; with `within`, not those that clearly lie elsewhere."""
        key = storage_key(tensor)
        self.index()
        if key is None:
            slot = self._ids.get(id(tensor))
            return [] if slot is None else [(_Member(tensor, None, slot, [slot]), tensor)]
        alive = []
        members = self._by_storage.get(key, {})
        for identity, member in list(members.items()):
            region = member.region
            if (
                within is not None
                and region is not None
                and (region.start >= within.stop or region.stop <= within.start)
            ):
                continue
            other = self._dereference(member.reference)
            if other is None:
                del members[identity]
                continue
            if region is None and other is not tensor:
                member.region = region_of(other)
            alive.append((member, other))
        return alive

    def before_write(self, tensors: list[torch.Tensor], copy: Callable[[list[int], torch.Tensor], None]) -> None:
        """Call `copy(slots, tensor)` for every value that the coming write would destroy."""
        for tensor in tensors:
            alone = len(self._by_storage.get(self._key_after_index(tensor), ())) <= 1
            written = None if alone or storage_key(tensor) is None else region_of(tensor)
            for member, other in self._members(tensor, written):
                if other is tensor or written is None or _hit(member, written):
                    copy(member.uncopied, other)
                    member.uncopied = []

    def _key_after_index(self, tensor: torch.Tensor) -> int:
        key = storage_key(tensor)
        self.index()
        return 0 if key is None else key

    def let_go(self, tensor: torch.Tensor) -> list[int]:
        """Slots whose value is still read from `tensor`; the caller takes care of them from here on."""
        for member, other in self._members(tensor):
            if other is tensor:
                slots, member.uncopied = member.uncopied, []
                return slots
        return []

    def after_write(self, tensor: torch.Tensor, slot: int, moved: bool = False) -> None:
        """`tensor` holds the result of `slot` now; who shares its memory sees it, unless only `tensor` has moved."""
        self.readers.pop(id(tensor), None)
        key = storage_key(tensor)
        if key is None:
            return
        self._versions.setdefault(key, set()).add(version_of(tensor))
        self.index()
        if moved or len(self._by_storage.get(key, ())) <= 1:
            return  # nobody else is on this storage
        written = region_of(tensor)
        for member, other in self._members(tensor, written):
            if other is tensor or not _hit(member, written):
                continue
            assert member.region is not None
            note = self.readers.get(id(other))
            if note is None:
                note = self.readers[id(other)] = Overwritten(member.latest, member.region)
            note.slots.append(slot)
            note.regions.append(written)
            note.answer = None

    def explains(self, tensor: torch.Tensor, version: int) -> bool:
        """Whether a version counter stands where recorded writes left it.

        Tensors on one storage share the counter, so a write beside this tensor moves it as well.
        """
        now = version_of(tensor)
        return now == version or (bool(self._versions) and now in self._versions.get(storage_key(tensor) or 0, ()))

    def renew(self, tensor: torch.Tensor) -> None:
        """The counter moved for a reason that is known."""
        key = storage_key(tensor)
        if key is not None:
            self._versions.setdefault(key, set()).add(version_of(tensor))

    def narrow(self, tensor: torch.Tensor, read: Read, results: list[torch.Tensor]) -> Read:
        """What an operation saw of `tensor` if all that it returned are views of it."""
        note = self.readers.get(id(tensor))
        key = storage_key(tensor)
        if note is None or key is None or any(storage_key(result) != key for result in results):
            return read
        parts = [note.read_part(region_of(result)) for result in results]
        slots = {slot for part in parts for slot in slots_of(part)}
        return note.base if slots == {note.base} else tuple(sorted(slots))

    def adopt(self, stranger: torch.Tensor) -> tuple[Read | None, bool]:
        """What is seen through a tensor that nobody announced but whose memory is known, and whether that is all."""
        if not self.has_wrappers and is_alone(stranger):
            return None, False
        family = sorted(self.neighbours(stranger), key=lambda member: member[0])
        if not family or storage_key(stranger) is None:
            return None, False
        region = region_of(stranger)
        twins = [(slot, t) for slot, t in family if region_of(t) == region and _same_layout(t, stranger)]
        if twins:
            slot, twin = twins[-1]
            note = self.readers.get(id(twin))
            return (note.read() if note else slot), True
        seen = visible(region, [region_of(t) for _, t in family])
        slots: set[int] = set()
        for index in seen:
            if index is not None:
                slot, tensor = family[index]
                note = self.readers.get(id(tensor))
                read = note.read_part(region) if note else slot
                slots.update(slots_of(read))
        return (tuple(sorted(slots)) if slots else None), None not in seen

    def overlay(self, tensor: torch.Tensor, base: int, slots: tuple[int, ...]) -> Read:
        """`tensor` is new in `base`, but parts of its memory were known before as these slots."""
        note = self.readers[id(tensor)] = Overwritten(base, region_of(tensor))
        for slot in slots:
            other = self._dereference(self._objects[slot])
            if other is not None:
                note.slots.append(slot)
                note.regions.append(region_of(other))
        return note.read()


def _hit(member: _Member, written: Region) -> bool:
    return member.region is None or overlaps(member.region, written)


def _same_layout(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.is_nested or b.is_nested:
        return False
    a, b = part_of(a), part_of(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride()
