"""Which optimizer ends a step: where several move the models one after the other, the last of them.

    forward ─► backward ─► a.step() ─► b.step() ─► forward …

Nobody says that b will follow, so the first time the step ends after a. Then it is known.
"""

from __future__ import annotations

import weakref
from typing import Any

IN_EVALUATION_MODE = (
    "the model is trained in evaluation mode, and forward passes in evaluation mode begin no step. "
    "Put `with run.step():` around each training step."
)


class Endings:
    """Learns the order of the optimizers from what they do between two forward passes."""

    def __init__(self) -> None:
        self._followed: weakref.WeakSet[Any] | None = None  # optimizers after which another one comes, if there are any
        self.last: weakref.ref[Any] | None = None  # that ended a step, as long as no forward pass came after it

    def end_with(self, optimizer: Any) -> bool:
        """Whether a step ends with this one."""
        if self._followed is not None and optimizer in self._followed:
            return False
        self.last = weakref.ref(optimizer)
        return True

    def came_late(self, optimizer: Any) -> bool:
        """Whether the step that has just ended should have waited for this one."""
        last = self.last() if self.last is not None else None
        if last is None or last is optimizer:
            return False
        if self._followed is None:
            self._followed = weakref.WeakSet()
        self._followed.add(last)
        self.last = weakref.ref(optimizer)
        return True
