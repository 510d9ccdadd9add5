"""What the search for recurrence wants to know of a run, taken from what was recorded.

nodes ─► where in the source, by which function, in which module ─► the same statement?
      ─► which tensors were there before and can learn           ─► the same parameters?
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence, Set

import torch

from endoscope.analysis.recurrence import OpFacts
from endoscope.analysis.recurrence.arguments import signature
from endoscope.analysis.recurrence.statements import number_statements
from endoscope.capture.patch.torch_private import DisableTorchFunction
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.records import Node, slots_of
from endoscope.schema.ops import Kind


def op_facts(recorder: Recorder, ops: Sequence[int], parents: Sequence[tuple[int, ...]], learned: Set[int]) -> OpFacts:
    """`ops` are nodes in the order of execution, `parents` belong to all nodes, `learned` see below."""
    nodes, calls = recorder.nodes, recorder.calls.entries
    raw = [nodes[node] for node in ops]
    inner: list[Hashable] = [call.key for call in calls]
    inner.append(0)  # the last one stands for OUTSIDE
    places = [
        (n.facts.type, id(n.code), n.instruction, inner[n.call] if n.facts.name not in _LEVELS else _level(n))
        if n.func is not None
        else None
        for n in raw
    ]

    @functools.cache
    def around(call: int) -> tuple[Hashable, ...]:
        return tuple([entry.key for entry in recorder.calls.around(call)][::-1])

    def reads(op: int) -> tuple[tuple[int, int], ...]:
        read = [*raw[op].reads, *recorder.hidden_reads.get(ops[op], ())]
        slots = [slot for one in read for slot in slots_of(one)]
        makers = [recorder.slot_node[slot] for slot in slots]
        return tuple([(node, slot - nodes[node].slot) for node, slot in zip(makers, slots, strict=True)])

    def described(op: int) -> Hashable:
        with DisableTorchFunction():  # modes of the user need not know that somebody looks at arguments
            return raw[op].facts.type, signature(raw[op].args, raw[op].kwargs)

    return OpFacts(
        nodes=ops,
        types=[n.facts.type for n in raw],
        statements=number_statements(places, lambda op: raw[op].code),
        parents=parents,
        parameters=_of_kind(recorder, Kind.PARAMETER) | learned,
        buffers=_of_kind(recorder, Kind.BUFFER),
        constants=_of_kind(recorder, Kind.CONSTANT) - learned,
        signature=described,
        modules=lambda op: around(raw[op].call),
        reads=reads,
    )


#: Steps into and out of function transforms -> which argument says how deep: nested ones stand on one line.
_LEVELS = {"_add_batch_dim": 2, "_remove_batch_dim": 1, "_wrap_for_grad": 1, "_unwrap_for_grad": 1}


def _level(node: Node) -> Hashable:
    return "level", node.args[_LEVELS[node.facts.name]]


def learned_tensors(recorder: Recorder) -> Set[int]:
    """Weights that belong to no module: functional code keeps them in plain tensors that require a gradient.

    To be asked when the traced code has just ended: later such a tensor may be gone or frozen.
    """
    candidates = _of_kind(recorder, Kind.CONSTANT) | _of_kind(recorder, Kind.INPUT)
    with DisableTorchFunction():
        return {node for node in candidates if _is_learned(recorder, node)}


def _of_kind(recorder: Recorder, kind: Kind) -> set[int]:
    return {node for node, source in recorder.sources.items() if source.kind is kind}


def _is_learned(recorder: Recorder, node: int) -> bool:
    tensor = recorder.dereference(recorder.objects[recorder.nodes[node].slot])
    if recorder.sources[node].kind is Kind.INPUT:  # one that requires a gradient is still an input
        return isinstance(tensor, torch.nn.Parameter)
    return tensor is not None and bool(tensor.requires_grad) and tensor.grad_fn is None
