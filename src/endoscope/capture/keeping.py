"""Which values are kept: everything, nothing, or what patterns or a function of the operation select.

Labels and module results are only known later, so a value that may be wanted is held for the time being and let go
when it turns out not to be: at the end of its module, or when the trace is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from endoscope.analysis.patterns import Pattern, nearest, parse
from endoscope.capture.records import slots_of
from endoscope.capture.source import source_line
from endoscope.errors import BadArgument, NothingMatches
from endoscope.schema.ops import Kind, SourceLine

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder
    from endoscope.capture.result import Trace

Save = str | Sequence[str] | Callable[[Any], bool]


class NotKnownYet(Exception):
    """A function of the operation asked for something that is only known after the run."""


class EarlyOp:
    """An operation as far as it is known the moment it has run."""

    def __init__(self, recorder: Recorder, node: int, tensor: torch.Tensor) -> None:
        self._recorder, self._node, self._tensor = recorder, recorder.nodes[node], tensor
        source = recorder.sources.get(node)
        self.type: str = self._node[0].type
        self.kind = source.kind if source else (Kind.COMPUTED if self._node[4] else Kind.GENERATED)
        self.value = tensor

    @property
    def modules(self) -> tuple[str, ...]:
        return self._recorder.calls.path(self._node[12])

    @property
    def source(self) -> SourceLine | None:
        return source_line(self._node[10], self._node[11])

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
        return float(self._node[9] - self._node[8]) * 1e-9

    def __getattr__(self, name: str) -> Any:
        raise NotKnownYet(name)


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
    """Decides about one trace; `recorder` is set when it starts."""

    def __init__(self, patterns: list[Pattern], function: Callable[[Any], bool] | None) -> None:
        self.patterns = patterns
        self.function = function
        self.recorder: Recorder
        self.types: dict[str, bool] = {}  # may a label of this type match? Read by the ear
        self.names_modules = any(p.field in ("", "in") for p in patterns)
        self.idle = function is None and not patterns  # keeps nothing
        self._modules: dict[int, str] = {}  # id of module -> "in" (keep what runs inside), "result", "no"
        self._places: dict[int, str] = {-1: "no"}  # the same by call, with what its outer calls say
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
        type_ = raw[0].type
        if type_ not in self.types:
            self.types[type_] = self._may_match(type_)
        if self.types[type_]:
            return True
        place = self.place(raw[12])
        if place == "result":
            self._provisional.append(slot)
        return place != "no"

    def _may_match(self, type_: str) -> bool:
        return any(p.field in ("type", "") and p.may_match_type(type_) for p in self.patterns)

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
            place = _Place(self.recorder.calls.addresses[id(module)][0])
            inside = any(p.field == "in" and p.matches(place) for p in self.patterns)
            # A pass may be named (`fc:2`): compare without it and let `settle` look again.
            bare = [Pattern("", "", p.body.partition(":")[0]) for p in self.patterns if p.field == ""]
            self._modules[id(module)] = "in" if inside else "result" if any(p.matches(place) for p in bare) else "no"
        return self._modules[id(module)]

    def module_ended(self, call: int) -> None:
        """Let go of what only its module could have made interesting, and did not."""
        entries = self.recorder.calls.entries
        if not self._provisional or self.place(entries[call].parent) != "no":
            return
        returned = {s for entry in entries[call:] for read in entry.returned for s in slots_of(read)}
        for slot in self._provisional:
            if slot not in returned:
                self.recorder.kept.pop(slot, None)
        self._provisional.clear()

    def settle(self, trace: Trace) -> None:
        """The trace is complete: keep exactly what was asked for, and complain if that is nothing."""
        kept, slot_node = self.recorder.kept, self.recorder.slot_node
        candidates = {slot_node[slot] for slot in kept}
        candidates.update(n for n, source in self.recorder.sources.items() if source.kind == Kind.OUTPUT)
        chosen: set[int] = set()
        unused = {p.text for p in self.patterns}
        for op in map(trace.op_at, sorted(candidates) if self.function or self.patterns else ()):
            if self.function is not None:
                wanted = bool(self.function(op))
            else:
                hits = [p.text for p in self.patterns if p.matches(op)]
                unused.difference_update(hits)
                wanted = bool(hits)
            if wanted and all(slot in kept for slot in op.slots):
                chosen.add(op.node)
        self.recorder.chosen = chosen
        wanted_slots = {slot for node in chosen for slot in trace.op_at(node).slots}
        for slot in [s for s in kept if s not in wanted_slots]:
            del kept[slot]
        if unused and trace.finished:
            raise nothing_matches(sorted(unused), trace)


def nothing_matches(patterns: list[str], trace: Trace) -> NothingMatches:
    keys = [key for op in trace.everything() for key in op.keys]
    keys += [f"type:{t}" for t in dict.fromkeys(op.type for op in trace.ops)]
    kinds = [f"kind:{kind}" for kind in Kind]
    parts = []
    for text in patterns:
        close = kinds if text.startswith("kind:") else nearest(text, keys)
        parts.append(f"The pattern {text!r} matches no operation of {trace.name}. Nearest: {', '.join(close)}.")
    return NothingMatches(" ".join(parts) + " See docs/reference/patterns.md for the pattern language.")


class _Place:
    """A module address, dressed up for `Pattern.matches`."""

    type = kind = ""

    def __init__(self, address: str) -> None:
        self.keys = self.modules = (address,)
