"""Which bytes of a storage a tensor covers, and who wrote them last.

A region is a strided box of bytes. Two questions are asked of regions: do two overlap (then one must be copied
before the other is overwritten), and of several writes, which are still visible through a given tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import torch

from endoscope.capture.patch.torch_private import get_unwrapped as _get_unwrapped
from endoscope.capture.patch.torch_private import is_wrapped as _is_wrapped
from endoscope.capture.patch.torch_private import storage_users as _use_count
from endoscope.capture.record.parts import PLAIN as _PLAIN
from endoscope.capture.record.parts import part_of

#: Above this many units exact answers give way to the safe one ("overlaps", "still visible").
EXACT_UNITS = 1 << 24


class Region(NamedTuple):
    """Bytes of one storage: start, then one (count, stride) per dimension, innermost the item itself."""

    start: int
    stop: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    dense: bool

    @property
    def empty(self) -> bool:
        return self.start == self.stop


def storage_key(tensor: torch.Tensor) -> int | None:
    """A number that identifies the memory while it lives; None where there is none (sparse, wrappers).

    The address, so that tensors made from numpy or dlpack over the same memory are known as relatives.
    """
    try:
        tensor = unwrapped(tensor)
        storage = tensor.untyped_storage()
    except (RuntimeError, NotImplementedError, AttributeError, ValueError):
        return None
    # A subclass that answers torch's dispatcher itself may have no memory of its own.
    has_memory = tensor.__class__ in _PLAIN or type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    return (storage.data_ptr() if has_memory else 0) or int(storage._cdata)


def is_alone(tensor: torch.Tensor) -> bool:
    """Whether certainly no other tensor lies in the same memory; False if that would have to be looked up."""
    if _use_count is None or tensor.__class__ not in _PLAIN or _is_wrapped(tensor):
        return False
    try:
        storage = tensor.untyped_storage()
        # Memory that numpy or dlpack owns may be in several storages. Of the two users one is `storage` itself.
        return storage.resizable() and _use_count(storage._cdata) == 2
    except (RuntimeError, NotImplementedError):
        return False


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Inside `vmap` and `grad` tensors are wrappers that die with the transform; the tensor inside stays.

    Of a distributed tensor, the part that is in this process has the memory.
    """
    while _is_wrapped(tensor):
        tensor = _get_unwrapped(tensor)
    return tensor if tensor.__class__ in _PLAIN else part_of(tensor)


def version_of(tensor: torch.Tensor) -> int:
    """How often the tensor's memory was written; -1 for inference tensors, which do not count.

    What writes into a distributed tensor counts there, or at the part that is in this process.
    """
    try:
        version = int(tensor._version)
        if tensor.__class__ not in _PLAIN:
            part = part_of(tensor)
            version += 0 if part is tensor else int(part._version)
        return version
    except RuntimeError:
        return -1


VERSION = attrgetter("_version")


def versions_of(tensors: Sequence[torch.Tensor]) -> list[int]:
    """The same for several, without a turn in Python for each."""
    if not _ORDINARY.issuperset(map(type, tensors)):
        return list(map(version_of, tensors))
    try:
        return list(map(VERSION, tensors))
    except RuntimeError:
        return list(map(version_of, tensors))


_UNINITIALISED = (torch.nn.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)
_ORDINARY = frozenset(_PLAIN)


def is_uninitialised(tensor: torch.Tensor) -> bool:
    """A parameter or buffer of a lazy module that has no shape yet."""
    return tensor.__class__ in _UNINITIALISED  # isinstance would run Python code of Parameter's metaclass


def region_of(tensor: torch.Tensor) -> Region:
    tensor = unwrapped(tensor)
    item = tensor.element_size()
    try:
        strides = tensor.stride()
        offset = int(tensor.storage_offset())
    except RuntimeError:  # nested tensors have no strides: they own their storage whole
        return _whole_storage(tensor)
    counts: list[int] = []
    byte_strides: list[int] = []
    extent, numel = 0, 1
    for count, stride in zip(tensor.shape, strides, strict=True):
        numel *= count
        if count == 1 or stride == 0:
            continue
        counts.append(count)
        byte_strides.append(stride * item)
        extent += (count - 1) * stride * item
    start = offset * item
    if numel == 0:
        return Region(start, start, (), (), True)
    stop = start + extent + item
    dense = math.prod(counts) * item == stop - start
    return Region(start, stop, (*counts, item), (*byte_strides, 1), dense)


def _whole_storage(tensor: torch.Tensor) -> Region:
    size = tensor.untyped_storage().nbytes()
    return Region(0, size, (size,), (1,), True)


def overlaps(a: Region, b: Region) -> bool:
    """True if a byte belongs to both (exact up to a size, then the safe answer)."""
    if a.empty or b.empty or a.start >= b.stop or b.start >= a.stop:
        return False
    if a.dense and b.dense:
        return True
    canvas = _canvas([a, b])
    if canvas is None:
        return True
    return bool(canvas.paint(a, 1).view(b).any())


def visible(region: Region, writes: Sequence[Region]) -> list[int | None]:
    """Numbers of the writes (oldest first) of which at least one byte is still seen through `region`.

    None, in front, stands for bytes that none of the writes touched.
    """
    if region.empty:
        return [None]
    for index in range(len(writes) - 1, -1, -1):
        write = writes[index]
        if write == region or (write.dense and write.start <= region.start and region.stop <= write.stop):
            # Everything older is hidden behind this one; what is newer may hide it in turn.
            newer = visible(region, writes[index + 1 :]) if index + 1 < len(writes) else [None]
            return [index if i is None else i + index + 1 for i in newer]
    canvas = _canvas([region, *writes])
    if canvas is None:
        return [None, *range(len(writes))]
    for index, write in enumerate(writes):
        canvas.paint(write, index + 1)
    return [int(i) - 1 if i else None for i in np.unique(canvas.view(region))]


class _Canvas:
    """An array of owners over a stretch of a storage, addressed through strided views."""

    def __init__(self, start: int, unit: int, size: int) -> None:
        self.start, self.unit = start, unit
        self.owners = np.zeros(size, dtype=np.int32)

    def view(self, region: Region) -> np.ndarray:
        unit, width = self.unit, self.owners.itemsize
        counts = [*region.counts[:-1], region.counts[-1] // unit]
        strides = [s // unit * width for s in region.strides[:-1]] + [width]
        if region.empty:
            return self.owners[:0]
        return np.lib.stride_tricks.as_strided(self.owners[(region.start - self.start) // unit :], counts, strides)

    def paint(self, region: Region, owner: int) -> _Canvas:
        if not region.empty:
            self.view(region)[...] = owner
        return self


def _canvas(regions: Sequence[Region]) -> _Canvas | None:
    start = min(r.start for r in regions)
    stop = max(r.stop for r in regions)
    unit = 0
    for region in regions:
        if not region.empty:
            unit = math.gcd(unit, region.start - start, region.counts[-1], *region.strides[:-1])
    size = (stop - start) // max(unit, 1)
    return _Canvas(start, max(unit, 1), size) if size <= EXACT_UNITS else None
