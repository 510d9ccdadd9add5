"""Names of everything in the watched models, worked out again only when a module or a tensor was exchanged.

Asking torch for all names takes longer than a small network takes to run; comparing identities does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from endoscope.capture.calls import Calls
from endoscope.recording.watch import Watch


class Inventory:
    """Modules, parameters and buffers of all watched models."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches
        self._seen: list[int] = []
        self.calls = Calls()
        self.parameters: list[tuple[str, Tensor]] = []
        self.buffers: list[tuple[str, Tensor]] = []

    def clear(self) -> None:
        """Let go of the models."""
        self.calls = Calls()
        self.parameters, self.buffers, self._seen = [], [], []

    def refresh(self) -> None:
        seen: list[int] = []
        for watch in self._watches:
            _identities(watch.module, seen)
        if seen != self._seen:
            self._seen = seen
            self._take()

    def _take(self) -> None:
        self.calls = Calls()
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


def _identities(module: torch.nn.Module, seen: list[int]) -> None:
    """Identities of a module, its tensors and the modules inside, in a fixed order. Modules may be shared."""
    waiting, known = [module], set()
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in known:
            continue
        known.add(id(part))
        seen.append(id(part))
        # Lazy parameters are not there before the first pass: their class tells.
        seen.extend([id(p) if p is None else id(p) ^ id(p.__class__) for p in part._parameters.values()])
        seen.extend(map(id, part._buffers.values()))
        waiting.extend(part._modules.values())  # type: ignore[arg-type]
