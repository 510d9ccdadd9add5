"""Views that are edited.

An edited value has memory of its own. If the operation returned a view, or its argument itself, later writes on one
side are then not seen on the other. A trace says who reads which write in the run without the edit; where that would
be different now, the trace alone cannot tell what the model would compute.
"""

from __future__ import annotations

import torch

from endoscope.capture.data.nodes import Node, Read, slots_of
from endoscope.capture.record.leaves import argument_tensors
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.regions import storage_key
from endoscope.capture.views.result import Trace
from endoscope.errors import CannotReplay
from endoscope.schema.ops import Kind

#: They copy only what does not lie in memory as they want it.
_COPYING_IF_NEEDED = frozenset("contiguous reshape flatten ravel unflatten to type float double half view_as".split())


def check_memory(trace: Trace, edited: list[int], instead: str) -> None:
    """Raise if a write would be seen by others than the trace says once these nodes are edited."""
    for node in edited:
        raw = trace.raw(node)
        for slot in range(raw.slot, raw.slot + raw.outputs):
            if not _is_written(trace, raw, slot):
                _Sides(trace, node, slot, instead).check()


def _is_written(trace: Trace, raw: Node, slot: int) -> bool:
    """An operation that works in place is edited in place: everybody sees it as before."""
    written = list(raw.facts.written(raw.args, raw.kwargs or {})) if raw.facts.written else []
    argument_tensors((raw.kwargs or {}).get("out"), written)
    return any(tensor is trace.recorder.objects[slot] for tensor in written)


class _Sides:
    """The tensors on one memory: those that will lie in the edited value's own, and the others."""

    def __init__(self, trace: Trace, node: int, slot: int, instead: str) -> None:
        self.trace, self.node, self.slot, self.instead = trace, node, slot, instead
        self.recorder = trace.recorder
        if self.recorder.storages is None:
            self.recorder.storages = [storage_key(tensor) for tensor in self.recorder.objects]
        self.storages = self.recorder.storages
        self.key = self.storages[slot]
        self.patchworks = _patchworks(trace.recorder)
        self.own = {id(self.recorder.objects[slot])}
        self.copies: set[int | None] = set()
        self.met = {id(tensor) for tensor in self.recorder.objects[: slot + 1]}

    def check(self) -> None:
        spread = _is_spread(self.recorder.objects[self.slot])
        if self.key is None or not (spread or (self._is_shared() and self._is_touched_later())):
            return
        for node in range(self.node + 1, len(self.recorder.nodes)):
            raw = self.recorder.nodes[node]
            given = self._given(raw)
            for tensor, read in zip(given, raw.reads, strict=False):
                if storage_key(tensor) == self.key:
                    self._check_read(node, raw, tensor, read)
            if spread:
                self._check_unfolding(node, raw, given)
            if raw.func is not None:
                self._sort(raw, [tensor for tensor in given if storage_key(tensor) == self.key])

    def _check_unfolding(self, node: int, raw: Node, given: list[torch.Tensor]) -> None:
        """`expand` stores nothing, so `contiguous` and the like copied; of an edited value they would not."""
        written = raw.facts.written(raw.args, raw.kwargs or {}) if raw.facts.written else ()
        if any(isinstance(tensor, torch.Tensor) and storage_key(tensor) in self.copies for tensor in written):
            self._refuse(node, "it writes into an expanded tensor, which is a copy after the edit")
        if raw.facts.type in _COPYING_IF_NEEDED and given:
            if id(given[0]) in self.own or storage_key(given[0]) in self.copies:
                self.copies.add(storage_key(self.recorder.objects[raw.slot]))

    def _sort(self, raw: Node, given: list[torch.Tensor]) -> None:
        """A new view is on the side of what it was taken of; what existed stays where it is."""
        for tensor in self.recorder.objects[raw.slot : raw.returned.stop]:
            if id(tensor) not in self.met and given and storage_key(tensor) == self.key:
                self.met.add(id(tensor))
                if id(given[0]) in self.own:
                    self.own.add(id(tensor))

    def _is_shared(self) -> bool:
        """Somebody else was on this memory: before, or, for what came from outside, at any time."""
        objects, sources = self.recorder.objects, self.recorder.sources
        if self.node not in sources:
            return self.key in self.storages[: self.slot]
        others = [self.recorder.nodes[node].slot for node in sources if node != self.node]
        return any(objects[slot] is not objects[self.slot] and self.storages[slot] == self.key for slot in others)

    def _is_touched_later(self) -> bool:
        """Somebody writes into this memory, or looks around in it. Asked first, because it is rare."""
        storages, key = self.storages, self.key
        for raw in self.recorder.nodes[self.node + 1 :]:
            facts = raw.facts
            if facts.written is not None or facts.type == "as_strided" or (raw.kwargs and "out" in raw.kwargs):
                if key in storages[raw.slot : raw.results.stop]:
                    return True
        return False

    def _given(self, raw: Node) -> list[torch.Tensor]:
        if raw.func is None:
            return [self.patchworks.get(raw.slot, self.recorder.objects[raw.slot])]
        found: list[torch.Tensor] = []
        argument_tensors(raw.args, found)
        argument_tensors(raw.kwargs or {}, found)
        return found

    def _check_read(self, node: int, raw: Node, tensor: torch.Tensor, read: Read) -> None:
        side = id(tensor) in self.own
        if side and raw.facts.type == "as_strided":
            self._refuse(node, "it reads memory outside of the edited value")
        for slot in slots_of(read):
            maker = self.recorder.slot_node[slot]
            if maker <= self.node or self.storages[slot] != self.key:
                continue
            if (id(self.recorder.objects[slot]) in self.own) is not side:
                label = self.trace.op_at(maker).label
                self._refuse(node, f"it reads what {label} writes into memory that both share")

    def _refuse(self, node: int, why: str) -> None:
        edited, reader = self.trace.op_at(self.node).label, self.trace.op_at(node).label
        raise CannotReplay(
            f"{edited} shares its memory, and an edited value has memory of its own, so {reader} would see something "
            f"else than the trace says: {why}. {self.instead}"
        )


def _patchworks(recorder: Recorder) -> dict[int, torch.Tensor]:
    """Slots of outputs that several operations wrote into -> the tensor itself; the slot holds another object."""
    outputs = [node for node, source in recorder.sources.items() if source.kind is Kind.OUTPUT]
    slots = [recorder.nodes[node].slot for node in outputs if recorder.slot_node[recorder.nodes[node].slot] == node]
    return dict(zip(slots, recorder.anchors, strict=True))


def _is_spread(tensor: torch.Tensor) -> bool:
    """Several elements lie in one place, as after `expand`."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return False
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
