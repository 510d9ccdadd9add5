"""Which values are kept: everything, nothing, or what patterns or a function of the operation select.

Labels, module results and relations are only known later, so a value that may be wanted is held for the time being
and let go when it turns out not to be: at the end of its module, or when the trace is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from endoscope.analysis.selecting.no_match import nothing_matches
from endoscope.analysis.selecting.patterns import Pattern, Selector, parse
from endoscope.capture.data.calls import OUTSIDE, Call
from endoscope.capture.data.nodes import slots_of
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.views.op import Op
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument
from endoscope.schema.ops import Kind, SourceLine


class ToFolder:
    """What `endoscope.to_folder` returns: where to keep the values of one trace."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()

    def __repr__(self) -> str:
        return f"to_folder({str(self.path)!r})"


Save = str | Sequence[str] | Callable[[Any], bool] | ToFolder


class NotKnownYet(Exception):
    """A function of the operation asked for something that is only known after the run."""


class EarlyOp:
    """An operation as far as it is known the moment it has run."""

    def __init__(self, recorder: Recorder, node: int, tensor: torch.Tensor) -> None:
        self._recorder, self._node, self._tensor = recorder, recorder.nodes[node], tensor
        source = recorder.sources.get(node)
        self.type = self._node.facts.type
        self.kind = source.kind if source else (Kind.COMPUTED if self._node.reads else Kind.GENERATED)
        self.value = tensor

    @property
    def modules(self) -> tuple[str, ...]:
        return self._recorder.calls.path(self._node.call)

    @property
    def source(self) -> SourceLine | None:
        return self._node.position.line

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._tensor.shape)

    @property
    def dtype(self) -> torch.dtype:
        return self._tensor.dtype

    @property
    def bytes(self) -> int:
        return self._tensor.numel() * self._tensor.element_size()

    @property
    def seconds(self) -> float:
        return (self._node.ended - self._node.started) * 1e-9

    def __getattr__(self, name: str) -> Any:
        raise NotKnownYet(name)


class NewOp:
    """The same for patterns: what can be told of a node by then."""

    def __init__(self, recorder: Recorder, node: int, older: bool = False) -> None:
        self._recorder, self._node = recorder, node
        self.type = recorder.nodes[node].facts.type
        self.older = older

    @property
    def kinds(self) -> tuple[Kind, ...]:
        source = self._recorder.sources.get(self._node)
        if source:
            return (source.kind,)
        # An opaque body may turn out to read something besides its arguments.
        return (Kind.COMPUTED,) if self._above() else (Kind.GENERATED, Kind.COMPUTED)

    @property
    def modules(self) -> tuple[str, ...]:
        return self._recorder.calls.path(self._recorder.nodes[self._node].call)

    @property
    def parents(self) -> list[NewOp] | None:
        return [NewOp(self._recorder, node, older=True) for node in self._above()] or None

    def _above(self) -> dict[int, None]:
        slot_node, reads = self._recorder.slot_node, self._recorder.nodes[self._node].reads
        return {slot_node[slot]: None for read in reads for slot in slots_of(read)}


class SomeOp:
    """Any operation of a type: nothing else is known."""

    kinds = (Kind.COMPUTED, Kind.GENERATED)
    modules = parents = None
    older = False

    def __init__(self, type_: str) -> None:
        self.type = type_


def make_keeper(save: Any) -> Keeper | None:
    """None for "all": then the recorder holds everything and asks nobody."""
    if isinstance(save, str) and save == "all":
        return None
    if isinstance(save, str) and save == "none":
        return Keeper([], None)
    if callable(save):
        return Keeper([], save)
    texts = [save] if isinstance(save, str) else list(save) if isinstance(save, (list, tuple, set)) else None
    if texts is None:
        raise BadArgument(
            f"save={save!r} cannot say what to keep. Use 'all', 'none', a pattern such as 'type:relu' or "
            "'encoder.2', a list of patterns, or a function of the operation that returns True or False."
        )
    return Keeper([parse(text) for text in texts], None)


