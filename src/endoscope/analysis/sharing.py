"""Condition 1: the same function on the same parameters is the same layer, wherever and whenever it runs."""

from __future__ import annotations

from collections.abc import Hashable

from endoscope.analysis.flops import ELEMENTWISE
from endoscope.analysis.opfacts import EDGE, FREE, WALL, OpFacts

_DEEPEST = 8  # operations between a parameter and a weight that is made from it
_ELEMENTWISE = frozenset(ELEMENTWISE)  # adding something that was learned does not make a layer with parameters

Use = tuple[Hashable, ...]  # function, parameters, and plain arguments if it reads nothing but parameters


def share_parameters(facts: OpFacts) -> list[int]:
    """A layer for each operation whose parameters are used again; a WALL where they are used just once."""
    states = [FREE if statement >= 0 else EDGE for statement in facts.statements]
    uses = _uses(facts) if facts.parameters else {}
    for use in [use for use, ops in uses.items() if len(ops) == 1]:
        like = _without_one(use, uses)
        if like is not None:
            uses[like] += uses.pop(use)
    layer = 0
    for ops in uses.values():
        for op in ops:
            states[op] = layer if len(ops) > 1 else WALL
        layer += len(ops) > 1
    return states


def _uses(facts: OpFacts) -> dict[Use, list[int]]:
    """Every operation that reads a parameter, or a weight that is made from parameters alone."""
    uses: dict[Use, list[int]] = {}
    tokens: dict[int, int] = {node: node for node in facts.parameters}  # what a parameter or weight is known by
    depths: dict[int, int] = {}  # weight -> operations above it
    made: dict[Use, int] = {}
    weights, parents, known = tokens.keys(), facts.parents, depths.keys()
    fixed = facts.buffers | facts.constants
    for op, node in enumerate(facts.nodes):
        above = parents[node]
        if weights.isdisjoint(above) or facts.statements[op] < 0:
            continue
        if known.isdisjoint(above):
            used: tuple[Hashable, ...] = tuple([tokens[parent] for parent in above if parent in tokens])
        else:  # which of its outputs matters: the parts of a split weight are different weights
            used = tuple([(tokens[p], number) for p, number in facts.reads(op) if p in tokens])
            used += facts.modules(op)[-1:]  # a weight that is handed around is used by a layer of each module
        use: Use = (facts.types[op], used)
        pure = all(parent in tokens or parent in fixed for parent in above)
        if pure:
            use = (*use, facts.signature(op))
            depth = 1 + max([depths.get(parent, 0) for parent in above])
            if depth <= _DEEPEST:
                tokens[node] = made.setdefault(use, -1 - len(made))
                depths[node] = depth
        direct = not facts.parameters.isdisjoint(above)
        if direct or (facts.types[op] not in _ELEMENTWISE and not pure):
            uses.setdefault(use, []).append(op)
    return uses


def _without_one(use: Use, uses: dict[Use, list[int]]) -> Use | None:
    """The layer that takes the same parameters but one: a learned first state goes through the same weights."""
    used = use[1]
    assert isinstance(used, tuple)
    for left_out in range(len(used) if len(used) > 1 else 0):
        like = (use[0], used[:left_out] + used[left_out + 1 :])
        if like in uses:
            return like
    return None
