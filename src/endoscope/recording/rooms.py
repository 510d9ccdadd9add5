"""Memory for the values that parameters had before an optimizer moved them.

It lives as long as the run, for the pages of fresh memory cost more than the copying. Which of it belongs to which
parameters is remembered, too, for most steps are about the same parameters as the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter, is_
from typing import Any

import torch
from torch import Tensor

from endoscope.recording.ahead import Ahead
from endoscope.stats import Copies

_FACTS = attrgetter("shape", "dtype", "requires_grad")  # where and how they lie is asked by `Copies.fit`
_KIND = attrgetter("shape", "dtype", "device")


class Rooms:
    """One tensor for each parameter."""

    def __init__(self) -> None:
        self._rooms: dict[int, Tensor] = {}  # by the id of the parameter
        self._known: Mapping[int, int] | None = None
        self._parameters: list[Tensor] = []
        self._facts: list[Any] = []
        self.positions: list[int] = []  # of the parameters that were asked about last
        self.targets: list[Tensor] = []  # the memory for them
        self._copies: Copies | None = None  # of them
        self.ahead = Ahead(self._rooms)
        self._done: tuple[list[int], tuple[int, ...]] = ([], ())  # parameters that are copied ahead; their numbers

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]

    def are_for(self, known: Mapping[int, int], parameters: list[Tensor]) -> bool:
        """Whether these very parameters were asked about last, and are what they were then."""
        return (
            self._known is known
            and len(parameters) == len(self._parameters)
            and all(map(is_, parameters, self._parameters))
            and list(map(_FACTS, parameters)) == self._facts
        )

    def make_for(self, known: Mapping[int, int], parameters: list[Tensor], positions: list[int]) -> None:
        """`known` has the positions of all parameters by their ids, `positions` are those of the ones meant."""
        self._known, self._parameters, self.positions = known, parameters, positions
        self._facts = list(map(_FACTS, parameters))
        self.targets = [self._room(parameter) for parameter in parameters]
        self._copies, self._done = None, ([], ())

    def copy(self, unchanged: bool) -> list[int]:
        """Copy the parameters that were asked about last; returns which of them have no memory now.

        If they are unchanged since the step began, those that were copied ahead are not copied again.
        """
        done = self.ahead.take()
        if done and unchanged and done == self._done[0] and len(self._done[1]) == len(self._parameters):
            return []  # most steps are alike, and where everything lies was asked when it was copied
        if self._copies is None or not self._copies.fit():
            self.targets = [self._room(parameter) for parameter in self._parameters]  # they may be on another device
            self._copies = Copies(self._parameters, self.targets)
        elif done and unchanged:
            if self._done[0] != done:
                self._done = done, self._numbers(done)
            return self._copies.make(self._done[1]) if len(self._done[1]) < len(self._parameters) else []
        return self._copies.make()

    def _numbers(self, modules: list[int]) -> tuple[int, ...]:
        """Of the parameters that these modules have."""
        copied = self.ahead.copied(modules)
        return tuple([number for number, parameter in enumerate(self._parameters) if id(parameter) in copied])

    def _room(self, parameter: Tensor) -> Tensor:
        room = self._rooms.get(id(parameter))
        if room is None or _KIND(room) != _KIND(parameter):
            room = self._rooms[id(parameter)] = torch.empty_like(parameter, requires_grad=False)
            self.ahead.look_again()
        return room
