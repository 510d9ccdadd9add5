"""Arguments of calls, with or without their tensors: walk through them, and say where each tensor stands.

Without torch there are no tensors, only what stands for them. `record/leaves.py` makes the classes of torch known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from endoscope.capture.data.words import Sizes, TorchName


class Placeholder:
    """Stands for a tensor in arguments that are kept without their tensors."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self.shape = shape  # said only where no value that was read has it

    def __repr__(self) -> str:
        return "tensor"


TENSOR = Placeholder()

#: Classes that never hold a tensor; checked by identity, so subclasses go the long way.
ATOMS: set[type] = {
    int, float, bool, str, bytes, complex, type(None), type(Ellipsis), range, type, TorchName, Sizes,
}  # fmt: skip

_tensors: tuple[type, ...] = (Placeholder,)


def know_classes(tensors: tuple[type, ...], atoms: set[type]) -> None:
    """Classes of tensors, and classes that never hold one."""
    global _tensors
    _tensors = (*tensors, *_tensors)
    ATOMS.update(atoms)


def tensor_places(args: Any, kwargs: Any, positional: str = "{}") -> Iterator[str]:
    """Name of the argument of every tensor, in the order in which `argument_tensors` finds them: 0, 0[2], mask."""
    for number, value in enumerate(args):
        yield from _places_within(value, positional.format(number))
    for name, value in (kwargs or {}).items():
        yield from _places_within(value, str(name))


def _places_within(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, _tensors):
        yield name
    elif value.__class__ in ATOMS:
        return
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _places_within(item, f"{name}[{number}]")
    elif value.__class__ is slice:
        for number, item in enumerate((value.start, value.stop, value.step)):
            yield from _places_within(item, f"{name}[{number}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _places_within(item, f"{name}[{key}]")


def map_arguments(value: Any, change: Any) -> Any:
    """The same argument with every tensor replaced by `change(tensor)`, visited in the same order."""
    if isinstance(value, _tensors):
        return change(value)
    if value.__class__ in ATOMS:
        return value
    if isinstance(value, tuple):
        items = [map_arguments(item, change) for item in value]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return tuple(items)
    if isinstance(value, list):
        return [map_arguments(item, change) for item in value]
    if value.__class__ is slice:
        return slice(*(map_arguments(item, change) for item in (value.start, value.stop, value.step)))
    if isinstance(value, dict):
        return {key: map_arguments(item, change) for key, item in value.items()}
    return value


def is_tensor(value: Any) -> bool:
    return isinstance(value, _tensors)
