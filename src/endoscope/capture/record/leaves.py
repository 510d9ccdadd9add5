"""Find the tensors inside nested Python values, with the path that leads to each."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.utils.data

from endoscope.capture.data.arguments import ATOMS, TENSOR, know_classes, map_arguments

know_classes(
    (torch.Tensor,), {torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format, torch.Generator}
)

#: Values that are never looked into.
OPAQUE = (
    torch.nn.Module, types.ModuleType, types.FunctionType, types.MethodType, type, torch.Generator,
    torch.optim.Optimizer, torch.utils.data.DataLoader,
)  # fmt: skip
_WITHOUT_ATTRIBUTES = ("builtins", "numpy", "endoscope")  # packages; a `run.step()` handle is no data
_MOST_LEAVES = 100_000


def argument_tensors(value: Any, found: list[Any]) -> None:
    """Append the tensors inside one argument of a torch function: lists, tuples and dicts only."""
    if isinstance(value, (tuple, list)):
        for item in value:
            kind = item.__class__
            if kind is torch.Tensor:  # nearly always
                found.append(item)
            elif kind not in ATOMS:
                argument_tensors(item, found)
    elif isinstance(value, torch.Tensor):
        found.append(value)
    elif value.__class__ is slice:
        for item in (value.start, value.stop, value.step):
            if item.__class__ not in ATOMS:
                argument_tensors(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            argument_tensors(item, found)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors inside arguments or results of a torch function."""
    if value.__class__ is torch.Tensor:
        return [value]
    found: list[torch.Tensor] = []
    argument_tensors(value, found)
    return found


def parts_of_wrapper(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors inside a subclass that only wraps others (`_make_wrapper_subclass`), as far as it says."""
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None or tensor.__class__ in (torch.Tensor, torch.nn.Parameter):
        return []
    try:
        found = [getattr(tensor, name) for name in flatten()[0]]  # a DTensor lists its mesh, too
        return [part for part in found if isinstance(part, torch.Tensor)]
    except Exception:  # code of somebody else
        return []


def without_tensors(arguments: Any) -> Any:
    """The same arguments with a placeholder for every tensor."""
    return map_arguments(arguments, lambda _: TENSOR)


def frozen(arguments: Any) -> Any:
    """Arguments that stay as they are, even if the user changes a list that he handed over."""
    for value in arguments:
        if value.__class__ not in ATOMS and not isinstance(value, torch.Tensor):
            return map_arguments(arguments, lambda tensor: tensor)
    return arguments


def named_leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Tensors (and generators) inside inputs or outputs of a target, with their paths.

    Looks into lists, tuples, NamedTuples, mappings, dataclasses, Hugging Face outputs and caches, and plain
    objects that carry tensors as attributes. A tensor is reported at every path that leads to it.
    """
    if value.__class__ is torch.Tensor:  # nearly always
        return iter(((path, value),))
    return _walk(value, path, set(), [_MOST_LEAVES])


def _walk(value: Any, path: str, seen: set[int], budget: list[int]) -> Iterator[tuple[str, Any]]:
    if value.__class__ in ATOMS or id(value) in seen or budget[0] <= 0:
        return
    budget[0] -= 1
    if isinstance(value, torch.Tensor) or (isinstance(value, Iterator) and not hasattr(value, "__dict__")):
        yield path, value  # an iterator is announced, never consumed
        return
    seen.add(id(value))
    if isinstance(value, OPAQUE):
        return
    for key, item in _children(value):
        yield from _walk(item, path + key if path or not key.startswith(".") else key[1:], seen, budget)


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in list(value.items()):  # whoever asks may change it meanwhile
            yield f"[{key!r}]", item
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, item in zip(value._fields, value, strict=True):
            yield f".{name}", item
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield f".{field.name}", getattr(value, field.name, None)
    elif type(value).__module__.partition(".")[0] not in _WITHOUT_ATTRIBUTES:
        for name in (*getattr(value, "__dict__", ()), *slot_names(type(value))):
            yield f".{name}", getattr(value, name, None)


def slot_names(kind: type) -> list[str]:
    slots = [getattr(base, "__slots__", ()) for base in kind.__mro__]
    names = [name for group in slots for name in ([group] if isinstance(group, str) else group)]
    return [name for name in names if not name.startswith("__")]


def joined_paths(leaves: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """A tensor that stands in several places is one node that knows them all."""
    paths: dict[int, list[str]] = {}
    values: dict[int, Any] = {}
    for path, value in leaves:
        paths.setdefault(id(value), []).append(path)
        values[id(value)] = value
    return [(", ".join(paths[identity]), value) for identity, value in values.items()]


def named_arguments(function: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """Arguments with the names the function gives them, `args[0]` where it gives none."""
    method = getattr(function, "__func__", None)
    plain = _argument_names(function) if method is None else _names_of_method(method)[1:]
    named = [(plain[i] if i < len(plain) else f"args[{i}]", value) for i, value in enumerate(args)]
    return [*named, *kwargs.items()]


def _argument_names(function: Any) -> list[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


#: `forward` of one class is asked about again and again; the function of a class lives as long as the class.
_names_of_method = functools.lru_cache(1024)(_argument_names)
