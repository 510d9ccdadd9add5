"""Does the graph know every way from an input to an output? Change an input, run plainly, see which outputs move.

The other checks ask whether what is in the trace is right. This one sees what is missing: an output that moves with an
input must be reached by it in the graph. The opposite is no fault: an output may well ignore an input that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from endoscope.analysis.structure.reach import descend
from endoscope.capture.change.state import State
from endoscope.capture.data.nodes import slots_of
from endoscope.capture.record.leaves import joined_paths, named_leaves
from endoscope.capture.record.regions import storage_key
from endoscope.capture.views.result import Trace
from endoscope.replay.compare import same
from endoscope.replay.report import Report
from endoscope.schema.ops import Kind

#: Of a target with more inputs than this a sample is changed.
MOST_INPUTS = 16

Outputs = dict[str, Tensor]


def check_inputs(report: Report, trace: Trace, state: State, run: Callable[[], Any]) -> None:
    """`run` runs the target plainly; `state` puts back what that changes."""
    try:
        _check(report, trace, state, run)
    except Exception as error:  # tensors without numbers, subclasses that cannot be compared
        told = f"which outputs move with which inputs: comparing them raised {type(error).__name__}: {error}"
        report.unchecked.append(told)


def _check(report: Report, trace: Trace, state: State, run: Callable[[], Any]) -> None:
    groups = _inputs_by_memory(trace)
    if not groups or not trace.of_kind(Kind.OUTPUT):
        return
    if len(groups) > MOST_INPUTS:
        report.unchecked.append(f"of {len(groups)} inputs {MOST_INPUTS} were changed to see which outputs move")
        groups = groups[:: len(groups) // MOST_INPUTS + 1]
    with _put_back(state):
        before = _outputs(run)
    for nodes in groups:
        tensors = [trace.recorder.objects[trace.raw(node).slot] for node in nodes]
        moved = _moved(state, run, tensors, before)
        unknown = moved - _reached(trace, nodes)
        if unknown and _is_steady(state, run, before):
            _tell(report, trace, nodes, sorted(unknown))


def _tell(report: Report, trace: Trace, nodes: Sequence[int], paths: Sequence[str]) -> None:
    changed = " and ".join(trace.op_at(node).label for node in nodes)
    which = ", ".join(path or "(result)" for path in paths)
    left = _left_for_python(trace, nodes)
    if left:
        report.unchecked.append(
            f"output {which} changes with {changed} though no operation leads there; values left torch through "
            f"{', '.join(left)}, and may have come back or chosen what runs"
        )
    else:
        report.fail("inputs", f"output {which} changes with {changed}, and no path of the graph leads there", None)


def _inputs_by_memory(trace: Trace) -> list[list[int]]:
    """Input nodes; those that share memory are changed together."""
    groups: dict[Any, list[int]] = {}
    for node in trace.of_kind(Kind.INPUT):
        tensor = trace.recorder.objects[trace.raw(node).slot]
        if _can_be_changed(tensor):
            groups.setdefault(storage_key(tensor) or f"node {node}", []).append(node)
    return list(groups.values())


def _can_be_changed(tensor: Tensor) -> bool:
    plain = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized and not tensor.is_meta
    plain = plain and type(tensor).__torch_dispatch__ is Tensor.__torch_dispatch__
    spread = plain and any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return plain and not spread and tensor.numel() > 0


def _reached(trace: Trace, nodes: Sequence[int]) -> set[str]:
    """Paths of the outputs to which the graph leads from these nodes."""
    below, sources = descend(trace.graph_data.parents, list(nodes)), trace.recorder.sources
    return {sources[node].name for node in trace.of_kind(Kind.OUTPUT) if below[node]}


def _left_for_python(trace: Trace, nodes: Sequence[int]) -> list[str]:
    """Through which functions a value that depends on these nodes left torch."""
    below, slot_node = descend(trace.graph_data.parents, list(nodes)), trace.recorder.slot_node
    left = [d for d in trace.recorder.departures if any(below[slot_node[s]] for r in d.reads for s in slots_of(r))]
    return sorted({f"{departure.name}()" for departure in left})


def _moved(state: State, run: Callable[[], Any], tensors: Sequence[Tensor], before: Outputs) -> set[str]:
    moved: set[str] = set()
    for attempt in range(_MOST_CHANGES):
        try:
            with _put_back(state), _changed(tensors, attempt):
                now = _outputs(run)
        except Exception:  # an index out of range, a shape that does not fit: this change says nothing
            continue
        moved |= {path for path, value in now.items() if path in before and _differ(before[path], value)}
        if moved:
            break
    return moved


def _differ(before: Tensor, now: Tensor) -> bool:
    """Numbers in the same shape: a size may depend on values that an operation does not read."""
    return before.shape == now.shape and before.dtype == now.dtype and not same(before, now)


def _outputs(run: Callable[[], Any]) -> Outputs:
    found = joined_paths(named_leaves(run()))
    return {path: value.detach().clone() for path, value in found if isinstance(value, Tensor)}


@contextmanager
def _put_back(state: State) -> Iterator[None]:
    state.restore()
    try:
        yield
    finally:
        state.restore()


def _is_steady(state: State, run: Callable[[], Any], before: Outputs) -> bool:
    """The same inputs give the same outputs: then what moved did so because of the change."""
    with _put_back(state):
        again = _outputs(run)
    return again.keys() == before.keys() and all(same(before[path], again[path]) for path in before)


_MOST_CHANGES = 3


@contextmanager
def _changed(tensors: Sequence[Tensor], attempt: int) -> Iterator[None]:
    """Other numbers in the same memory meanwhile; `.data` leaves the version counter alone, which traces look at."""
    kept = [tensor.detach().clone() for tensor in tensors]
    try:
        for tensor in tensors:
            _write(tensor, list(_others(tensor.detach()))[attempt])
        yield
    finally:
        for tensor, value in zip(tensors, kept, strict=True):
            _write(tensor, value)


def _write(tensor: Tensor, value: Tensor) -> None:
    with torch.no_grad(), torch.inference_mode(tensor.is_inference()):
        tensor.data.copy_(value)


def _others(value: Tensor) -> Iterator[Tensor]:
    if value.dtype is torch.bool:
        yield from (value.logical_not(), torch.zeros_like(value), torch.ones_like(value))
    elif value.is_floating_point() or value.is_complex():
        wide = value.float() if value.is_floating_point() and value.dtype.itemsize < 2 else value
        yield from (part.to(value.dtype) for part in (wide * 1.0625 + 0.03125, -wide - 0.5, wide * 0 + 1))
    else:  # indices must stay valid: values that are there already, in other places
        flat = value.reshape(-1)
        yield from (flat.roll(1).reshape(value.shape), flat.min().expand(value.shape).clone(), value + 1)
