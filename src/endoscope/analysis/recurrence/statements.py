"""Numbers for statements: where in the source an operation was asked for, by which function, in which module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from types import CodeType

from endoscope.analysis.recurrence.facts import NONE

#: Function, identity of the code object, instruction in it, innermost module.
Place = tuple[str, int, int, Hashable]


def number_statements(places: Sequence[Place | None], code: Callable[[int], CodeType | None]) -> list[int]:
    """Equal numbers, from 0 up, for operations of the same statement; NONE where there is no place.

    `code(n)` gives the code object of the n-th place; it is asked only for code in which something runs again.
    """
    known: dict[Place, int] = {}
    number = known.setdefault
    numbers = [number(place, len(known)) if place is not None else NONE for place in places]
    if len(known) == len(places) - places.count(None):
        return numbers
    merged = _merge_copies(list(known), numbers, code)
    if len(set(merged)) == len(known):
        return numbers
    return [merged[n] if n >= 0 else NONE for n in numbers]


def _merge_copies(known: list[Place], numbers: list[int], code: Callable[[int], CodeType | None]) -> list[int]:
    """The interpreter compiles the test of a `while` twice: instructions for the same text are the same statement."""
    again = {known[n][1] for n, times in Counter(numbers).items() if times > 1 and n >= 0}
    positions = _positions(known, numbers, code, again)
    merged: dict[Hashable, int] = {}
    told: list[int] = []
    for function, identity, instruction, module in known:
        where: Hashable = instruction
        spans = positions.get(identity, ())
        if 0 <= instruction // 2 < len(spans) and None not in spans[instruction // 2]:
            where = spans[instruction // 2]
        told.append(merged.setdefault((function, identity, where, module), len(merged)))
    return told


def _positions(
    known: list[Place], numbers: list[int], code: Callable[[int], CodeType | None], wanted: set[int]
) -> dict[int, list[tuple[int | None, ...]]]:
    """Code object -> for each of its instructions the text that it was made from."""
    first = {known[n][1]: n for n in range(len(known) - 1, -1, -1)}
    waiting = {first[identity]: identity for identity in wanted}
    positions: dict[int, list[tuple[int | None, ...]]] = {}
    for op, n in enumerate(numbers):
        if n in waiting:
            body = code(op)
            positions[waiting.pop(n)] = list(body.co_positions()) if body is not None else []
            if not waiting:
                break
    return positions
