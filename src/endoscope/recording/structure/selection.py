"""Which tensors of a step are recorded: by default everything a module returns and owns, or what patterns choose.

Without patterns, attention weights are recorded that a hand-written softmax computes inside of a module: a traced step
finds the modules, `inside.py` watches them in the others. Where patterns mean single operations, every step is traced.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from endoscope.recording.steps.watch import Watch
from endoscope.recording.structure.graph import Item

if TYPE_CHECKING:
    from endoscope.recording.hooks.captured import Captured
    from endoscope.recording.structure.learned import Learned

ALWAYS = ("loss", "target")  # kinds that patterns do not take away
ATTENTION = "softmax"
_MOST_WEIGHTS = 2**22  # elements of attention weights that are recorded without being asked for


def may_be_attention(tensor: Tensor) -> bool:
    return tensor.dim() > 2 and tensor.numel() <= _MOST_WEIGHTS


class Selection:
    """What the watched models have in common about what is recorded."""

    def __init__(self, watches: Iterable[Watch]) -> None:
        watches = list(watches)
        self._watches = [(watch.name, watch.prefix, watch.default) for watch in watches]
        self.patterns = [p for watch in watches for p in watch.patterns or ()]
        self._owners = [id(watch.module) for watch in watches for _ in watch.patterns or ()]
        self._may_mean = functools.cache(self._may_match)  # an operation of a type
        self._marks: dict[int, list[bool]] = {}  # node of an operation -> which patterns mean it

    def observe(self, captured: Captured, learned: Learned) -> None:
        """Hold the results of single operations of a traced step that may be meant."""
        tracer = captured.tracer
        assert tracer is not None
        recorder = tracer.recorder

        def came(node: int, slot: int, tensor: Tensor) -> bool:
            type_ = recorder.nodes[node].facts.type
            if not self._may_mean(type_):
                return False
            path = recorder.calls.path(recorder.calls.current)
            if not self.patterns and not (path and may_be_attention(tensor)):
                return False
            module = path[-1] if path else ""
            entry = captured.hold(f"{module}.{type_}" if path else type_, "", "computed", tensor, module, slot=slot)
            if entry is not None:
                entry.function = node
            return entry is not None

        recorder.step_keeper.function_came = came

    def _may_match(self, type_: str) -> bool:
        """Whether an operation of a type may be meant; results of modules are held anyway."""
        if not self.patterns:
            return type_ == ATTENTION
        # Imported here and below: most runs have no patterns, and what these need takes long to load.
        from endoscope.analysis.selecting.patterns import Pattern
        from endoscope.capture.record.keeping import SomeOp

        for selector in self.patterns:
            if isinstance(selector, Pattern) and selector.field in ("", "type"):
                if selector.may_match_type(type_):
                    return True
            elif selector.early(SomeOp(type_)) is not False:
                return True
        return False

    def name_functions(self, captured: Captured) -> None:
        """Operations that patterns mean are called by their labels, as in a trace."""
        self._marks = {}
        functions = [entry for entry in captured.entries if entry.function >= 0]
        if not functions or not self.patterns or captured.tracer is None:
            return
        from endoscope.capture.record.values import TensorStore
        from endoscope.capture.views.result import Trace

        recorder = captured.tracer.recorder
        trace = Trace(recorder, TensorStore(recorder), "step")
        trace.seal()
        ops = [trace.op_at(node) for node in range(len(captured.tracer.recorder.nodes))]
        marks = [selector.mark(ops, trace.graph_data.parents) for selector in self.patterns]
        for entry in functions:
            op = ops[entry.function]
            entry.node = op.keys[2] if trace.position_of(op) is not None else op.label
            entry.pass_ = op.pass_
            entry.module = op.modules[-1] if op.modules else ""
            self._marks[id(entry)] = [bool(mark[entry.function]) for mark in marks]

    def choose(self, captured: Captured, items: list[Item]) -> list[bool]:
        """Parameters and buffers come first among the items, then one for each captured tensor."""
        entries = captured.entries
        if not self.patterns:
            for entry in entries:
                if entry.function >= 0:
                    captured.learned.inside.setdefault(entry.module, set()).add(ATTENTION)
            return [True] * len(items)
        owned = len(items) - len(entries)
        functions = [False] * owned + [entry.function >= 0 for entry in entries]
        marks = [self._marks_of(item) for item in items[:owned]]
        marks += [
            self._marks.get(id(entry), [False] * len(self.patterns)) if entry.function >= 0 else self._marks_of(item)
            for entry, item in zip(entries, items[owned:], strict=True)
        ]
        chosen = [
            any(mine) or item.kind in ALWAYS or item.node in captured.tags or self._by_default(item)
            for item, mine in zip(items, marks, strict=True)
        ]
        # A tensor that is recorded under the name of a module is not recorded as the result of an operation, too.
        known = {items[n].slot for n, is_chosen in enumerate(chosen) if is_chosen and not functions[n]}
        for number in itertools.compress(range(len(items)), functions):
            chosen[number] = any(marks[number]) and items[number].slot not in known
            captured.learned.functions |= chosen[number]
        matched = [any(column) for column in zip(*marks, strict=True)]
        called = {e.module for e in entries if e.kind == "output"}
        captured.unmatched = [
            pattern.text
            for pattern, owner, is_matched in zip(self.patterns, self._owners, matched, strict=True)
            if not is_matched and captured.names.modules.get(owner) in called
        ]
        return chosen

    def _marks_of(self, item: Item) -> list[bool]:
        """Which patterns mean it."""
        named = _Named(item)
        return [bool(pattern.matches(named)) for pattern in self.patterns]

    def _by_default(self, item: Item) -> bool:
        """Whether everything of the model that a tensor belongs to is recorded."""
        for name, prefix, default in self._watches:
            if name and (item.node == name or item.node.startswith(prefix)):
                return default
        return next((default for name, _, default in self._watches if not name), True)


class _Named:
    """An item, dressed up for a pattern."""

    def __init__(self, item: Item) -> None:
        self.type: str = ""
        self.kind: Any = item.kind
        self.keys = (item.node, f"{item.node}:{item.pass_}")
        parts = item.module.split(".") if item.module else []
        self.modules = tuple(".".join(parts[: n + 1]) for n in range(len(parts)))
