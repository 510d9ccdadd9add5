"""Which tensors of a step are recorded: by default everything a module returns and owns, or what patterns choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from endoscope.analysis.patterns import Pattern
from endoscope.capture.keeping import SomeOp
from endoscope.capture.result import Trace
from endoscope.recording.structure import Item, place_of
from endoscope.recording.watch import Watch

if TYPE_CHECKING:
    from endoscope.recording.capture import Capture

ALWAYS = ("loss", "target")  # kinds that patterns do not take away


class Selection:
    """What the watched models have in common about what is recorded."""

    def __init__(self, watches: Iterable[Watch]) -> None:
        watches = list(watches)
        self.default = any(watch.default for watch in watches) or not watches
        self.patterns = [p for watch in watches for p in watch.patterns or ()]
        self.may_match_type: Callable[[str], bool] | None = self._may_match if self.patterns else None

    def _may_match(self, type_: str) -> bool:
        """Whether an operation of a type may be meant; results of modules are held anyway."""
        for selector in self.patterns:
            if isinstance(selector, Pattern) and selector.field in ("", "type"):
                if selector.may_match_type(type_):
                    return True
            elif selector.early(SomeOp(type_)) is not False:
                return True
        return False

    def choose(self, capture: Capture, items: list[Item]) -> list[Item]:
        if not self.patterns:
            return items
        tags = capture.tags
        kept = [
            i for i in items
            if self.default or i.kind in ALWAYS or i.node in tags or any(p.matches(_Named(i)) for p in self.patterns)
        ]  # fmt: skip
        return kept + self._functions(capture, {i.slot for i in kept})

    def _functions(self, capture: Capture, known: set[int]) -> list[Item]:
        """Single operations, under their labels."""
        recorder = capture.recorder
        if not recorder.holder.functions:
            return []
        trace = Trace(recorder, "step")
        trace.seal()
        ops = [trace.op_at(node) for node in range(len(recorder.nodes))]
        marks = [selector.mark(ops, trace.graph_data.parents) for selector in self.patterns]
        found = []
        for node, slot in recorder.holder.functions:
            if slot not in known and any(mark[node] for mark in marks):
                op = ops[node]
                short = op.keys[2] if trace.position_of(op) is not None else op.label
                module = op.modules[-1] if op.modules else ""
                place = place_of(recorder, slot)
                found.append(Item(short, "", op.pass_, "computed", slot, module, place, None))
        return found


class _Named:
    """An item, dressed up for a pattern."""

    def __init__(self, item: Item) -> None:
        self.type: str = ""
        self.kind: Any = item.kind
        self.keys = (item.node, f"{item.node}:{item.pass_}")
        parts = item.module.split(".") if item.module else []
        self.modules = tuple(".".join(parts[: n + 1]) for n in range(len(parts)))
