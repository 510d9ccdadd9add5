"""Which tensors of a step all processes of a tensor-parallel group have in common.

Only a DTensor says how it is divided, and most of a model computes with ordinary tensors: the input, what a divided
layer has added up, the loss. Such a tensor is the same in all of these processes if nothing that it is computed from is
divided among them:

    input ─► norm ─► up (a shard) ─► act ─► down (replicated) ─► loss
    the same         says it      not known  says it           the same
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def copies_among(places: range, said: Mapping[int, bool], edges: Iterable[tuple[int, int]]) -> set[int]:
    """Of the places that say nothing, those that nothing divided leads to.

    `said` has those that say it, and whether they are divided; an edge goes from what is read to what is computed.
    """
    below: dict[int, list[int]] = {}
    for above, place in edges:
        below.setdefault(above, []).append(place)
    waiting = [place for place, is_divided in said.items() if is_divided]
    unknown: set[int] = set()
    while waiting:
        for place in below.get(waiting.pop(), ()):
            if place not in said and place not in unknown:
                unknown.add(place)
                waiting.append(place)
    return {place for place in places if place not in said and place not in unknown}
