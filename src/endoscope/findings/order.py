"""Which of two events comes first: in the graph, and in time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from endoscope.findings.event import GRADIENT, LABELS, LOSS, Event
from endoscope.findings.structure import PASSED_ON, Place, Structure

_SOON = 5  # recorded steps
_FEW = 3  # beginnings: too few to count who follows whom
_CERTAIN = 2.576  # standard deviations: one in a hundred by chance


def upstream(structure: Structure, a: Event, b: Event) -> str | None:
    """ "a" if b is computed from a, "b" if it is the other way round; None if neither, or if that is not known.

    Gradients come after values, and go the other way; updates come last.
    """
    if _has_no_place(a) or _has_no_place(b):
        return None
    if a.stage != b.stage:
        connected = _reaches(structure, a, b) or _reaches(structure, b, a)
        return None if not connected else "a" if a.stage < b.stage else "b"
    forward = "a" if _reaches(structure, a, b) else "b" if _reaches(structure, b, a) else None
    if a.place == b.place or forward is None:
        return None
    return {"a": "b", "b": "a"}[forward] if a.stage == GRADIENT else forward


def _has_no_place(event: Event) -> bool:
    return event.place is None and event.kind != LOSS


def _reaches(structure: Structure, one: Event, other: Event) -> bool:
    """A metric that is no node is computed from what the network returns."""
    if one.place is None or other.place is None:
        return other.place is None and one.place is not None
    return other.place in structure.below([one.place])


def leader(a: np.ndarray, b: np.ndarray) -> str | None:
    """Who comes first in time, of two things that happen at some steps; None if that cannot be told.

    Things that begin again and again: whose beginnings are followed by those of the other, a few steps later, rather
    than the other way round. Things that begin once or twice: which one began earlier.
    """
    begins = [np.flatnonzero(x & ~np.concatenate([[False], x[:-1]])) for x in (a, b)]
    if not len(begins[0]) or not len(begins[1]):
        return None
    if max(map(len, begins)) <= _FEW:
        first, other = begins[0][0], begins[1][0]
        return None if first == other else "a" if first < other else "b"
    after = [_followed(begins[0], begins[1]), _followed(begins[1], begins[0])]
    if sum(after) and abs(after[0] - after[1]) > _CERTAIN * np.sqrt(sum(after)):
        return "a" if after[0] > after[1] else "b"
    return None


def _followed(first: np.ndarray, second: np.ndarray) -> int:
    """How often one of the second comes soon after one of the first, but not at once.

    Pairs are counted: of two that have nothing to do with each other there are as many one way as the other, also if
    one of them happens more often.
    """
    soon = np.searchsorted(second, first + _SOON, side="right") - np.searchsorted(second, first, side="right")
    return int(soon.sum())


def with_subjects(events: Iterable[Event], structure: Structure) -> list[Event]:
    """The same events; each says what it is about. A tensor with several names is one subject."""
    names: dict[Place, str] = {}
    return [replace(event, subject=_subject(event, structure, names)) for event in events]


def _subject(event: Event, structure: Structure, names: dict[Place, str]) -> str:
    if event.kind in LABELS:
        return "what the user says about data"
    if event.place is None:
        return f"node {event.node}" if event.node else f"event {event.name}"
    if event.place not in names:
        names[event.place] = f"node {_origin(event.place, structure)[0]}"
    return names[event.place]


def _origin(place: Place, structure: Structure) -> Place:
    """The first name of a tensor: a module returns what its last part returned, an output is a name for it."""
    seen = {place}
    while True:
        parents = structure.parents.get(place, [])
        is_name = structure.type.get(place) in PASSED_ON or structure.type.get(place) == structure.type.get(
            parents[0] if parents else place
        )
        if len(parents) != 1 or not is_name or parents[0] in seen:
            return place
        place = parents[0]
        seen.add(place)
