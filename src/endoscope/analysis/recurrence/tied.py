"""Parameters that several layers compute with, such as an embedding that is also the last layer of a language model."""

from __future__ import annotations

from collections.abc import Sequence

from endoscope.analysis.flops import ELEMENTWISE
from endoscope.analysis.recurrence.facts import OpFacts

_ELEMENTWISE = frozenset(ELEMENTWISE)  # what is learned may be added to many things, a position for example
_TURNS = frozenset("H T adjoint contiguous detach mH mT permute swapaxes swapdims t to transpose".split())


def tied_parameters(facts: OpFacts, layers: Sequence[int]) -> dict[int, list[int]]:
    """Node of the parameter -> all operations that compute with it, if they are of several layers.

    `layers` has the layer of every operation. What is made of parameters alone does not count: a norm, or the part of
    a stack of weights. A transposed weight is the same weight.
    """
    weights = {node: node for node in facts.parameters}  # a parameter, or what turns it around -> the parameter
    fixed = facts.parameters | facts.buffers | facts.constants
    uses: dict[int, list[int]] = {}
    for op, node in enumerate(facts.nodes):
        above = facts.parents[node]
        if weights.keys().isdisjoint(above) or facts.statements[op] < 0:
            continue
        if all(parent in fixed or parent in weights for parent in above):
            if len(above) == 1 and facts.types[op] in _TURNS:
                weights[node] = weights[above[0]]
        elif facts.types[op] not in _ELEMENTWISE:
            for weight in {weights[parent] for parent in above if parent in weights}:
                uses.setdefault(weight, []).append(op)
    return {weight: ops for weight, ops in uses.items() if len({layers[op] for op in ops}) > 1}
