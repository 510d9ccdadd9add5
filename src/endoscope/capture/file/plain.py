"""Objects of Python as JSON: numbers, texts and containers as they are, words of torch by name, others as they show.

A list is a list. Everything that JSON has no word for is an object with one telling key: {"tuple": [1, 2]}.
"""

from __future__ import annotations

import enum
import math
import sys
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any

from endoscope.capture.data.words import Sizes, Stored, TorchName, torch_kind

_MOST_TEXT = 10_000  # of an object that is kept as it is shown


def encode(value: Any, tensor: Callable[[Any], Any]) -> Any:
    """`tensor(value)` gives the JSON of a tensor, an array or a placeholder, and None for anything else."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    found = tensor(value)
    if found is not None:
        return found
    if kind is list:
        return [encode(item, tensor) for item in value]
    word = torch_kind(value)
    if word == "Size":
        return {"size": list(value)}
    if word in ("dtype", "device", "layout", "memory_format"):
        return {word: str(value)}
    if isinstance(value, (list, tuple, dict, slice)):
        return _container(value, tensor)
    return _atom(value)


def _container(value: Any, tensor: Callable[[Any], Any]) -> Any:
    if isinstance(value, slice):
        return {"slice": [encode(item, tensor) for item in (value.start, value.stop, value.step)]}
    if isinstance(value, dict):
        return {"dict": [[encode(key, tensor), encode(item, tensor)] for key, item in value.items()]}
    items = [encode(item, tensor) for item in value]
    if hasattr(value, "_fields"):
        return {"named": type(value).__name__, "fields": list(value._fields), "items": items}
    return items if isinstance(value, list) else {"tuple": items}


def _atom(value: Any) -> Any:
    kind = type(value)
    if value is Ellipsis:
        return {"ellipsis": True}
    if kind is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is range:
        return {"range": [value.start, value.stop, value.step]}
    if kind.__module__ == "numpy" and getattr(value, "ndim", None) == 0 and kind.__name__ in _NUMBERS:
        return {"number": repr(value.item()), "type": kind.__name__}
    try:
        text = repr(value)
    except Exception:  # somebody else's object
        text = f"<{kind.__name__}>"
    found = {"object": text[:_MOST_TEXT], "type": kind.__name__}
    return {**found, "member": value.name} if isinstance(value, enum.Enum) and value.name else found


#: Numbers of numpy that come back as what they were.
_NUMBERS = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split())


class Decoder:
    """Reads what `encode` wrote, with words of torch where it has been imported, and names of them where not."""

    def __init__(self, itemsizes: dict[str, int], tensor: Callable[[Any], Any]) -> None:
        """`itemsizes` has the bytes per element of each dtype, `tensor` turns the JSON of a tensor into one."""
        self._knows_torch = True
        self._itemsizes = itemsizes
        self._tensor = tensor
        self._read: dict[str, Callable[[Any], Any]] = {
            "tensor": tensor,
            "array": tensor,
            "value": tensor,
            "special": tensor,
            "float": lambda data: float(data["float"]),
            "size": lambda data: self.size(data["size"]),
            "dtype": lambda data: self.dtype(data["dtype"]),
            "device": lambda data: self.device(data["device"]),
            "layout": lambda data: self._word(data["layout"], "layout"),
            "memory_format": lambda data: self._word(data["memory_format"], "memory_format"),
            "slice": lambda data: slice(*map(self.decode, data["slice"])),
            "dict": lambda data: {self.decode(key): self.decode(item) for key, item in data["dict"]},
            "named": lambda data: named(data["named"], tuple(data["fields"]))(*map(self.decode, data["items"])),
            "tuple": lambda data: tuple(map(self.decode, data["tuple"])),
            "ellipsis": lambda data: ...,
            "complex": lambda data: complex(*map(float, data["complex"])),
            "bytes": lambda data: bytes.fromhex(data["bytes"]),
            "range": lambda data: range(*data["range"]),
            "number": _number,
            "object": lambda data: Stored(str(data["object"]), str(data["type"]), str(data.get("member", ""))),
        }

    @classmethod
    def without_torch(cls) -> Decoder:
        found = cls({}, lambda data: None)
        found._knows_torch = False
        return found

    @property
    def torch(self) -> Any:
        """Torch, once somebody has imported it."""
        return sys.modules.get("torch") if self._knows_torch else None

    def decode(self, data: Any) -> Any:
        if type(data) is list:
            return [self.decode(item) for item in data]
        if type(data) is dict:
            return self._read[next(iter(data), "")](data)
        return data

    def size(self, sizes: Any) -> Any:
        return Sizes(sizes) if self.torch is None else self.torch.Size(sizes)

    def dtype(self, name: str) -> Any:
        found = self._word(name, "dtype")
        return TorchName(name, "dtype", self._itemsizes.get(name, 1)) if type(found) is TorchName else found

    def device(self, name: str) -> Any:
        return TorchName(name, "device") if self.torch is None else self.torch.device(name)

    def _word(self, name: str, kind: str) -> Any:
        """`torch.float32`, or its name: also where this version of torch does not know it."""
        known = getattr(self.torch, name.removeprefix("torch."), None) if self.torch is not None else None
        return TorchName(name, kind) if known is None else known


def _number(data: Any) -> Any:
    import numpy as np

    kind, text = data["type"], data["number"]
    if kind not in _NUMBERS:
        raise ValueError(f"{kind} is no number")
    if kind == "bool":
        return np.bool_(text == "True")
    return np.dtype(kind).type(int(text) if "int" in kind else float(text))


@cache
def named(name: str, fields: tuple[str, ...]) -> Any:
    """A class of named tuples like the one that was seen."""
    return namedtuple(name if name.isidentifier() else "Tuple", fields, rename=True)
