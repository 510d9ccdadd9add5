"""Which tensors of a step are recorded: by default everything a module returns and owns, or what patterns choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from endoscope.recording.structure import Item, place_of
from endoscope.recording.watch import Watch

if TYPE_CHECKING:
    from endoscope.recording.capture import Capture

ALWAYS = ("loss", "target")  # kinds that patterns do not take away


class Selection:
    """What the watched models have in common about what is recorded."""

    def __init__(self, watches: Iterable[Watch]) -> None:
        watches = list(watches)
        self._watches = [(watch.name, watch.prefix, watch.default) for watch in watches]
        self.patterns = [p for watch in watches for p in watch.patterns or ()]
        self._owners = [id(watch.module) for watch in watches for _ in watch.patterns or ()]
        self.may_match_type: Callable[[str], bool] | None = self._may_match if self.patterns else None

    def _may_match(self, type_: str) -> bool:
        """Whether an operation of a type may be meant; results of modules are held anyway."""
        # Imported here and below: most runs have no patterns, and what these need takes long to load.
        from endoscope.analysis.patterns import Pattern
        from endoscope.capture.keeping import SomeOp

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
        chosen = [[p.matches(named) for p in self.patterns] for named in map(_Named, items)]
        kept = [
            i for i, marks in zip(items, chosen, strict=True)
            if any(marks) or i.kind in ALWAYS or i.node in capture.tags or self._by_default(i)
        ]  # fmt: skip
        functions, chosen_functions = self._functions(capture, {i.slot for i in kept})
        matched = [any(marks) for marks in zip(*chosen, *chosen_functions, strict=True)]
        called = {id(call.module) for call in capture.recorder.calls.entries if call.root}
        capture.unmatched = [
            pattern.text
            for pattern, owner, is_matched in zip(self.patterns, self._owners, matched, strict=True)
            if not is_matched and owner in called
        ]
        return kept + functions

    def _by_default(self, item: Item) -> bool:
        """Whether everything of the model that a tensor belongs to is recorded."""
        for name, prefix, default in self._watches:
            if name and (item.node == name or item.node.startswith(prefix)):
                return default
        return next((default for name, _, default in self._watches if not name), True)

    def _functions(self, capture: Capture, known: set[int]) -> tuple[list[Item], list[list[bool]]]:
        """Single operations, under their labels; and for each that may be meant, which patterns mean it."""
        recorder = capture.recorder
        if not recorder.holder.functions:
            return [], []
        from endoscope.capture.result import Trace

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
        return found, [[bool(mark[node]) for mark in marks] for node, _ in recorder.holder.functions]


class _Named:
    """An item, dressed up for a pattern."""

    def __init__(self, item: Item) -> None:
        self.type: str = ""
        self.kind: Any = item.kind
        self.keys = (item.node, f"{item.node}:{item.pass_}")
        parts = item.module.split(".") if item.module else []
        self.modules = tuple(".".join(parts[: n + 1]) for n in range(len(parts)))
