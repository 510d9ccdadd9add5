"""Parameters whose gradients need no hook: they have them in `.grad` when a backward pass has ended.

Who does so is learned from earlier passes, with the version that the gradient has then. Most steps are about all of
them, and then they are looked at all at once, without a turn in Python for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat
from operator import attrgetter, is_, is_not
from typing import Any

from torch import Tensor

_GRADIENT, _LEARNS, _VERSION = attrgetter("grad"), attrgetter("requires_grad"), attrgetter("_version")
_HOOKS = attrgetter("_backward_hooks", "_post_accumulate_grad_hooks")
_NEVER = -1  # in the place of a version: a parameter that is not relied on any more

#: Slot of a parameter, what was found in its `.grad`, and its version.
Arrival = tuple[int, Tensor | None, int]


class Unhooked:
    """All parameters of one step by their slots, and which of them are relied on."""

    def __init__(self, versions: dict[int, int]) -> None:
        self.versions = versions  # by slot; kept for other steps
        self.parameters: list[tuple[int, Tensor]] = []
        self._slots: list[int] = []
        self._tensors: list[Tensor] = []

    def know(self, parameters: Iterable[tuple[int, Tensor]]) -> None:
        self.parameters = [*self.parameters, *parameters]
        self._slots, self._tensors = [slot for slot, _ in self.parameters], [p for _, p in self.parameters]

    def relies_on(self, slot: int) -> bool:
        return self.versions.get(slot, _NEVER) != _NEVER

    def relies_on_all(self) -> bool:
        """Whether no parameter needs a hook: all learn, and none has a gradient yet, or a hook of anybody's."""
        versions, tensors = self.versions, self._tensors
        return (
            len(versions) == len(tensors)
            and _NEVER not in versions.values()
            and all(map(is_, map(_GRADIENT, tensors), repeat(None)))
            and not any(chain.from_iterable(map(_HOOKS, tensors)))
            and all(map(_LEARNS, tensors))
        )

    def have_hooks_of_others(self) -> bool:
        found = filter(None, chain.from_iterable(map(_HOOKS, self._tensors)))
        return any(max(hooks) >= 0 for hooks in found)  # the numbers of ours are negative

    def arrived(self, unseen: list[tuple[int, Tensor]]) -> list[Arrival]:
        """What those have that were relied on, after a pass."""
        if unseen is self.parameters:
            gradients: list[Any] = list(map(_GRADIENT, self._tensors))
            if all(map(is_not, gradients, repeat(None))):
                versions = list(map(_VERSION, gradients))
                if versions == list(map(self.versions.get, self._slots)):
                    return list(zip(self._slots, gradients, versions, strict=True))
        arrivals: list[Arrival] = []
        for slot, parameter in unseen:
            gradient = parameter.grad
            if gradient is None:
                del self.versions[slot]  # not reached, or somebody has begun to use gradients up
                continue
            arrivals.append((slot, gradient, gradient._version))
            if gradient._version != self.versions[slot]:  # another sum, or somebody has begun to write into it
                self.versions[slot] = _NEVER
        return arrivals

    def learn_from(self, arrivals: list[Arrival]) -> None:
        """Of those that had hooks, who still has what the hook found there."""
        parameters = dict(self.parameters)
        for slot, gradient, version in arrivals:
            same = gradient is not None and parameters[slot].grad is gradient and gradient._version == version
            if same:
                self.versions.setdefault(slot, version)
