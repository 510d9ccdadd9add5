"""Nested Python values once more, with other tensors in them: results of a model, arguments for a trial run."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import torch

from endoscope.capture.data.arguments import ATOMS
from endoscope.capture.record.leaves import OPAQUE, slot_names

Exchange = Callable[[torch.Tensor], torch.Tensor]


def rebuilt(value: Any, exchange: Exchange, *, always: bool = False) -> Any:
    """The same value with every tensor exchanged. The original containers and objects are not touched.

    What holds no exchanged tensor is handed on as it is; with `always` all containers are copied, so that whoever
    gets them can change them. What cannot be copied is handed on, too.
    """
    return _Builder(exchange, always).build(value)


class _Builder:
    def __init__(self, exchange: Exchange, always: bool) -> None:
        self.exchange = exchange
        self.always = always
        self.known: dict[int, Any] = {}
        self.held: list[Any] = []  # so that their ids stay their own

    def build(self, value: Any) -> Any:
        if value.__class__ in ATOMS or isinstance(value, OPAQUE):
            return value
        if isinstance(value, torch.Tensor):
            return self.exchange(value)
        if id(value) not in self.known:
            self.held.append(value)
            self.known[id(value)] = value  # a circle ends here
            self.known[id(value)] = self.container(value)
        return self.known[id(value)]

    def container(self, value: Any) -> Any:
        if isinstance(value, tuple):
            items = [self.build(item) for item in value]
            if not self.changed(value, items):
                return value
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, (list, deque, set, frozenset)):
            items = [self.build(item) for item in value]
            if not self.changed(value, items):
                return value
            return self.filled(value, items)
        if isinstance(value, Mapping):
            return self.mapping(value)
        if type(value).__module__ in ("builtins", "numpy"):
            return value
        return self.object(value)

    def changed(self, old: Any, new: list[Any]) -> bool:
        return self.always or any(a is not b for a, b in zip(old, new, strict=True))

    def filled(self, value: Any, items: list[Any]) -> Any:
        try:
            return deque(items, value.maxlen) if isinstance(value, deque) else type(value)(items)
        except Exception:  # a subclass with a constructor of its own
            return value

    def mapping(self, value: Mapping[Any, Any]) -> Any:
        items = {key: self.build(item) for key, item in value.items()}
        if not self.changed(value.values(), list(items.values())) or not isinstance(value, MutableMapping):
            return value
        try:
            made = copy.copy(value)
            for key, item in items.items():
                made[key] = item
        except Exception:
            return value
        return made

    def object(self, value: Any) -> Any:
        names = dict.fromkeys((*getattr(value, "__dict__", ()), *slot_names(type(value))))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names.update(dict.fromkeys(field.name for field in dataclasses.fields(value)))
        old = {name: getattr(value, name) for name in names if hasattr(value, name)}
        new = {name: self.build(item) for name, item in old.items()}
        if not self.changed(old.values(), list(new.values())):
            return value
        try:
            made = copy.copy(value)
            for name, item in new.items() if made is not value else ():
                if item is not old[name]:
                    object.__setattr__(made, name, item)
        except Exception:
            return value
        return made
