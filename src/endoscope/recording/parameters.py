"""Parameters of the watched models in one captured step, and their values before somebody moved them.

    optimizer.step() ─► copy(positions) ─► `before` ─► the optimizer writes ─► update = now - before

The copies live in memory that the next steps use again: the pages of fresh memory cost more than the copying.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from endoscope.capture.regions import storage_key, version_of, versions_of
from endoscope.recording.quiet import quiet

if TYPE_CHECKING:
    from endoscope.recording.names import Names
    from endoscope.recording.structures import Learned


class Parameters:
    """Those of one step, by their position in the list of names."""

    def __init__(self, names: Names, learned: Learned) -> None:
        self._names = names
        self._learned = learned
        self.versions = versions_of(names.tensors)  # when the step began
        self.before: dict[int, Tensor] = {}  # position -> value before the first write of this step
        self.late: set[int] = set()  # positions that somebody had written into unseen before they were copied
        self._memory: dict[int | None, int] = {}  # address -> position; made when it is needed
        if learned.written_parameters:
            with quiet(), torch.no_grad():
                self.copy(learned.written_parameters)

    def copy(self, positions: Iterable[int]) -> None:
        """Keep the values of these parameters: they are about to be written."""
        tensors, targets = [], []
        for position in positions:
            parameter = self._names.tensors[position]
            if position in self.before or not parameter.requires_grad or parameter.layout is not torch.strided:
                continue
            if version_of(parameter) != self.versions[position]:
                self.late.add(position)
            target = self.before[position] = self._room(position, parameter)
            tensors.append(parameter)
            targets.append(target)
        try:
            if targets:
                torch._foreach_copy_(targets, tensors)
        except Exception:  # one that cannot be copied must not cost the others
            for position in [p for p in self.before if any(self.before[p] is t for t in targets)]:
                self._copy_alone(position)

    def _copy_alone(self, position: int) -> None:
        try:
            self.before[position].copy_(self._names.tensors[position])
        except Exception:
            del self.before[position]
            self.late.add(position)

    def _room(self, position: int, parameter: Tensor) -> Tensor:
        """Memory of the run for the copy of one parameter."""
        room = self._learned.rooms.get(position)
        if (
            room is None
            or room.shape != parameter.shape
            or room.dtype is not parameter.dtype
            or room.device != parameter.device
        ):
            room = self._learned.rooms[position] = torch.empty_like(parameter, requires_grad=False)
        return room

    def copy_all(self) -> None:
        """An optimizer with a closure: its forward passes are inside its update."""
        with quiet(), torch.no_grad():
            self.copy(range(len(self._names.tensors)))

    def before_write(self, written: list[Tensor]) -> None:
        """In a traced step: somebody who is no optimizer is about to write, perhaps through `.data` or a view."""
        found = []
        for tensor in written:
            position = self._names.positions.get(id(tensor))
            if position is None and not tensor.requires_grad:
                position = self._in_memory_of(tensor)
            if position is not None:
                found.append(position)
        if found:
            self._learned.written_parameters.update(found)
            with quiet(), torch.no_grad():
                self.copy(found)

    def _in_memory_of(self, tensor: Tensor) -> int | None:
        with quiet():
            if not self._memory:
                self._memory = {storage_key(p): i for i, p in enumerate(self._names.tensors)}
            return self._memory.get(storage_key(tensor))

    def value(self, position: int) -> Tensor | None:
        """The value that the step was computed with; None if somebody has written into it unseen."""
        if position in self.late:
            return None
        before = self.before.get(position)
        if before is not None:
            return before
        parameter = self._names.tensors[position]
        return parameter if version_of(parameter) == self.versions[position] else None

    def let_go(self) -> None:
        self.before, self._memory = {}, {}
