"""What the page is told about a trace and about one of its operations, apart from numbers in tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from endoscope.errors import EndoscopeError
from endoscope.server import wire
from endoscope.server.traces.shown import MADE, ShownTrace

_MOST_NEIGHBOURS = 200
_MOST_LETTERS = 300  # of one argument
_MOST_DECISIONS = 500  # of a loop that asks in every pass


def trace_facts(shown: ShownTrace) -> wire.TraceFacts:
    """Totals, warnings, loops and branches."""
    with shown.lock:
        trace = shown.trace
        totals, decisions = trace.totals, list(trace.decisions)
        loops = list(trace.loops)
        return wire.TraceFacts(
            name=str(trace.name),
            operations=len(trace),
            parameters=int(totals.parameters),
            bytes=int(totals.tensor_bytes),
            flops=int(totals.flops),
            seconds=float(trace.timing.ops),
            complete=bool(trace.complete),
            finished=bool(trace.finished),
            warnings=[_notice(one) for one in trace.warnings],
            loops=[_loop(loop, loops) for loop in loops],
            decisions=[_decision(one) for one in decisions[:_MOST_DECISIONS]],
            decisionsLeftOut=max(0, len(decisions) - _MOST_DECISIONS),
            unused=shown.read.unused,
            passes=max((int(op.passes) for op in shown.read.ops), default=1),
            gradients=_has_gradients(shown),
        )


def _has_gradients(shown: ShownTrace) -> bool:
    try:
        return bool(shown.read.ops) and (shown.read.ops[0].gradient, True)[1]
    except EndoscopeError:
        return False


def _notice(notice: Any) -> wire.TraceNotice:
    return wire.TraceNotice(kind=str(notice.kind), text=str(notice.message), source=str(notice.source or ""))


def _loop(loop: Any, loops: list[Any]) -> wire.TraceLoop:
    return wire.TraceLoop(
        passes=int(loop.passes),
        depth=int(loop.depth),
        source=str(loop.source or ""),
        layers=[str(layer.label) for layer in loop.layers],
    )


def _decision(decision: Any) -> wire.TraceDecision:
    test = decision.test
    return wire.TraceDecision(
        kind=str(getattr(test, "kind", "test")),
        text=str(getattr(test, "text", "")),
        source=f"{test.file}:{test.line}" if test.file else "",
        unknown=str(getattr(test, "reason", "")),
        value=str(decision.value)[:_MOST_LETTERS],
        branch=str(decision.branch),
        settled=bool(decision.settled),
        nth=int(decision.nth),
        steering=_labels(decision.steering),
        ops=_labels(decision.branch_ops),
    )


def _labels(ops: Iterable[Any]) -> list[str]:
    return [str(op.label) for op in ops]


def op_facts(shown: ShownTrace, label: str) -> wire.TraceOp:
    """Everything worth reading about one operation."""
    with shown.lock:
        op = shown.op(label)
        call = op.function
        is_made = str(op.kind) in MADE
        parents, children = _labels(op.parents), _labels(op.children)
        return wire.TraceOp(
            label=str(op.label),
            layer=str(op.layer),
            passNumber=int(op.pass_),
            passes=int(op.passes),
            kind=str(op.kind),
            type=str(op.type),
            path=str(op.path),
            function=str(call.name) if is_made else "",
            inPlace=bool(call.in_place) if is_made else False,
            gradFn=str(call.grad_fn or "") if is_made else "",
            arguments=_arguments(call) if is_made else [],
            outputs=[_output(meta) for meta in op.metas],
            seconds=float(op.seconds),
            flops=None if op.flops is None else int(op.flops),
            bytes=int(op.bytes),
            modules=[str(module) for module in op.place.modules],
            functions=[str(one) for one in op.functions],
            left=[str(one) for one in op.place.left],
            source=str(op.source or ""),
            parents=parents[:_MOST_NEIGHBOURS],
            children=children[:_MOST_NEIGHBOURS],
            neighboursLeftOut=max(0, len(parents) - _MOST_NEIGHBOURS) + max(0, len(children) - _MOST_NEIGHBOURS),
            edits=[str(edit) for edit in op.edited],
            keys=[str(key) for key in op.keys],
        )


def _arguments(call: Any) -> list[str]:
    named = {str(number): value for number, value in enumerate(call.args)} | dict(call.kwargs)
    return [f"{name}: {_argument(value)}" for name, value in named.items()]


def _argument(value: Any) -> str:
    """Operations by their labels, also in lists."""
    if hasattr(value, "label") and hasattr(value, "metas"):
        return str(value.label)
    if isinstance(value, (list, tuple)) and any(hasattr(one, "metas") for one in value):
        return f"[{', '.join(map(_argument, value))}]"[:_MOST_LETTERS]
    return repr(value)[:_MOST_LETTERS]


def _output(meta: Any) -> wire.TraceOutput:
    return wire.TraceOutput(
        shape=[int(size) for size in meta.shape],
        dtype=str(meta.dtype).removeprefix("torch."),
        device=str(meta.device),
        bytes=int(meta.bytes),
        learns=bool(meta.requires_grad),
    )
