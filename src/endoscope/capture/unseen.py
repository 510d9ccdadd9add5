"""After a run: what may have been missed, and say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from endoscope.capture.functions import SHARING, UNINITIALISED
from endoscope.capture.records import Departure, slots_of
from endoscope.capture.source import source_line
from endoscope.schema.ops import Kind, Notice

if TYPE_CHECKING:
    from endoscope.capture.result import Trace


#: Functions for which the values of an argument do not matter: they take its shape, or hand its memory on.
SHAPE_READERS = frozenset(
    """zeros_like ones_like empty_like full_like rand_like randn_like new_zeros new_ones new_full new_empty detach
    view view_as reshape flatten unflatten transpose permute movedim swapaxes T t mT getitem select narrow unbind
    chunk split tensor_split unfold expand expand_as diagonal squeeze unsqueeze as_strided data to contiguous set
    resize""".split()
)


def look_for_unseen(trace: Trace) -> None:
    _overwritten_unheard(trace)
    _left_for_python(trace)
    _made_unheard(trace)
    _read_unfilled(trace)


def _overwritten_unheard(trace: Trace) -> None:
    """A version counter that moved without a heard write: the kept value is not what it was."""
    recorder = trace.recorder
    if not recorder.full:
        return
    kept, versions = recorder.kept, recorder.versions
    for slot, tensor in enumerate(recorder.objects):
        if versions[slot] >= 0 and slot not in kept and not recorder.aliasing.explains(tensor, versions[slot]):
            recorder.stale.add(slot)
            raw = trace.raw(recorder.slot_node[slot])
            message = f"the result of {raw.facts.type} was overwritten by code that could not be heard"
            _say(trace, Notice("overwritten", message, source_line(raw.code, raw.instruction)))


def _left_for_python(trace: Trace) -> None:
    recorder = trace.recorder
    for departure in recorder.departures:
        if not departure.control and (departure.name in SHARING or _depends_on_input(trace, departure)):
            message = f"a value left torch through {departure.name}(); if it comes back, that dependence cannot be seen"
            _say(trace, Notice("left", message, source_line(departure.code, departure.instruction)))


def _read_unfilled(trace: Trace) -> None:
    """Uninitialised memory that is computed with: a bug, or somebody filled it unheard."""
    recorder = trace.recorder
    unfilled = {raw[5]: raw[0].type for raw in recorder.nodes if raw[0].type in UNINITIALISED}
    for raw in recorder.nodes if unfilled else ():
        if raw[0].type in SHAPE_READERS or raw[1] is None:
            continue
        for read in raw[4]:
            if isinstance(read, int) and read in unfilled and trace.values.meta(read).numel:
                message = f"{raw[0].type} reads memory that {unfilled[read]} left unfilled: it was written unheard"
                _say(trace, Notice("unfilled", message, source_line(raw[10], raw[11])))


def _depends_on_input(trace: Trace, departure: Departure) -> bool:
    graph, slot_node = trace.graph_data, trace.recorder.slot_node
    nodes = [slot_node[slot] for read in departure.reads for slot in slots_of(read)]
    return any(graph.from_input[node] or graph.kinds[node] is Kind.PARAMETER for node in nodes)


def _made_unheard(trace: Trace) -> None:
    for node, grad_fn in trace.recorder.strangers:
        raw = trace.raw(node)
        message = f"a tensor computed by {grad_fn} came from code that could not be heard; it stands as a constant"
        _say(trace, Notice("opaque", message, source_line(raw.code, raw.instruction)))


def _say(trace: Trace, notice: Notice) -> None:
    if notice not in trace.recorder.notices:
        trace.recorder.notices.append(notice)
