"""Is anything missing? Compare what the dispatcher executed with what was recorded.

The target runs once more under a dispatch mode, which sees every kernel that torch really runs. Each must have been
started from inside a call that the recorder recorded; the calls recorded must be those of the trace.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch

from endoscope.capture.change import editor
from endoscope.capture.data.nodes import Node, Position
from endoscope.capture.patch.torch_private import DisableTorchFunction, TorchDispatchMode
from endoscope.capture.patch.torch_private import backward_task as _task
from endoscope.capture.record import hot_path, opaque, recorder
from endoscope.capture.record.source import user_position
from endoscope.capture.trace import Arguments
from endoscope.capture.trace import trace as run_trace
from endoscope.capture.views.result import Trace
from endoscope.replay.report import Report

#: Kernels that only hand a tensor on; Python objects are made with them without any function being called.
HANDING_ON = frozenset("detach alias lift_fresh lift_fresh_copy lift _local_scalar_dense view_as".split())
#: Marks for a profiler compute nothing, and are not recorded.
MARKS = "profiler"

#: Functions of ours inside of which kernels belong to an operation, or are ours.
_RECORDING = frozenset(
    "handle record_unusual _open _leave record_script record_transform _copy _meet _add_output add_source".split()
)
_RECORDING_FILES = frozenset(module.__file__ for module in (hot_path, editor, recorder, opaque))


class Accountant(TorchDispatchMode):
    """Notes every kernel that was started outside a recorded call."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = 0
        self.missing: list[tuple[str, Position]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _task() == -1:
            self.seen += 1
            space, _, name = func._schema.name.partition("::")
            if name not in HANDING_ON and space != MARKS and not _inside_recorded_call(sys._getframe(1)):
                self.missing.append((name, user_position()))
        with DisableTorchFunction():  # or the recorder would take this call for one of the target's
            return func(*args, **(kwargs or {}))


def _inside_recorded_call(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _RECORDING and frame.f_code.co_filename in _RECORDING_FILES:
            return True
        frame = frame.f_back
    return False


def traced_under(accountant: Accountant, target: Any, args: Any, kwargs: Any, **options: Any) -> Trace:
    """Trace the target while the accountant watches the dispatcher."""
    with accountant:
        return run_trace(target, Arguments(tuple(args), kwargs), **options)


def report_missing(report: Report, accountant: Accountant) -> None:
    for name, position in accountant.missing:
        report.fail("complete", f"torch executed {name} outside every operation of the trace ({position.line})")


def check_complete(report: Report, trace: Trace, target: Any, args: Any, kwargs: Any, edit: Any = None) -> None:
    """Run the target once more and compare what is executed with a trace that was taken earlier, edits included."""
    accountant = Accountant()
    if trace.recorder.random_state is not None:
        torch.set_rng_state(trace.recorder.random_state)
    try:
        again = traced_under(accountant, target, args, kwargs, save="none", seed=trace.seed, edit=edit)
    except Exception as error:
        report.unchecked.append(f"completeness: a run under a dispatch mode raised {type(error).__name__}: {error}")
        return
    report_missing(report, accountant)
    _compare_structure(report, trace, again)


def _compare_structure(report: Report, trace: Trace, again: Trace) -> None:
    """The operations recorded now must be those of the trace, in the same order."""
    then = [raw.facts.type for raw in _operations(trace)]
    now = [raw.facts.type for raw in _operations(again)]
    if then == now:
        return
    position = next((i for i, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
    if len(now) >= len(then):
        raw = _operations(again)[position]
        report.fail("complete", f"a second run performs {raw.facts.type} at {raw.position.line}, "
                    "the trace does not")  # fmt: skip
    else:
        raw = _operations(trace)[position]
        report.fail(
            "complete", f"the trace has {raw.facts.type} at {raw.position.line}, a second run does not perform it"
        )


def _operations(trace: Trace) -> list[Node]:
    sources = trace.recorder.sources
    return [trace.raw(node) for node in range(len(trace.recorder.nodes)) if node not in sources]
