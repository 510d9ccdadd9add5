"""Condition 1: the same function on the same parameters is the same layer, wherever and whenever it runs."""

from __future__ import annotations

from collections.abc import Hashable

from endoscope.analysis.flops import ELEMENTWISE
from endoscope.analysis.recurrence.facts import EDGE, FREE, WALL, OpFacts

_DEEPEST = 8  # operations between a parameter and a weight that is made from it
_ELEMENTWISE = frozenset(ELEMENTWISE)  # adding something that was learned does not make a layer with parameters

#: Function, parameters, and its plain arguments if it reads nothing but parameters.
Use = tuple[str, tuple[Hashable, ...]] | tuple[str, tuple[Hashable, ...], Hashable]


def share_parameters(facts: OpFacts) -> list[int]:
    """A layer for each operation whose parameters are used again; a WALL where they are used just once."""
    states = [FREE if statement >= 0 else EDGE for statement in facts.statements]
    uses = _uses(facts) if facts.parameters else {}
    _join_learned_states(uses)
    layer = 0
    for ops in uses.values():
        if len(ops) == 1:
            states[ops[0]] = WALL
        else:
            for op in ops:
                states[op] = layer
            layer += 1
    return states


def _uses(facts: OpFacts) -> dict[Use, list[int]]:
    """Every operation that reads a parameter, or multiplies with a weight that is made from parameters alone."""
    uses: dict[Use, list[int]] = {}
    tokens: dict[int, int] = {node: node for node in facts.parameters}  # what a parameter or weight is known by
    depths: dict[int, int] = {}  # weight -> operations above it
    made: dict[Use, int] = {}
    types, statements, parents = facts.types, facts.statements, facts.parents
    weights, known, fixed = tokens.keys(), depths.keys(), facts.buffers | facts.constants
    for op, node in enumerate(facts.nodes):
        above = parents[node]
        if weights.isdisjoint(above) or statements[op] < 0:
            continue
        if not depths or known.isdisjoint(above):
            direct = True
            used: tuple[Hashable, ...] = tuple([tokens[parent] for parent in above if parent in tokens])
        else:  # which of its outputs matters: the parts of a split weight are different weights
            direct = not facts.parameters.isdisjoint(above)
            used = tuple([(tokens[parent], number) for parent, number in facts.reads(op) if parent in tokens])
        if not direct or types[op] in _ELEMENTWISE:
            used += facts.modules(op)[-1:]  # what is handed around is used by a layer of each module
        use: Use = (types[op], used)
        pure = weights >= set(above) - fixed
        if pure:
            use = (*use, facts.signature(op))
            depth = 1 + max([depths.get(parent, 0) for parent in above])
            if depth <= _DEEPEST:
                tokens[node] = made.setdefault(use, -1 - len(made))
                depths[node] = depth
        if direct or not (pure or types[op] in _ELEMENTWISE):
            if use in uses:
                uses[use].append(op)
            else:
                uses[use] = [op]
    return uses


def _join_learned_states(uses: dict[Use, list[int]]) -> None:
    """A learned first state goes through the same weights as later ones: one parameter more, the same layer."""
    sizes = {(use[0], len(use[1])) for use in uses}
    for use in [use for use, ops in uses.items() if len(ops) == 1 and (use[0], len(use[1]) - 1) in sizes]:
        for left_out in range(len(use[1])):
            like = (use[0], use[1][:left_out] + use[1][left_out + 1 :])
            if like in uses:
                uses[like] = sorted(uses[like] + uses.pop(use))
                break
