"""Names of everything in the watched models, worked out again only when a module or a tensor was exchanged.

Asking torch for all names takes longer than a small network takes to run; comparing identities does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter, is_, itemgetter
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.calls import Calls
from endoscope.capture.regions import is_uninitialised
from endoscope.recording.chains import Chains
from endoscope.recording.known_calls import Known
from endoscope.recording.sources import Sources
from endoscope.recording.watch import Watch

_NAMES = ("_parameters", "_buffers", "_modules")
_TABLES, _TABLES_IN = attrgetter(*_NAMES), itemgetter(*_NAMES)


class Inventory:
    """Modules, parameters and buffers of all watched models."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches
        self._modules: list[torch.nn.Module] = []
        self._attributes: list[Any] = []  # of the modules; none if their tables are not found there
        self._tables: list[Any] = []  # those in which modules have parameters, buffers and modules
        self._full: list[Any] = []  # those of them in which something stands
        self._empty: list[Any] = []
        self._lengths: list[int] = []  # of the full ones
        self._names: list[str] = []  # that stand in them
        self._seen: list[Any] = []  # for what
        self._lazy: list[Any] = []  # those of them that change their type when they are made
        self.calls = Calls()
        self.sources = Sources.of(self.calls)
        self.parameters: list[tuple[str, Tensor]] = []
        self.positions: dict[int, int] = {}  # id of a parameter -> its position
        self.buffers: list[tuple[str, Tensor]] = []
        self.known_calls: dict[int, Known] = {}  # by the id of the module
        self.chains = Chains()
        self.reliable: dict[int, int] = {}  # parameters that have their gradient when a pass has ended: `losses.py`
        self.was_heard = False  # so that it is known what there is to know about calls

    def clear(self) -> None:
        """Let go of the models."""
        self.calls = Calls()
        self.sources = Sources.of(self.calls)
        self.parameters, self.buffers, self._modules, self.positions = [], [], [], {}
        self._attributes, self._tables, self._full, self._empty = [], [], [], []
        self._lengths, self._names, self._seen, self._lazy = [], [], [], []
        self.known_calls, self.chains = {}, Chains()

    def look_again(self) -> None:
        """There are more models than before."""
        self._seen = []

    def refresh(self) -> None:
        if not self.is_the_same():
            self._modules = modules = _all_modules(self._watches)
            self._look_at(list(chain.from_iterable(map(_TABLES, modules))))
            attributes = list(map(vars, modules))
            found = all(map(set(_NAMES).issubset, attributes)) and all(
                isinstance(table, dict) for table in self._tables
            )
            self._attributes = attributes if found else []  # those of scripted modules are made when they are asked for
            self._take()

    def _look_at(self, tables: list[Any]) -> None:
        self._tables = tables
        self._full, self._empty = [t for t in tables if len(t)], [t for t in tables if not len(t)]
        self._lengths, self._names, self._seen = _contents(self._full)
        self._lazy = [found for found in self._seen if isinstance(found, Tensor) and is_uninitialised(found)]

    def is_the_same(self) -> bool:
        """Whether all modules still have the same things under the same names; without a turn in Python for each."""
        if not self._seen:
            return False
        try:
            tables = chain.from_iterable(map(_TABLES_IN, self._attributes))
            if not self._attributes or not all(map(is_, tables, self._tables)):
                return self._looks_the_same()
        except KeyError:
            return False
        return (
            not any(self._empty)
            and list(map(len, self._full)) == self._lengths
            and all(map(is_, chain.from_iterable(map(dict.values, self._full)), self._seen))
            and list(chain.from_iterable(self._full)) == self._names
            and (not self._lazy or all(map(is_uninitialised, self._lazy)))
        )

    def _looks_the_same(self) -> bool:
        """The same where tables are others than before: scripted modules make them whenever they are asked."""
        lengths, names, seen, lazy = self._lengths, self._names, self._seen, self._lazy
        self._look_at(list(chain.from_iterable(map(_TABLES, self._modules))))
        same = len(seen) == len(self._seen) and all(map(is_, seen, self._seen))
        return same and lengths == self._lengths and names == self._names and len(lazy) == len(self._lazy)

    def _take(self) -> None:
        self.was_heard = False
        self.reliable = {}
        self.calls = Calls()
        self.known_calls, self.chains = {}, Chains()
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


def _contents(tables: list[Any]) -> tuple[list[int], list[str], list[Any]]:
    """How much stands in each of them, under which names, and what."""
    seen = [value for table in tables for value in table.values()]
    return list(map(len, tables)), [name for table in tables for name in table.keys()], seen  # noqa: SIM118 (no dicts)
