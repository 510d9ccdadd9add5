"""One thing that shows at many nodes is one event: an outlier goes on downstream, and each node would tell it again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from endoscope.findings.event import OUTLIER, OverSamples, OverSteps
from endoscope.findings.pairs import SAME, Counted
from endoscope.findings.structure import Structure

MOST_NODES_NAMED = 200


def merge(over: OverSamples | OverSteps, counted: Counted, structure: Structure) -> np.ndarray:
    """bool[events]: outliers that nearly always come with one further upstream, which names them in `also`."""
    events = over.events
    absorbed = np.zeros(len(events), dtype=bool)
    outliers = [n for n, event in enumerate(events) if event.kind == OUTLIER]
    alone = np.diagonal(counted.both)
    order = sorted(outliers, key=lambda n: (_depth(structure, events[n].place), n))
    numbers = np.array(order, np.int64)
    for lead in order:
        if absorbed[lead]:
            continue
        both = counted.both[lead, numbers]
        same = both >= SAME * (alone[lead] + alone[numbers] - both)
        members = [n for n in numbers[same].tolist() if n != lead and not absorbed[n]]
        absorbed[members] = True
        names = dict.fromkeys(events[n].node for n in members if events[n].node != events[lead].node)
        if names:
            events[lead] = replace(events[lead], also=tuple(names)[:MOST_NODES_NAMED])
    return absorbed


def _depth(structure: Structure, place: tuple[str, str, int] | None) -> int:
    return structure.depth(place) if place is not None else 0
