"""What the search for recurrence knows of a run, and the words it uses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass

# What an operation is while layers are being found; a number from 0 up is its layer.
FREE = -1  # nothing is known yet
WALL = -2  # it uses parameters that nothing else uses: a layer of its own, nothing repeats across it
EDGE = -3  # an input or output
BODY = -4  # part of a loop without parameters, in the first pass
TWIN = -5  # the same in a later pass

NONE = -1  # the statement of an input or output

Gap = tuple[int, int]  # a stretch without parameters: its first operation, and the one that ends it


@dataclass(frozen=True, slots=True)
class OpFacts:
    """Operations in the order of execution; lists run over operations, functions answer for one of them.

    Nodes are numbered in the order of execution, too; parameters and the like are nodes but no operations. The
    functions are asked only where it matters, for few operations.
    """

    nodes: Sequence[int]  # operation -> its node
    types: Sequence[str]
    statements: Sequence[int]  # a number from 0 up for each place in the source, function and module; see `NONE`
    parents: Sequence[tuple[int, ...]]  # node -> nodes it reads, parameters and all
    parameters: Set[int]  # nodes
    buffers: Set[int]  # nodes
    constants: Set[int]  # nodes of other tensors that were there before
    signature: Callable[[int], Hashable]  # function and plain arguments
    modules: Callable[[int], tuple[Hashable, ...]]  # modules around it, outermost first
    reads: Callable[[int], tuple[tuple[int, int], ...]]  # node and number of the output, for each tensor it reads

    def likeness(self, op: int) -> Hashable:
        """Equal for operations that could not be told apart but by what they compute on: see also `modules`."""
        fixed = [p for p in self.parents[self.nodes[op]] if p in self.buffers or p in self.constants]
        return self.signature(op), tuple(fixed)