class Keeper:
    """Decides about one trace; `recorder` is set when it starts.

    Plain patterns of types, names and modules are decided by tables, the others one by one, by `Selector.early`.
    """

    def __init__(self, selectors: list[Selector], function: Callable[[Any], bool] | None) -> None:
        self.selectors = selectors
        self.function = function
        self.recorder: Recorder
        self.types: dict[str, bool] = {}  # may an operation of this type match? The hot path reads it
        self._plain = [s for s in selectors if isinstance(s, Pattern) and s.field != "kind"]
        self._others = [s for s in selectors if not isinstance(s, Pattern) or s.field == "kind"]
        self._names = [atom for selector in selectors for atom in selector.atoms() if atom.field == ""]
        self._sure: dict[str, bool] = {}  # type -> hold it for the sake of a plain pattern
        self.names_modules = any(p.field in ("", "in") for p in self._plain)
        self.idle = function is None and not selectors  # keeps nothing
        self._modules: dict[int, str] = {}  # id of module -> "in" (keep what runs inside), "result", "no"
        self._places: dict[int, str] = {OUTSIDE: "no"}  # the same by call, with what its outer calls say
        self._provisional: list[int] = []  # slots held only because their module may return them

    def wants(self, node: int, slot: int, tensor: torch.Tensor) -> bool:
        if self.function is not None:
            try:
                return bool(self.function(EarlyOp(self.recorder, node, tensor)))
            except NotKnownYet:
                return True
        if self.idle:
            return False
        if node in self.recorder.sources:
            return True  # inputs, parameters and outputs are alive anyway; `settle` lets go of them
        raw = self.recorder.nodes[node]
        type_ = raw.facts.type
        if type_ not in self.types:
            self._learn(type_)
        if self._sure[type_]:
            return True
        place = self.place(raw.call)
        if place == "in" or self._may_match(node):
            return True
        if place == "result":
            self._provisional.append(slot)
        return place == "result"

    def _learn(self, type_: str) -> None:
        sure = any(p.field in ("type", "") and p.may_match_type(type_) for p in self._plain)
        self._sure[type_] = sure
        self.types[type_] = sure or any(s.early(SomeOp(type_)) is not False for s in self._others)

    def _may_match(self, node: int) -> bool:
        if not self._others:
            return False
        new = NewOp(self.recorder, node)
        return any(selector.early(new) is not False for selector in self._others)

    def place(self, call: int) -> str:
        """Inside a wanted module everything is kept ("in"), or may be what the module returns ("result")."""
        place = self._places.get(call)
        if place is None:
            entry = self.recorder.calls.entries[call]
            found = {self.place(entry.parent), "no" if entry.is_function else self._of_module(entry.module)}
            place = self._places[call] = "in" if "in" in found else "result" if "result" in found else "no"
        return place

    def _of_module(self, module: torch.nn.Module) -> str:
        if not self.names_modules:
            return "no"
        if id(module) not in self._modules:
            address = self.recorder.calls.addresses[id(module)][0]
            inside = any(p.field == "in" and p.matches(_Place(address)) for p in self._plain)
            named = any(p.may_name(address) for p in self._plain)
            self._modules[id(module)] = "in" if inside else "result" if named else "no"
        return self._modules[id(module)]

    def module_ended(self, call: int) -> None:
        """Let go of what only its module could have made interesting, and did not."""
        entries = self.recorder.calls.entries
        if self._names:
            self._hold_what_passed_through(entries[call])
        if not self._provisional or self.place(entries[call].parent) != "no":
            return
        returned = {s for entry in entries[call:] for read in entry.returned for s in slots_of(read)}
        for slot in self._provisional:
            if slot not in returned:
                self.recorder.kept.pop(slot, None)
        self._provisional.clear()

    def _hold_what_passed_through(self, entry: Call) -> None:
        """A module may return what was made before it ran: `nn.Identity`, dropout outside of training."""
        recorder = self.recorder
        made_before = [r for r in entry.returned if isinstance(r, int) and recorder.slot_node[r] < entry.first_node]
        if not made_before or not any(p.may_name(recorder.calls.address(entry)) for p in self._names):
            return
        for read in made_before:
            for slot in recorder.nodes[recorder.slot_node[read]].returned:
                tensor = recorder.dereference(recorder.objects[slot])
                if tensor is not None and slot not in recorder.kept:
                    recorder.hold(slot, tensor)
                    if recorder.gradients is not None:
                        recorder.gradients.watch(slot, tensor)

    def settle(self, trace: Trace) -> None:
        """The trace is complete: keep exactly what was asked for, and complain if that is nothing."""
        if self.idle:
            self.recorder.chosen = set()
            return
        kept, slot_node = self.recorder.kept, self.recorder.slot_node
        candidates = {slot_node[slot] for slot in kept}
        candidates.update(n for n, source in self.recorder.sources.items() if source.kind == Kind.OUTPUT)
        ops = [trace.op_at(node) for node in sorted(candidates) if self.function or self.selectors]
        wanted: set[int] = set()
        unused: list[Selector] = []
        for selector in self.selectors:
            found = self._matching(selector, ops, trace)
            wanted |= found
            if not found:
                unused.append(selector)
        if self.function is not None:
            wanted = {op.node for op in ops if self.function(op)}
        chosen = {op.node for op in ops if op.node in wanted and all(slot in kept for slot in op.slots)}
        self.recorder.chosen = chosen
        wanted_slots = {slot for node in chosen for slot in trace.op_at(node).slots}
        for slot in [s for s in kept if s not in wanted_slots]:
            del kept[slot]
        if unused and trace.finished:
            raise nothing_matches(unused, list(trace.everything()), trace.name)

    def _matching(self, selector: Selector, ops: list[Op], trace: Trace) -> set[int]:
        if not selector.related:
            return {op.node for op in ops if selector.matches(op)}
        marks = selector.mark(trace.graph.nodes, trace.graph_data.parents)
        return {node for node, mark in enumerate(marks) if mark}


class _Place:
    """A module address, dressed up for `Pattern.matches`."""

    type = kind = ""

    def __init__(self, address: str) -> None:
        self.keys = self.modules = (address,)
