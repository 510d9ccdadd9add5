"""What an operation reads, and through which argument."""

from __future__ import annotations

from endoscope.capture.data.arguments import tensor_places
from endoscope.capture.data.nodes import Read, slots_of
from endoscope.capture.data.record import Record


def named_reads(record: Record, node: int) -> list[tuple[Read, str]]:
    """What a node reads, each with the argument through which it arrives; "" for what is read without being one."""
    raw = record.nodes[node]
    places = ("0",) if raw.func is None else tensor_places(raw.args, raw.kwargs)  # an output reads one thing
    reads = list(zip(raw.reads, places, strict=False))
    hidden = (*raw.reads[len(reads) :], *record.hidden_reads.get(node, ()))
    return [*reads, *((read, "") for read in hidden)]


def parents_of(record: Record, node: int) -> set[int]:
    """The nodes whose results a node reads as arguments."""
    return {record.slot_node[slot] for read in record.nodes[node].reads for slot in slots_of(read)}
