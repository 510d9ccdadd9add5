"""Condition 3: a sequence without parameters that runs back to back is a loop: `XYZXYZ`, but not `XYZAXYZ`."""

from __future__ import annotations

from collections.abc import Sequence

from endoscope.analysis.flops import COPIES, VIEWS
from endoscope.analysis.recurrence.facts import BODY, EDGE, FREE, TWIN, Gap, OpFacts
from endoscope.analysis.recurrence.repeats import Fold, Links, find_runs, fold

_MOVES = frozenset(VIEWS) | frozenset(COPIES)


def find_back_to_back(facts: OpFacts, states: list[int], gaps: Sequence[Gap]) -> list[Fold]:
    """Loops of the source: the same statements run again on what they made before."""
    folds: list[Fold] = []
    links = _reading_each_other(facts, states)
    for start, end in gaps:
        ran = facts.statements[start:end]
        if len(set(ran)) < len(ran):
            ops = [op for op in range(start, end) if states[op] == FREE]
            folds += fold(ops, [facts.statements[op] for op in ops], end, links)
    for one in folds:
        for op in one.body:
            states[op] = BODY
    for one in folds:
        for op in one.twins:
            states[op] = TWIN
    return folds


def _reading_each_other(facts: OpFacts, states: list[int]) -> Links:
    """Does a pass read what the pass before has made, in the same modules?"""
    sources = {facts.nodes[op] for op, state in enumerate(states) if state == EDGE}
    sources |= facts.parameters | facts.buffers | facts.constants
    nodes, parents, modules = facts.nodes, facts.parents, facts.modules

    def linked(before: int, start: int, end: int) -> bool:
        low, high = nodes[before], nodes[start]
        for op in range(start, end):
            for parent in parents[nodes[op]] if states[op] != EDGE else ():
                if low <= parent < high and parent not in sources:
                    return modules(before) == modules(start)
        return False

    return lambda starts: [linked(*three) for three in zip(starts, starts[1:], starts[2:], strict=False)]


def find_written_out(facts: OpFacts, states: list[int]) -> list[Fold]:
    """Sequences that the source spells out more than once: `x.cos().relu().cos().relu()`.

    Here nothing but likeness speaks for a loop. So each operation has to work on the result of the one before, with
    the same plain arguments in the same modules, and one function twice is not enough, whatever layout it takes.
    """
    folds: list[Fold] = []
    if states.count(FREE) < 4:
        return folds
    for chain in _chains(facts, states):
        types = [facts.types[op] for op in chain]
        if len(set(types)) == len(types) or all(period < 2 for _, period, _ in find_runs(types)):
            continue
        for start, period, stop in find_runs([(facts.likeness(op), facts.modules(op)) for op in chain]):
            if len(set(types[start : start + period]) - _MOVES) < 2 or states[chain[start]] != FREE:
                continue
            stop -= (stop - start) % period
            twins = {chain[n]: chain[start + (n - start) % period] for n in range(start + period, stop)}
            folds.append(Fold(chain[start : start + period], (stop - start) // period, twins))
            for op in chain[start:stop]:
                states[op] = TWIN if op in twins else BODY
    return folds


def _chains(facts: OpFacts, states: list[int]) -> list[list[int]]:
    """Four or more operations without a layer, each on the result of the one before."""
    chains: list[list[int]] = []
    chain: list[int] = []
    for op in [op for op, state in enumerate(states) if state == FREE]:
        if chain and op == chain[-1] + 1 and facts.nodes[chain[-1]] in facts.parents[facts.nodes[op]]:
            chain.append(op)
            continue
        if len(chain) >= 4:
            chains.append(chain)
        chain = [op]
    if len(chain) >= 4:
        chains.append(chain)
    return chains
