"""After a run: what may have been missed, and say so."""

from __future__ import annotations

from endoscope.capture.record.regions import versions_of
from endoscope.capture.views.trace_data import TraceData


def look_for_unseen(trace: TraceData) -> None:
    _overwritten_unseen(trace)
    for node, grad_fn in trace.recorder.strangers:
        message = f"a tensor computed by {grad_fn} came from code that could not be seen; it stands as a constant"
        trace.recorder.notice("opaque", message, trace.raw(node).position)


def _overwritten_unseen(trace: TraceData) -> None:
    """A version counter that moved without a recorded write: the kept value is not what it was."""
    recorder = trace.recorder
    now = versions_of(recorder.objects) if recorder.full else []
    if now == recorder.versions:  # nearly always
        return
    for slot, (version, current) in enumerate(zip(recorder.versions, now, strict=True)):
        if version == current or version < 0 or slot in recorder.kept:
            continue
        if not recorder.aliasing.explains(recorder.objects[slot], version):
            recorder.stale.add(slot)
            raw = trace.raw(recorder.slot_node[slot])
            message = f"the result of {raw.facts.type} was overwritten by code that could not be seen"
            recorder.notice("overwritten", message, raw.position)
