"""What `find_recurrence` wants to know, taken from a recorder."""

from __future__ import annotations

from collections.abc import Hashable

from endoscope.analysis.recurrence import OpFacts
from endoscope.analysis.recurrence.arguments import signature
from endoscope.analysis.recurrence.statements import number_statements
from endoscope.capture.recorder import Recorder
from endoscope.capture.records import slots_of
from endoscope.schema.ops import Kind


def op_facts(recorder: Recorder, ops: list[int], parents: list[tuple[int, ...]]) -> OpFacts:
    nodes = recorder.nodes
    raw = [nodes[node] for node in ops]
    around = [call.module for call in recorder.calls.entries]
    inner = [module if isinstance(module, str) else id(module) for module in around]
    inner.append(0)  # call -1: outside of every module
    places = [(n[0].type, id(n[10]), n[11], inner[n[12]]) if n[1] is not None else None for n in raw]

    def modules(op: int) -> tuple[Hashable, ...]:
        call, found = raw[op][12], []
        while call >= 0:
            found.append(inner[call])
            call = recorder.calls.entries[call].parent
        return tuple(reversed(found))

    def reads(op: int) -> tuple[tuple[int, int], ...]:
        heard = [*raw[op][4], *recorder.hidden_reads.get(ops[op], ())]
        slots = [slot for read in heard for slot in slots_of(read)]
        makers = [recorder.slot_node[slot] for slot in slots]
        return tuple([(node, slot - nodes[node][5]) for node, slot in zip(makers, slots, strict=True)])

    parameters, buffers, constants = (
        {node for node, source in recorder.sources.items() if source.kind is kind}
        for kind in (Kind.PARAMETER, Kind.BUFFER, Kind.CONSTANT)
    )
    learned = {node for node in constants if _is_learned(recorder, nodes[node][5])}
    return OpFacts(
        nodes=ops,
        types=[n[0].type for n in raw],
        statements=number_statements(places, lambda op: raw[op][10]),
        parents=parents,
        parameters=parameters | learned,
        buffers=buffers,
        constants=constants - learned,
        signature=lambda op: (raw[op][0].type, signature(raw[op][2], raw[op][3])),
        modules=modules,
        reads=reads,
    )


def _is_learned(recorder: Recorder, slot: int) -> bool:
    """Functional code keeps its weights in plain tensors that require a gradient."""
    tensor = recorder.dereference(recorder.objects[slot])
    return tensor is not None and bool(tensor.requires_grad) and tensor.grad_fn is None
