"""Names of everything in the watched models, worked out again only when a module or a tensor was exchanged.

Asking torch for all names takes longer than a small network takes to run; comparing identities does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter, is_, methodcaller
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.calls import Calls
from endoscope.recording.known_calls import Known
from endoscope.recording.sources import Sources
from endoscope.recording.watch import Watch

_TABLES = attrgetter("_parameters", "_buffers", "_modules")
_KEYS, _VALUES = methodcaller("keys"), methodcaller("values")


class Inventory:
    """Modules, parameters and buffers of all watched models."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches
        self._modules: list[torch.nn.Module] = []
        self._tables: list[Any] = []  # those in which modules have parameters, buffers and modules
        self._lengths: list[int] = []
        self._full: list[Any] = []  # those of them in which something stands
        self._empty: list[Any] = []
        self._names: list[Any] = []  # how much stands in each of them, and under which names
        self._seen: list[Any] = []
        self._types: list[type] = []
        self.calls = Calls()
        self.sources = Sources.of(self.calls)
        self.parameters: list[tuple[str, Tensor]] = []
        self.positions: dict[int, int] = {}  # id of a parameter -> its position
        self.buffers: list[tuple[str, Tensor]] = []
        self.known_calls: dict[int, Known] = {}  # by the id of the module
        self.reliable: dict[int, int] = {}  # parameters that have their gradient when a pass has ended: `losses.py`
        self.was_heard = False  # so that it is known what there is to know about calls

    def clear(self) -> None:
        """Let go of the models."""
        self.calls = Calls()
        self.sources = Sources.of(self.calls)
        self.parameters, self.buffers, self._modules, self.positions = [], [], [], {}
        self._tables, self._lengths, self._full, self._empty = [], [], [], []
        self._names, self._seen, self._types = [], [], []
        self.known_calls = {}

    def look_again(self) -> None:
        """There are more models than before."""
        self._seen = []

    def refresh(self) -> None:
        if not self.is_the_same():
            self._modules = _all_modules(self._watches)
            self._look_at(_tables_of(self._modules))
            self._names, self._seen, self._types = _contents(self._full)
            self._take()

    def _look_at(self, tables: list[Any]) -> None:
        self._tables, self._lengths = tables, list(map(len, tables))
        self._full, self._empty = [t for t in tables if len(t)], [t for t in tables if not len(t)]

    def is_the_same(self) -> bool:
        """Whether all modules still have the same things under the same names; without a turn in Python for each."""
        if not self._seen:
            return False
        # What `_tables_of` and `_contents` do: it is asked when no code is in the cache.
        tables, lengths = list(chain.from_iterable(map(_TABLES, self._modules))), self._lengths
        if not all(map(is_, tables, self._tables)):  # those of scripted modules are made when they are asked for
            self._look_at(tables)
            if lengths != self._lengths:
                return False
        elif any(map(len, self._empty)):
            return False
        full = self._full
        seen = list(chain.from_iterable(map(_VALUES, full)))
        return (
            all(map(is_, seen, self._seen))
            and [*map(len, full), *chain.from_iterable(map(_KEYS, full))] == self._names
            and list(map(type, seen)) == self._types
        )

    def _take(self) -> None:
        self.was_heard = False
        self.reliable = {}
        self.calls = Calls()
        self.known_calls = {}
        parameters: dict[int, tuple[str, Tensor]] = {}
        buffers: dict[int, tuple[str, Tensor]] = {}
        for watch in self._watches:
            self.calls.know(watch.module, watch.name)
            for name, parameter in watch.parameters():
                parameters.setdefault(id(parameter), (name, parameter))
            for name, buffer in watch.buffers():
                buffers.setdefault(id(buffer), (name, buffer))
        self.parameters = list(parameters.values())
        self.positions = {identity: position for position, identity in enumerate(parameters)}
        self.buffers = [entry for identity, entry in buffers.items() if identity not in parameters]
        self.sources = Sources.of(self.calls)


def _all_modules(watches: Sequence[Watch]) -> list[torch.nn.Module]:
    found: dict[int, torch.nn.Module] = {}
    for watch in watches:
        found |= {id(module): module for module in watch.module.modules()}
    return list(found.values())


def _tables_of(modules: list[torch.nn.Module]) -> list[Any]:
    return list(chain.from_iterable(map(_TABLES, modules)))


def _contents(tables: list[Any]) -> tuple[list[Any], list[Any], list[type]]:
    """Names, what they stand for, and of which type that is: lazy parameters change it when they are made."""
    seen = list(chain.from_iterable(map(_VALUES, tables)))
    return [*map(len, tables), *chain.from_iterable(map(_KEYS, tables))], seen, list(map(type, seen))
