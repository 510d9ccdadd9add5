"""Which values are kept: everything, nothing, or what patterns or a function of the operation select.

Labels and module results are only known later, so a value that may be wanted is held for the time being and let go
when it turns out not to be: at the end of its module, or when the trace is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from endoscope.analysis.patterns import Pattern, nearest, parse
from endoscope.capture.source import source_line
from endoscope.errors import BadArgument, NothingMatches
from endoscope.schema.ops import Kind, SourceLine

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder

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
        return self._recorder.address_path(self._node[12])

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
        self.recorder: Recorder | None = None
        self._of_type: dict[str, str] = {}  # type -> "yes", "maybe", "no" by type and label patterns
        self._of_call: dict[int, str] = {}  # call -> the same by module patterns
        self._provisional: list[tuple[int, int]] = []  # slot, call: held only because its module may return it

    def __call__(self, node: int, slot: int, tensor: torch.Tensor) -> bool:
        recorder = self.recorder
        assert recorder is not None
        if self.function is not None:
            try:
                return bool(self.function(EarlyOp(recorder, node, tensor)))
            except NotKnownYet:
                return True
        if not self.patterns:
            return False
        if node in recorder.sources:
            return True  # inputs, parameters and outputs are alive anyway; `settle` lets go of them
        type_ = recorder.nodes[node][0].type
        if self._by_type(type_) != "no":
            return True
        call = recorder.nodes[node][12]
        answer = self._by_call(call)
        if answer == "maybe":
            self._provisional.append((slot, call))
        return answer != "no"

    def _by_type(self, type_: str) -> str:
        answer = self._of_type.get(type_)
        if answer is None:
            may = any(p.field in ("type", "") and p.may_match_type(type_) for p in self.patterns)
            answer = self._of_type[type_] = "maybe" if may else "no"
        return answer

    def _by_call(self, call: int) -> str:
        """Inside a wanted module everything is held ("in:") or may be what the module returns."""
        assert self.recorder is not None
        if call < 0:
            return "no"
        answer = self._of_call.get(call)
        if answer is None:
            module, parent = self.recorder.calls[call][:2]
            outer = self._by_call(parent)
            own = "no" if isinstance(module, str) else self._by_address(self.recorder.addresses[id(module)][0])
            answer = "yes" if "yes" in (own, outer) else "maybe" if "maybe" in (own, outer) else "no"
            self._of_call[call] = answer
        return answer

    def _by_address(self, address: str) -> str:
        for pattern in self.patterns:
            if pattern.field == "in" and pattern.matches(_Place(address)):
                return "yes"
        # A pass may be named (`fc:2`): compare without it and let `settle` look again.
        for pattern in self.patterns:
            if pattern.field == "" and Pattern("", "", pattern.body.partition(":")[0]).matches(_Place(address)):
                return "maybe"
        return "no"

    def module_ended(self, recorder: Recorder, call: int) -> None:
        """Let go of what only its module could have made interesting, and did not."""
        if not self._provisional or self._by_call(recorder.calls[call][1]) != "no":
            return
        returned = {slot for read in recorder.calls[call][4] for slot in ([read] if isinstance(read, int) else read)}
        # Inner modules that are wanted themselves have their results too.
        for entry in recorder.calls[call:]:
            for read in entry[4] or ():
                returned.update([read] if isinstance(read, int) else read)
        for slot, _ in self._provisional:
            if slot not in returned:
                recorder.kept.pop(slot, None)
        self._provisional.clear()

    def settle(self, trace: Any) -> None:
        """The trace is complete: keep exactly what was asked for, and complain if that is nothing."""
        if self.function is None and not self.patterns:
            trace.recorder.kept.clear()
            trace.recorder.chosen = set()
            return
        wanted: set[int] = set()
        trace.recorder.chosen = chosen_nodes = set()
        unused = {p.text for p in self.patterns}
        for op in trace.everything():
            if self.function is not None:
                chosen = bool(self.function(op))
            else:
                hits = [p for p in self.patterns if p.matches(op)]
                unused.difference_update(p.text for p in hits)
                chosen = bool(hits)
            if chosen:
                wanted.update(op.slots)
                chosen_nodes.add(op.node)
        for slot in [s for s in trace.recorder.kept if s not in wanted]:
            del trace.recorder.kept[slot]
        if unused and trace.finished:
            raise nothing_matches(sorted(unused), trace)


def nothing_matches(patterns: list[str], trace: Any) -> NothingMatches:
    keys = [key for op in trace.everything() for key in op.keys]
    keys += [f"type:{t}" for t in dict.fromkeys(op.type for op in trace.ops)]
    parts = [
        f"The pattern {text!r} matches no operation of {trace.name}. Nearest: {', '.join(nearest(text, keys))}."
        for text in patterns
    ]
    return NothingMatches(" ".join(parts) + " See docs/reference/patterns.md for the pattern language.")


class _Place:
    """A module address, dressed up for `Pattern.matches`."""

    type = kind = ""

    def __init__(self, address: str) -> None:
        self.keys = self.modules = (address,)
