"""What an operation was told besides its tensors, as text that is the same in every process and for every batch size.

conv2d(x, w, b, (2, 2), padding=1)    ->  (., ., ., (2, 2), padding=1)
x.view(8, 10, 12, 64)                 ->  4 ((64,),)              how it is cut, not into how many samples
torch.zeros(8, 32, dtype=float16)     ->  (dtype=torch.float16)   the shape is that of an activation
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from typing import Any

from endoscope.capture.data.arguments import is_tensor
from endoscope.capture.data.words import Stored, torch_kind
from endoscope.capture.views.reshaping import cuts

#: They say what shape the result is to have, of as many elements as before.
RESHAPING = frozenset("view reshape unflatten _unsafe_view".split())
#: They say how large the result is to be.
SIZED = frozenset(
    """zeros ones empty full rand randn randint randperm arange linspace logspace range eye new_zeros new_ones new_empty
    new_full expand broadcast_to""".split()
)
#: They say how often each dimension is repeated, the batch first.
REPEATING = frozenset("repeat tile".split())
#: They are handed numbers of Python, which may be data.
FILLED = frozenset("tensor as_tensor asarray new_tensor scalar_tensor from_numpy".split())

_TENSOR = "."
_SILENT = frozenset({"out", "device", "generator"})  # keywords that say where or how, not what

Change = tuple[Sequence[int], Sequence[int]]


def settings_text(
    type_: str, args: Sequence[Any], kwargs: dict[str, Any] | None, change: Change | None, left: Collection[float]
) -> str:
    """`change` is the shape before and after a reshape, `left` are numbers that came out of tensors."""
    named = {key: value for key, value in kwargs.items() if key not in _SILENT} if kwargs else {}
    positional = list(args)
    if type_ in RESHAPING and change and not any(torch_kind(value) == "dtype" for value in args):
        return f"{len(change[1])} {cuts(*change)}"
    if type_ in SIZED:
        positional, named = _without_sizes(positional, named)
    elif type_ in REPEATING:
        positional = _without_first_number(positional)
    elif type_ in FILLED:
        at = 1 if type_ == "new_tensor" else 0
        positional[at : at + 1] = []
        named = {key: value for key, value in named.items() if key not in ("data", "obj")}
    texts = [_text(value, left) for value in positional]
    texts += [f"{key}={_text(named[key], left)}" for key in sorted(named)]
    return f"({', '.join(texts)})" if any(text != _TENSOR for text in texts) else ""


def _without_sizes(args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Without the shape: a list where there is one (`full((8, 3), 7)` keeps its 7), else all whole numbers."""
    listed = any(map(_is_sizes, (*args, *kwargs.values())))
    counts = _is_sizes if listed else _is_whole
    return (
        [value for value in args if not counts(value)],
        {key: value for key, value in kwargs.items() if not counts(value)},
    )


def _without_first_number(args: list[Any]) -> list[Any]:
    """Without the first number, on its own or in a list."""
    for position, value in enumerate(args):
        if _is_whole(value):
            return [*args[:position], *args[position + 1 :]]
        if _is_sizes(value):
            return [*args[:position], value[1:], *args[position + 1 :]]
    return args


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_sizes(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(map(_is_whole, value))


def _text(value: Any, left: Collection[float]) -> str:
    """Never an address in memory, never the order of a set."""
    if is_tensor(value):
        return _TENSOR
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, Stored):
        return f"{value.type}.{value.member}" if value.member else value.type
    if torch_kind(value) in ("dtype", "layout", "memory_format"):
        return str(value)
    if isinstance(value, float):
        return "left" if value in left else repr(float(value))
    if value is None or value is Ellipsis or isinstance(value, (bool, int, str, bytes, complex)):
        return repr(value)
    if isinstance(value, slice):
        return ":".join("" if end is None else _text(end, left) for end in (value.start, value.stop, value.step))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(item, left) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{key}: {_text(item, left)}' for key, item in value.items()))}}}"
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a number of numpy
        return _text(value.item(), left)
    return type(value).__name__
