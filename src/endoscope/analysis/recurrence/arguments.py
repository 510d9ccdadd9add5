"""The plain arguments of a call: those that are no tensors. Are two calls alike, and where do they differ?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

_PLAIN = (int, float, bool, str, bytes, complex, type(None), type(Ellipsis))


class _Word(str):
    """Stands for something that is no plain value, and is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


_ABSENT = _Word("absent")


def signature(args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Hashable:
    """Equal for calls with the same plain arguments, whatever tensors they take."""
    return _signature(tuple(args)), _signature(kwargs) if kwargs else ()


def _signature(value: Any) -> Hashable:
    kind = value.__class__
    if kind in _PLAIN:
        return kind, value if value == value else repr(value)  # 1, 1.0 and True differ; nan equals nan
    if kind is slice:
        return slice, _signature((value.start, value.stop, value.step))
    if isinstance(value, (list, tuple)):
        return tuple([_signature(item) for item in value])
    if isinstance(value, Mapping):
        return tuple([(key, _signature(item)) for key, item in value.items()])
    return _text(value)


def differing(calls: Iterable[tuple[Sequence[Any], Mapping[str, Any] | None]]) -> dict[str, tuple[Any, ...]]:
    """The plain arguments that are not the same in all passes of a layer: name -> value in each pass.

    `args[1]` is the second argument by position, `args[1][0].stop` a part of it, `dim` an argument by name.
    """
    passes: list[dict[str, Any]] = []
    for args, kwargs in calls:
        leaves: dict[str, Any] = {}
        for position, value in enumerate(args):
            _add_leaves(f"args[{position}]", value, leaves)
        for name, value in (kwargs or {}).items():
            _add_leaves(name, value, leaves)
        passes.append(leaves)
    names = dict.fromkeys(name for leaves in passes for name in leaves)
    values = {name: tuple(leaves.get(name, _ABSENT) for leaves in passes) for name in names}
    return {name: each for name, each in values.items() if len({_signature(value) for value in each}) > 1}


def _add_leaves(path: str, value: Any, leaves: dict[str, Any]) -> None:
    if isinstance(value, slice):
        for part in ("start", "stop", "step"):
            leaves[f"{path}.{part}"] = getattr(value, part)
    elif isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            _add_leaves(f"{path}[{position}]", item, leaves)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _add_leaves(f"{path}[{key!r}]", item, leaves)
    else:
        leaves[path] = value if value.__class__ in _PLAIN else _Word(_text(value))


def _text(value: Any) -> str:
    if hasattr(type(value), "grad_fn"):  # a tensor itself may raise when it is asked
        return "tensor"
    try:
        return repr(value)
    except Exception:  # somebody else's object: names must not depend on whether it can be shown
        return f"<{type(value).__name__}>"
