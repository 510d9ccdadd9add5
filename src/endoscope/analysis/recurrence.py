"""Which operations are passes of one layer, by the three conditions of the TorchLens paper.

    OpFacts ─► 1. the same function on the same parameters              (shared_parameters)
            ─► 3. statements run back to back, without parameters       (repeats.fold, per stretch between these)
            ─► 2. what repeats beside the passes of 1., outwards        (neighbours.grow)
            ─► 3. the same sequence written out twice                   (_written_out)
            ─► loops in time, layers that are only used again           (_loops)

What makes this reliable is that the place in the source is known: two operations are *the same statement* if the same
instruction ran the same function in the same module. A loop in time runs the same statements again on what they
made before. Code that spells a loop out, line by line, is recognised as well, but has to repeat itself exactly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count
from typing import Literal

from endoscope.analysis.flops import COPIES, VIEWS
from endoscope.analysis.neighbours import grow
from endoscope.analysis.repeats import Fold, find_runs, fold

_DEEPEST_WEIGHT = 8  # operations between a parameter and the weight that is made from it
_MOVES = frozenset(VIEWS) | frozenset(COPIES)


@dataclass(frozen=True, slots=True)
class OpFacts:
    """Operations in the order of execution; lists run over operations, functions answer for one of them.

    Nodes are numbered in the order of execution, too; parameters and the like are nodes but no operations. The
    functions are asked only where it matters, for few operations.
    """

    nodes: Sequence[int]  # operation -> its node
    types: Sequence[str]
    statements: Sequence[Hashable | None]  # function, instruction, innermost module; None for inputs and outputs
    parents: Sequence[tuple[int, ...]]  # node -> nodes it reads, parameters and all
    parameters: Set[int]  # nodes
    constants: Set[int]  # nodes of buffers and other tensors that were there before
    signature: Callable[[int], Hashable]  # function and plain arguments
    modules: Callable[[int], tuple[Hashable, ...]]  # modules around it, outermost first
    reads: Callable[[int], tuple[tuple[int, int], ...]]  # node and number of the output, for each tensor it reads


@dataclass(frozen=True, slots=True)
class Loop:
    """Operations that run again on what they made before; numbers are positions in the lists of `OpFacts`."""

    first: int  # the first operation of the first pass
    body: tuple[int, ...]  # one operation for each layer of the loop, from the first pass that has it
    passes: int  # of the layer that runs most often, each time the loop is entered
    parent: int | None  # the loop around it, as its position in `Recurrence.loops`
    kind: Literal["parameters", "adjacent"]  # what gave it away: re-used parameters, or back-to-back repeats


@dataclass(frozen=True, slots=True)
class Recurrence:
    """What repeats in a run."""

    keys: list[int | None]  # operation -> layer; equal for passes of one layer, None for a layer of one pass
    loops: tuple[Loop, ...]  # outer before inner
    reused: frozenset[int]  # layers that run several times without being part of a loop: siamese branches


def find_recurrence(facts: OpFacts) -> Recurrence:
    layers, walls = shared_parameters(facts)
    number = defaultdict(count().__next__).__getitem__
    symbols = [number(statement) for statement in facts.statements]
    anchored = max(layers, default=-1) >= 0
    repeats = number(object()) < len(symbols)  # the statements seen so far: fewer than operations
    if repeats:
        _soften(walls, symbols, layers)
    folds = _back_to_back(facts, symbols, layers, walls) if repeats else []
    twins = {op: twin for one in folds for op, twin in one.twins.items()}
    if anchored:
        kept = [op for op in range(len(symbols)) if op not in twins] if twins else range(len(symbols))
        grow(facts, kept, layers, walls, symbols)
    written = _written_out(facts, layers, walls, twins, {op for one in folds for op in one.body})
    for one in written:
        twins |= one.twins
    keys = _keys(layers, folds + written, twins)
    return _with_loops(facts, keys, folds + written, twins)
