"""Values of a trace in a file: read when they are asked for, as tensors, or as arrays where torch is not imported."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from endoscope.capture.data.nodes import Meta
from endoscope.capture.data.record import Overwritten
from endoscope.capture.file.archive import Archive
from endoscope.capture.file.plain import Decoder
from endoscope.errors import NotATrace, ValueChanged, ValueNotKept
from endoscope.store.tensors import NUMPY, decode

VALUES = "values.safetensors"
_MOST_HEAD = 1 << 30
#: States of a slot.
KEPT, NOT_KEPT, OVERWRITTEN, CANNOT = range(4)


class Entry(NamedTuple):
    """One tensor."""

    dtype: str  # safetensors' name
    shape: tuple[int, ...]
    start: int  # bytes, in the whole file
    size: int


class Tensors:
    """The tensors of a file by number."""

    def __init__(self, archive: Archive, sums: Sequence[int]) -> None:
        self._archive = archive
        self._sums = sums
        try:
            self._entries = _entries(archive)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise archive.damaged(f"the head of {VALUES} cannot be read ({error})") from None
        if len(sums) != len(self._entries):
            raise archive.damaged(f"{VALUES} has {len(self._entries)} tensors and {len(sums)} checksums")

    def check(self, number: int) -> None:
        if type(number) is not int or not 0 <= number < len(self._entries):
            raise self._archive.damaged(f"there is no tensor {number}")

    def array(self, number: int) -> np.ndarray:
        """The stored bits of a tensor; complex numbers that safetensors cannot name as pairs."""
        self.check(number)
        entry = self._entries[number]
        data = self._archive.bytes_at(entry.start, entry.size)
        if zlib.crc32(data) != self._sums[number]:
            raise self._archive.damaged(f"tensor {number} of {VALUES} fails its checksum")
        return np.frombuffer(bytearray(data), NUMPY[entry.dtype]).reshape(entry.shape)

    def shape(self, number: int) -> tuple[int, ...]:
        self.check(number)
        return self._entries[number].shape

    def dtype(self, number: int) -> str:
        return self._entries[number].dtype

    def damaged(self, why: str) -> NotATrace:
        return self._archive.damaged(why)


def _entries(archive: Archive) -> list[Entry]:
    start, size = archive.place(VALUES)
    length = int.from_bytes(archive.bytes_at(start, 8), "little")
    if not 0 <= length <= min(size - 8, _MOST_HEAD):
        raise ValueError("its length is wrong")
    head = json.loads(archive.bytes_at(start + 8, length))
    first, last = start + 8 + length, size - 8 - length
    found, end = [], 0
    for number in range(len(head)):
        one = head[str(number)]
        begin, until = one["data_offsets"]
        shape = tuple(one["shape"])
        bytes_ = math.prod(shape) * np.dtype(NUMPY[one["dtype"]]).itemsize
        if begin != end or until - begin != bytes_ or until > last or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f"the place of tensor {number} is wrong")
        found.append(Entry(one["dtype"], shape, first + begin, bytes_))
        end = until
    return found


class Slots(NamedTuple):
    """What is known of each slot; the columns of slots.arrow."""

    node: list[int]
    shape: list[tuple[int, ...]]
    dtype: list[str]
    device: list[str]
    requires_grad: list[bool]
    grad_fn: list[str | None]
    elements: list[int]
    state: list[int]
    tensor: list[int | None]
    strides: list[list[int] | None]
    value_shape: list[list[int] | None]
    special: list[str | None]
    gradient: list[int | None]
    gradient_strides: list[list[int] | None]
    reason: list[str | None]  # why the value cannot stand in a file


class Asked(NamedTuple):
    """What was kept besides values."""

    save: str  # as it was typed
    gradients: bool
    random_states: dict[int, int]  # node -> tensor


class FileValues:
    """The same answers as those of a trace in memory; see `data/record.Values`."""

    def __init__(self, slots: Slots, tensors: Tensors, words: Decoder, asked: Asked) -> None:
        self._slots = slots
        self._tensors = tensors
        self._words = words
        self._asked = asked

    def random_state(self, node: int) -> Any:
        number = self._asked.random_states.get(node)
        if number is None:
            return None
        return read(self._tensors, number, self._words, "torch.uint8", self._tensors.shape(number), None)

    def meta(self, slot: int) -> Meta:
        slots, words = self._slots, self._words
        return Meta(
            words.size(slots.shape[slot]),
            words.dtype(slots.dtype[slot]),
            words.device(slots.device[slot]),
            slots.requires_grad[slot],
            slots.grad_fn[slot],
            slots.elements[slot],
        )

    def shape(self, slot: int) -> tuple[int, ...]:
        return tuple(self._slots.shape[slot])

    def shape_of(self, argument: Any) -> tuple[int, ...] | None:
        shape = argument.shape
        return None if shape is None else tuple(shape)

    def freeze(self) -> None:
        """Nobody else can change what is in a file."""

    def tensor(self, slot: int) -> Any:
        state = self._slots.state[slot]
        if state == OVERWRITTEN:
            raise Overwritten
        told, number = self._slots.special[slot], self._slots.tensor[slot]
        if state == KEPT and told is not None:
            return special(self._tensors, json.loads(told), self._words)
        if state != KEPT or number is None:
            raise KeyError(slot)
        own = self._slots.value_shape[slot]
        return self._read(number, slot, self._slots.shape[slot] if own is None else own, self._slots.strides[slot])

    def value(self, slot: int, label: str, layer: str, kept: bool) -> Any:
        if self._slots.state[slot] == CANNOT and kept:
            raise ValueNotKept(
                f"The value of {label} is {self._slots.reason[slot]}, which the file of a trace does not hold. "
                "Everything else about it is there; for the value itself, take the trace again."
            )
        try:
            if not kept:
                raise KeyError(slot)
            return self.tensor(slot)
        except KeyError:
            raise ValueNotKept(
                f"The value of {label} was not kept, because the trace was taken with "
                f"save={self._asked.save}. Trace again with save='all' or save={layer!r}."
            ) from None
        except Overwritten:
            raise ValueChanged(
                f"The tensor of {label} was overwritten after it was captured and before the trace was saved, so its "
                "value at that moment is gone. Save before you change tensors in place (an optimizer step changes "
                "parameters), or call trace.freeze() first."
            ) from None

    def gradient(self, slot: int) -> Any:
        if not self._asked.gradients:
            raise ValueNotKept(
                "This trace keeps no gradients. Trace with gradients=True, and call backward() on the result before "
                "you save it."
            )
        number = self._slots.gradient[slot]
        if number is None:
            return None
        return self._read(number, slot, self._slots.shape[slot], self._slots.gradient_strides[slot])

    def _read(self, number: int, slot: int, shape: Sequence[int], strides: Sequence[int] | None) -> Any:
        return read(self._tensors, number, self._words, self._slots.dtype[slot], tuple(shape), strides)


def special(tensors: Tensors, told: dict[str, Any], words: Decoder) -> Any:
    """A tensor that is no plain piece of memory; numpy has nothing like it."""
    if words.torch is None:
        raise ValueNotKept(
            f"This value is a {told.get('kind')} tensor, which numpy does not know. Import torch before you ask for it."
        )
    from endoscope.capture.file.special import put_together

    try:
        parts = [
            read(tensors, one["value"], words, one["dtype"], tuple(one["shape"]), one["strides"])
            for one in told["parts"]
        ]
        return put_together(told, parts)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise tensors.damaged(f"a {told.get('kind')} tensor cannot be put together ({error})") from None


def read(
    tensors: Tensors, number: int, words: Decoder, dtype: str, shape: tuple[int, ...], strides: Sequence[int] | None
) -> Any:
    """A tensor, or an array where torch is not imported; memory of its own."""
    stored = tensors.array(number)
    elements = stored.size // (2 if dtype in _PAIRS else 1)
    inside = math.prod(shape) == elements if strides is None else _is_inside(shape, strides, elements)
    if not inside:
        raise tensors.damaged(f"tensor {number} has {elements} elements, which do not fit {dtype} of shape {shape}")
    known = words.dtype(dtype)
    if words.torch is not None and type(known) is words.torch.dtype:
        if elements * known.itemsize != stored.nbytes:
            raise tensors.damaged(f"tensor {number} has {stored.nbytes} bytes, which are not {elements} of {dtype}")
        flat = words.torch.from_numpy(stored.reshape(-1).view(np.uint8)).view(known)
        return flat.reshape(shape) if strides is None else flat.as_strided(shape, tuple(strides))
    values = decode(stored, tensors.dtype(number)) if dtype not in _PAIRS else _complex(stored)
    values = values.reshape(-1)
    if strides is None:
        return values.reshape(shape)
    width = values.itemsize
    return np.lib.stride_tricks.as_strided(values, shape, [step * width for step in strides])


_PAIRS = ("torch.complex128", "torch.complex32")


def _complex(stored: np.ndarray) -> np.ndarray:
    """Pairs of real and imaginary part; numpy has no pairs of half precision."""
    wide = stored if stored.dtype == np.float64 else stored.astype(np.float32)
    return np.ascontiguousarray(wide).view(np.complex128 if wide.dtype == np.float64 else np.complex64)[..., 0].copy()


def _is_inside(shape: Sequence[int], strides: Sequence[int], elements: int) -> bool:
    if len(shape) != len(strides) or any(step < 0 for step in strides):
        return False
    return 0 in shape or sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) < elements
