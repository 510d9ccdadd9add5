"""All texts under which an operation is found, and what to say when none fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from endoscope.analysis.patterns import nearest
from endoscope.capture.modules import Layer

if TYPE_CHECKING:
    from endoscope.capture.op import Op
    from endoscope.capture.result import Trace


class Keys:
    """Built on the first look-up. A text that several passes share leads to all of them, as a `Layer`."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.position = {node: i for i, node in enumerate(trace.graph_data.ops)}
        self._found: dict[str, list[int]] = {}  # key -> nodes
        self._of_node: dict[int, list[str]] = {}
        self._add_labels()
        self._add_modules()
        self._add_unnumbered()

    def _add(self, key: str, node: int) -> None:
        nodes = self._found.setdefault(key, [])
        if node not in nodes:
            nodes.append(node)
            self._of_node.setdefault(node, []).append(key)

    def _add_labels(self) -> None:
        names = self._trace.graph_data.names
        for position, node in enumerate(self._trace.graph_data.ops):
            layer, pass_ = names.layer[position], names.pass_[position]
            for stem in (names.label[layer], names.short[layer]):
                self._add(stem, node)
                self._add(f"{stem}:{pass_}", node)

    def _add_modules(self) -> None:
        """A module's address leads to what the module returned, call by call."""
        recorder, passes = self._trace.recorder, self._trace.graph_data.passes_of_calls
        for number, call in enumerate(recorder.calls):
            if isinstance(call[0], str) or not call[4]:
                continue
            address = recorder.addresses[id(call[0])][0]
            if not address:
                continue
            for read in call[4]:
                slot = read if isinstance(read, int) else read[-1]
                node = recorder.slot_node[slot]
                self._add(f"{address}:{passes[number]}", node)
                self._add(address, node)

    def _add_unnumbered(self) -> None:
        for op in self._trace.everything():
            if op.node not in self.position:
                self._add(op.label, op.node)

    def of(self, op: Op) -> tuple[str, ...]:
        """Keys that lead to this operation alone, or to it among the passes of its layer."""
        return tuple(self._of_node.get(op.node, ()))

    def all(self) -> Iterator[str]:
        return iter(self._found)

    def find(self, key: str) -> Any:
        nodes = self._found.get(key)
        if not nodes:
            return None
        ops = [self._trace.op_at(n) for n in nodes]
        if len(ops) == 1:
            return ops[0]
        module_pass = re.fullmatch(r".+:\d+", key)
        if module_pass or self._is_one_call(key):
            return ops[-1] if not self._is_one_call(key) else ops[0]
        return Layer(key, tuple(ops))

    def _is_one_call(self, key: str) -> bool:
        """One call of a module that returned several tensors: its first tensor stands for it."""
        address = key.partition(":")[0]
        recorder = self._trace.recorder
        calls = [
            c for c in recorder.calls if not isinstance(c[0], str) and recorder.addresses[id(c[0])][0] == address
        ]
        return len(calls) == 1 or (":" in key and bool(calls))

    def explain(self, key: str) -> str:
        stem, colon, pass_ = key.rpartition(":")
        if colon and pass_.isdigit() and stem in self._found:
            known = self._found[stem]
            count = len(known)
            passes = f"{stem}:1" if count == 1 else f"{stem}:1 to {stem}:{count}"
            return f"There is no {key!r}: {stem} ran {count} time{'s' * (count > 1)}. Use {passes}."
        close = ", ".join(repr(k) for k in nearest(key, self.all()))
        return f"No operation of {self._trace.name} is called {key!r}. Nearest: {close}."
