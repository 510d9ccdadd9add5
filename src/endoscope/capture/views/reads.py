"""What an operation reads, and through which argument."""

from __future__ import annotations

from endoscope.capture.record.aliasing import Read
from endoscope.capture.record.leaves import tensor_places
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.records import slots_of


def named_reads(recorder: Recorder, node: int) -> list[tuple[Read, str]]:
    """What a node reads, each with the argument through which it arrives; "" for what is read without being one."""
    raw = recorder.nodes[node]
    places = ("0",) if raw.func is None else tensor_places(raw.args, raw.kwargs)  # an output reads one thing
    reads = list(zip(raw.reads, places, strict=False))
    hidden = (*raw.reads[len(reads) :], *recorder.hidden_reads.get(node, ()))
    return [*reads, *((read, "") for read in hidden)]


def parents_of(recorder: Recorder, node: int) -> set[int]:
    """The nodes whose results a node reads as arguments."""
    return {recorder.slot_node[slot] for read in recorder.nodes[node].reads for slot in slots_of(read)}
