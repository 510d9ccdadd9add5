"""Which recorded steps go when a trial has used up its disk budget.

Steps are thinned evenly: on level 1 every second step of a type stays, on level 2 every fourth, and so on. The grid is
counted from the first step, so what stayed on a level is spread evenly, however often thinning happens. The first and
the newest step of every type stay on all levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Recorded(NamedTuple):
    """A recorded step that still has what is to be thinned."""

    ordinal: int  # n-th recorded step
    type: str
    nth: int  # of its type, from 0
    bytes: int  # what would be freed


class Choice(NamedTuple):
    """Which steps go, and on which level."""

    level: int
    steps: list[Recorded]

    @property
    def bytes(self) -> int:
        return sum(step.bytes for step in self.steps)


def choose(
    steps: Sequence[Recorded], to_free: int, level: int, needed: int | None = None, *, by_type: bool = False
) -> Choice:
    """The lowest level, from the given one on, that frees enough; if none does, as much as possible.

    Some of it may be a wish: only so many bytes are `needed`. With `by_type` no type loses its first and newest step
    even then.
    """
    choice = _climb(sorted(steps), to_free, level)
    if by_type or choice.bytes >= (to_free if needed is None else needed):
        return choice
    # Nearly as many types as steps: nothing could go, so types are not told apart.
    together = [step._replace(type="", nth=step.ordinal) for step in sorted(steps)]
    return Choice(choice.level, _climb(together, to_free, 1).steps)


def _climb(steps: Sequence[Recorded], to_free: int, level: int) -> Choice:
    highest = max((step.nth for step in steps), default=0).bit_length()
    choice = Choice(level, _off_the_grid(steps, level))
    while choice.bytes < to_free and choice.level < highest:
        choice = Choice(choice.level + 1, _off_the_grid(steps, choice.level + 1))
    return choice


def _off_the_grid(steps: Sequence[Recorded], level: int) -> list[Recorded]:
    newest = {step.type: step.nth for step in steps}
    oldest = {step.type: step.nth for step in reversed(steps)}
    stay = {*newest.items(), *oldest.items()}
    return [step for step in steps if step.nth % (1 << level) and (step.type, step.nth) not in stay]
