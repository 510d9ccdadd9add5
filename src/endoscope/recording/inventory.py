"""Names of everything in the watched models, worked out again only when a module or a tensor was exchanged.

Asking torch for all names takes longer than a small network takes to run; comparing identities does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.calls import Calls
from endoscope.recording.known_calls import Known
from endoscope.recording.sources import Sources
from endoscope.recording.watch import Watch


class Inventory:
    """Modules, parameters and buffers of all watched models."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches
        self._modules: list[torch.nn.Module] = []
        self._seen: list[Any] = []
        self.calls = Calls()
        self.sources = Sources.of(self.calls)
        self.parameters: list[tuple[str, Tensor]] = []
        self.buffers: list[tuple[str, Tensor]] = []
        self.known_calls: dict[int, Known] = {}  # by the id of the module

    def clear(self) -> None:
        """Let go of the models."""
        self.calls = Calls()
        self.sources = Sources.of(self.calls)
        self.parameters, self.buffers, self._modules, self._seen = [], [], [], []
        self.known_calls = {}

    def refresh(self) -> None:
        seen = _contents(self._modules)
        if not seen or len(seen) != len(self._seen) or not all(map(is_, seen, self._seen)):
            self._modules = _all_modules(self._watches)
            self._seen = _contents(self._modules)
            self._take()

    def _take(self) -> None:
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
        self.buffers = [entry for identity, entry in buffers.items() if identity not in parameters]
        self.sources = Sources.of(self.calls)


def _all_modules(watches: Sequence[Watch]) -> list[torch.nn.Module]:
    found: dict[int, torch.nn.Module] = {}
    for watch in watches:
        found |= {id(module): module for module in watch.module.modules()}
    return list(found.values())


def _contents(modules: list[torch.nn.Module]) -> list[Any]:
    """Names, tensors and modules inside of these modules, in a fixed order; to be compared one by one with `is`."""
    contents: list[Any] = []
    for module in modules:
        parameters, buffers, inside = module._parameters, module._buffers, module._modules
        # Lazy parameters are not there before the first pass: their class tells.
        contents += [p.__class__ for p in parameters.values()]
        for table in (parameters, buffers, inside):
            contents += table.keys()
            contents += table.values()
    return contents
