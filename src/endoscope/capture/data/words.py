"""What stands in a trace from a file for things that only a program has: words of torch, and objects of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class TorchName(str):
    """The name of a dtype, device, layout or memory format, in a process that has not imported torch."""

    __slots__ = ("itemsize", "kind")
    kind: str  # dtype, device, layout, memory_format
    itemsize: int  # bytes per element of a dtype

    def __new__(cls, name: str, kind: str, itemsize: int = 0) -> TorchName:
        made = super().__new__(cls, name)
        made.kind, made.itemsize = kind, itemsize
        return made

    def __repr__(self) -> str:
        if self.kind != "device":
            return str(self)
        kind, colon, index = self.partition(":")
        return f"device(type={kind!r}{f', index={index}' if colon else ''})"

    @property
    def type(self) -> str:
        """Of a device: `cuda` for `cuda:0`."""
        return self.partition(":")[0]


class Sizes(tuple[int, ...]):
    """A `torch.Size`, in a process that has not imported torch."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        count = 1
        for size in self:
            count *= size
        return count


@dataclass(frozen=True, slots=True, repr=False)
class Stored:
    """An object of which a file holds nothing but how it was shown."""

    text: str
    type: str  # name of its class
    member: str = ""  # of an enumeration: which one

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


def torch_kind(value: Any) -> str:
    """`dtype`, `layout`, … for such a word of torch, or for its name; empty for anything else."""
    kind = type(value)
    if kind is TorchName:
        return str(value.kind)
    return kind.__name__ if kind.__module__ == "torch" else ""
