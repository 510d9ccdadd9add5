"""From what was recorded to a graph: kinds, edges, orphans, layers and passes.

Record ─► parents and kinds of every node ─► what comes from an input or reaches an output
         ─► the others are orphans
         ─► what repeats (facts.py, analysis/recurrence) ─► layers and labels (analysis/naming), when first read
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import cached_property, partial

from endoscope.analysis.recurrence import OpFacts, Recurrence, find_recurrence
from endoscope.analysis.recurrence.naming import Names, name_layers
from endoscope.analysis.structure.reach import ascend, descend
from endoscope.capture.data.record import Record
from endoscope.capture.views.facts import op_facts
from endoscope.schema.ops import NUMBERED, Kind


@dataclass
class Graph:
    """Everything by node number (order of execution)."""

    kinds: list[Kind]
    parents: list[tuple[int, ...]]
    from_input: bytearray
    to_output: bytearray
    ops: list[int]  # numbered nodes, inputs first
    orphans: list[int]
    facts: Callable[[], OpFacts]
    passes_of_calls: list[int]  # call -> n-th call of its module, from 1

    @cached_property
    def recurrence(self) -> Recurrence:
        """What repeats; numbers in it are positions in `ops`."""
        return find_recurrence(self.facts())

    @cached_property
    def names(self) -> Names:
        """Layers and labels over `ops`."""
        return name_layers(self.recurrence.facts.types, self.recurrence.keys)


def assemble(record: Record, learned: Set[int]) -> Graph:
    kinds, parents = _kinds_and_parents(record)
    inputs = [n for n, source in record.sources.items() if source.kind == Kind.INPUT]
    outputs = [n for n, source in record.sources.items() if source.kind == Kind.OUTPUT]
    from_input = descend(parents, [*inputs, *_handed_in(record)])
    to_output = ascend(parents, outputs)
    ops: list[int] = list(inputs)
    orphans: list[int] = []
    for node, kind in enumerate(kinds):
        if kind in _MADE:
            (ops if from_input[node] or to_output[node] else orphans).append(node)
        elif kind is Kind.OUTPUT:
            ops.append(node)
    passes = [call.pass_ for call in record.calls.entries]
    facts = partial(op_facts, record, ops, parents, learned)
    return Graph(kinds, parents, from_input, to_output, ops, orphans, facts, passes)


def _handed_in(record: Record) -> list[int]:
    """In a block, what goes into the target may have been computed there: it counts as an input, too."""
    return [record.slot_node[slot] for call in record.calls.entries if call.root for slot in call.entered]


_MADE = (Kind.COMPUTED, Kind.GENERATED)
assert set(_MADE) < NUMBERED


def _kinds_and_parents(record: Record) -> tuple[list[Kind], list[tuple[int, ...]]]:
    slot_node, sources, hidden = record.slot_node, record.sources, record.hidden_reads
    kinds: list[Kind] = []
    parents: list[tuple[int, ...]] = []
    computed, generated = Kind.COMPUTED, Kind.GENERATED
    for number, node in enumerate(record.nodes):
        reads = node.reads
        if hidden and number in hidden:
            reads = reads + hidden[number]
        if len(reads) == 1 and reads[0].__class__ is int:
            above: tuple[int, ...] = (slot_node[reads[0]],)
        else:
            seen: dict[int, None] = {}
            for read in reads:
                if isinstance(read, int):
                    seen[slot_node[read]] = None
                else:
                    for slot in read:
                        seen[slot_node[slot]] = None
            above = tuple(seen)
        parents.append(above)
        if number in sources:
            kinds.append(sources[number].kind)
        else:
            kinds.append(computed if above else generated)
    return kinds, parents
