"""One cause, one entry; the most harmful first, and causes before what they cause.

    Seen of one check ─► group: those that depend on each other ─► the one nearest to the cause speaks for all

Forward, the cause is upstream: the first tensor in order of execution. Backward, gradients flow the other way, and the
cause is the last one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from endoscope.findings.check import Check, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import SEVERITIES
from endoscope.findings.structure import Place

MOST_NODES_NAMED = 200  # in `also`


class Ranked(NamedTuple):
    """One entry: what was seen where it begins, and where else."""

    check: Check
    seen: Seen
    also: tuple[str, ...]
    depth: int


def rank(found: Iterable[tuple[Check, Seen]], facts: Facts) -> list[Ranked]:
    """Entries, the most important first."""
    by_check: dict[tuple[str, str], list[tuple[Check, Seen]]] = {}
    for check, seen in found:
        by_check.setdefault((check.name, seen.cause), []).append((check, seen))
    entries = [entry for group in by_check.values() for entry in _entries(group[0][0], [s for _, s in group], facts)]
    return sorted(entries, key=_order)


def _order(entry: Ranked) -> tuple[int, int, int, int, float]:
    seen, backward = entry.seen, entry.check.stage is Stage.BACKWARD
    depth = -entry.depth if backward else entry.depth
    first = int(seen.steps[0]) if len(seen.steps) else 0
    return -SEVERITIES.index(seen.severity), int(entry.check.stage), first, depth, -size(seen)


def size(seen: Seen) -> float:
    """How far beyond its threshold, in powers of e."""
    if seen.value > 0 and seen.threshold > 0 and math.isfinite(seen.value):
        return abs(math.log(seen.value / seen.threshold))
    return abs(seen.value - seen.threshold) if math.isfinite(seen.value) else math.inf


def _entries(check: Check, seen: Sequence[Seen], facts: Facts) -> list[Ranked]:
    """Put together what depends on each other."""
    backward = check.stage is Stage.BACKWARD
    waiting = sorted(seen, key=lambda one: (_depth(one, facts) * (-1 if backward else 1), one.name))
    entries = []
    while waiting:
        lead = waiting[0]
        places = _reached(lead, facts, backward)
        members = [one for one in waiting if one is lead or _belongs(one, lead, places)]
        waiting = [one for one in waiting if not any(one is member for member in members)]
        entries.append(_entry(check, members, facts))
    return entries


def _reached(lead: Seen, facts: Facts, backward: bool) -> set[tuple[str, str]]:
    """Node and role of everything that the symptom could have come to from here; passes are one node."""
    if lead.tensor is None:
        return set()
    structure, place = facts.structure, lead.tensor.place
    starts = [place, *structure.children.get(place, ())] if lead.tensor.key.kind == "parameter" else [place]
    reached = structure.above(starts) if backward else structure.below(starts)
    if not backward:  # parameters that are read on the way belong to it, too
        reached |= {p for child in list(reached) for p in structure.parents.get(child, ()) if p not in reached}
    return {(node, role) for node, role, _ in reached | _siblings(lead, facts)}


def _siblings(lead: Seen, facts: Facts) -> frozenset[Place]:
    return facts.siblings.get(lead.tensor.place, frozenset()) if lead.tensor is not None else frozenset()


def _belongs(one: Seen, lead: Seen, places: set[tuple[str, str]]) -> bool:
    if one.tensor is None or lead.tensor is None:
        return one.tensor is lead.tensor and one.name == lead.name
    same_module = one.tensor.key.module == lead.tensor.key.module
    return one.tensor.place[:2] in places or one.name == lead.name or same_module


def _entry(check: Check, members: list[Seen], facts: Facts) -> Ranked:
    """The most severe symptom speaks for the group: among equals, the one nearest to the cause."""
    worst = max(SEVERITIES.index(one.severity) for one in members)
    lead = next(one for one in members if SEVERITIES.index(one.severity) == worst)
    alike = _siblings(lead, facts)
    beside = dict.fromkeys(
        one.name for one in members if one.tensor is not None and one.tensor.place in alike and one.name != lead.name
    )
    if beside:
        told = ", ".join(f"`{name}`" for name in beside)
        lead = replace(lead, detail=f"{lead.detail} The same is seen at what is read together with it: {told}.")
    others = dict.fromkeys(name for one in members for name in (one.name, *one.also) if name != lead.name)
    names = {**beside, **others}
    return Ranked(check, lead, tuple(names)[:MOST_NODES_NAMED], _depth(lead, facts))


def _depth(seen: Seen, facts: Facts) -> int:
    return facts.structure.depth(seen.tensor.place) if seen.tensor is not None else 0
