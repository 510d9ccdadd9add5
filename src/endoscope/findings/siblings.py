"""Layers that are read together, such as query, key and value of one attention: a fault of one is mostly one of all.

The graph says it, and no name: three layers go into the same tensor, directly or through a softmax, a view or a
normalisation, in a model that has an attention.
"""

from __future__ import annotations

from collections.abc import Iterable

from endoscope.findings.functions import ATTENTIONS, LAYERS, NORMALISATIONS, SOFTMAXES
from endoscope.findings.structure import PASSED_ON, Place, Structure

_SEEN_THROUGH = SOFTMAXES | NORMALISATIONS | PASSED_ON
_TOGETHER = 3  # query, key and value


def read_together(structure: Structure, functions: Iterable[str]) -> dict[Place, frozenset[Place]]:
    """Each of the three layers, and each of their parameters -> all of these; without the attentions nothing."""
    if not (ATTENTIONS | SOFTMAXES) & set(functions):
        return {}
    found: dict[Place, frozenset[Place]] = {}
    for place in structure.parents:
        layers = _layers_before(structure, place)
        if len(layers) == _TOGETHER:
            own = {parent for layer in layers for parent in structure.parents.get(layer, ())}
            parameters = {one for one in own if structure.type.get(one) == "parameter"}
            group = frozenset(layers | parameters)
            found |= {one: group for one in group if one not in found}
    return found


def _layers_before(structure: Structure, place: Place) -> set[Place]:
    """The nearest layers that it reads."""
    waiting, seen, layers = list(structure.parents[place]), {place}, set()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        if structure.type.get(here) in LAYERS:
            layers.add(here)
        elif structure.type.get(here) in _SEEN_THROUGH:
            waiting += structure.parents.get(here, ())
    return layers
