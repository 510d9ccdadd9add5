"""All texts under which an operation is found, and what to say when none fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from endoscope.analysis.patterns import nearest
from endoscope.capture.functions import SPOKEN_NAMES
from endoscope.capture.modules import Layer
from endoscope.capture.records import slots_of

if TYPE_CHECKING:
    from endoscope.capture.op import Op
    from endoscope.capture.result import Trace


class Keys:
    """Built on the first look-up; does not hold the trace.

    A text that several passes share leads to all of them, as a `Layer`.
    """

    def __init__(self, trace: Trace) -> None:
        names = trace.graph_data.names
        self.position = {node: i for i, node in enumerate(trace.graph_data.ops)}
        self._layers = dict(zip(names.label, range(len(names.label)), strict=True))
        self._layers.update(zip(names.short, range(len(names.short)), strict=True))
        self._passes: list[list[int]] = [[] for _ in names.label]  # layer -> nodes
        for node, layer in zip(trace.graph_data.ops, names.layer, strict=True):
            self._passes[layer].append(node)
        self._calls: dict[str, list[int]] = {}  # module address -> the node each call returned (the first of several)
        self._left: dict[int, list[str]] = {}  # node -> modules that returned it, with the pass
        self._add_modules(trace)
        self._others: dict[str, int] | None = None  # parameters, buffers, constants, orphans

    def _add_modules(self, trace: Trace) -> None:
        recorder = trace.recorder
        for address, pass_, call in recorder.calls.module_calls():
            nodes = [recorder.slot_node[slots_of(read)[-1]] for read in call.returned]
            if nodes:
                self._calls.setdefault(address, []).append(nodes[0])
            for node in dict.fromkeys(nodes):
                self._left.setdefault(node, []).append(f"{address}:{pass_}")

    def _unnumbered(self, trace: Trace) -> dict[str, int]:
        if self._others is None:
            self._others = {op.label: op.node for op in trace.everything() if op.node not in self.position}
        return self._others

    def of(self, trace: Trace, op: Op) -> tuple[str, ...]:
        """Keys that lead to this operation, alone or among the passes of its layer."""
        names, position = trace.graph_data.names, self.position.get(op.node)
        if position is None:
            return (op.label, *self._module_keys(op.node))
        layer, pass_ = names.layer[position], names.pass_[position]
        label, short = names.label[layer], names.short[layer]
        return (label, f"{label}:{pass_}", short, f"{short}:{pass_}", *self._module_keys(op.node))

    def _module_keys(self, node: int) -> list[str]:
        keys: list[str] = []
        for key in self._left.get(node, ()):
            keys += [key, key.rpartition(":")[0]]
        return list(dict.fromkeys(keys))

    def all(self, trace: Trace) -> Iterator[str]:
        yield from self._layers
        yield from self._calls
        yield from self._unnumbered(trace)

    def find(self, trace: Trace, key: str) -> Any:
        """An operation, a `Layer` of several passes, or None."""
        found = self._nodes(trace, key)
        if found is None:
            stem, _, rest = key.partition("_")
            if stem in SPOKEN_NAMES:  # `truediv_1` for `div_1`
                return self.find(trace, f"{SPOKEN_NAMES[stem]}_{rest}")
            stem, colon, number = key.rpartition(":")
            passes = self._nodes(trace, stem) if colon and number.isdigit() else None
            if passes is None:
                other = trace.recorder.calls.first_name(key)
                return self.find(trace, other) if other is not None and other != key else None
            if not 1 <= int(number) <= len(passes):
                return None
            return trace.op_at(passes[int(number) - 1])
        ops = tuple(map(trace.op_at, found))
        return ops[0] if len(ops) == 1 else Layer(key, ops)

    def _nodes(self, trace: Trace, key: str) -> list[int] | None:
        """The passes behind a text without a pass number."""
        layer = self._layers.get(key)
        if layer is not None:
            return self._passes[layer]
        if key in self._calls:
            return self._calls[key]
        other = self._unnumbered(trace).get(key)
        return None if other is None else [other]

    def explain(self, trace: Trace, key: str) -> str:
        stem, colon, pass_ = key.rpartition(":")
        known = self._nodes(trace, stem) if colon and pass_.isdigit() else None
        if known:
            count = len(known)
            passes = f"{stem}:1" if count == 1 else f"{stem}:1 to {stem}:{count}"
            return f"There is no {key!r}: {stem} ran {count} time{'s' * (count > 1)}. Use {passes}."
        close = ", ".join(repr(k) for k in nearest(key, self.all(trace)))
        return f"No operation of {trace.name} is called {key!r}. Nearest: {close}."
