"""What the search for recurrence wants to know of a run, taken from what was recorded.

nodes ─► where in the source, by which function, in which module ─► the same statement?
      ─► which tensors were there before and can learn           ─► the same parameters?
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence, Set

from endoscope.analysis.recurrence import OpFacts
from endoscope.analysis.recurrence.arguments import signature
from endoscope.analysis.recurrence.facts import NONE
from endoscope.analysis.recurrence.statements import number_statements
from endoscope.capture.data.nodes import Node, slots_of
from endoscope.capture.data.record import Record
from endoscope.capture.views.unheard import unheard
from endoscope.schema.ops import Kind


def op_facts(record: Record, ops: Sequence[int], parents: Sequence[tuple[int, ...]], learned: Set[int]) -> OpFacts:
    """`ops` are nodes in the order of execution, `parents` belong to all nodes, `learned` are those that can learn."""
    nodes = record.nodes
    raw = [nodes[node] for node in ops]

    @functools.cache
    def around(call: int) -> tuple[Hashable, ...]:
        return tuple([entry.key for entry in record.calls.around(call)][::-1])

    def reads(op: int) -> tuple[tuple[int, int], ...]:
        read = [*raw[op].reads, *record.hidden_reads.get(ops[op], ())]
        slots = [slot for one in read for slot in slots_of(one)]
        makers = [record.slot_node[slot] for slot in slots]
        return tuple([(node, slot - nodes[node].slot) for node, slot in zip(makers, slots, strict=True)])

    def described(op: int) -> Hashable:
        with unheard():  # modes of the user need not know that somebody looks at arguments
            return raw[op].facts.type, signature(raw[op].args, raw[op].kwargs)

    return OpFacts(
        nodes=ops,
        types=[n.facts.type for n in raw],
        statements=statements_of(record, ops),
        parents=parents,
        parameters=_of_kind(record, Kind.PARAMETER) | learned,
        buffers=_of_kind(record, Kind.BUFFER),
        constants=_of_kind(record, Kind.CONSTANT) - learned,
        signature=described,
        modules=lambda op: around(raw[op].call),
        reads=reads,
    )


def statements_of(record: Record, ops: Sequence[int]) -> list[int]:
    """Equal numbers where the same statement ran again; see `number_statements`."""
    if record.statements is not None:
        return [record.statements.get(node, NONE) for node in ops]
    raw = [record.nodes[node] for node in ops]
    inner: list[Hashable] = [call.key for call in record.calls.entries]
    inner.append(0)  # the last one stands for OUTSIDE
    places = [
        (n.facts.type, id(n.code), n.instruction, inner[n.call] if n.facts.name not in _LEVELS else _level(n))
        if n.func is not None
        else None
        for n in raw
    ]
    return number_statements(places, lambda op: raw[op].position.place[0])


#: Steps into and out of function transforms -> which argument says how deep: nested ones stand on one line.
_LEVELS = {"_add_batch_dim": 2, "_remove_batch_dim": 1, "_wrap_for_grad": 1, "_unwrap_for_grad": 1}


def _level(node: Node) -> Hashable:
    return "level", node.args[_LEVELS[node.facts.name]]


def _of_kind(record: Record, kind: Kind) -> set[int]:
    return {node for node, source in record.sources.items() if source.kind is kind}
