"""All texts under which an operation is found, and what to say when none fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from endoscope.analysis.selecting.patterns import nearest
from endoscope.capture.data.functions import SPOKEN_NAMES
from endoscope.capture.data.nodes import slots_of
from endoscope.capture.data.record import Record
from endoscope.capture.views.assemble import Graph


def _type_of(label: str) -> str:
    return label.rsplit("_", 2)[0]


def _bare(type_: str) -> str:
    """`conv` for conv2d, `maxpool` for max_pool2d."""
    return re.sub(r"\d+d$", "", type_).replace("_", "")


class Keys:
    """Texts to nodes. A text that several passes share leads to all of them."""

    def __init__(self, graph: Graph, labels: dict[int, tuple[str, str, int]], record: Record) -> None:
        self._names, self._calls = graph.names, record.calls
        self.position = {node: i for i, node in enumerate(graph.ops)}
        self._layers = dict(zip(self._names.label, range(len(self._names.label)), strict=True))
        self._layers.update(zip(self._names.short, range(len(self._names.short)), strict=True))
        self._types = {_type_of(label) for label in self._names.label}
        self._passes: list[list[int]] = [[] for _ in self._names.label]  # layer -> nodes
        for node, layer in zip(graph.ops, self._names.layer, strict=True):
            self._passes[layer].append(node)
        self._returned: dict[str, list[int]] = {}  # module address -> the (first) node that each call returned
        self._left: dict[int, list[str]] = {}  # node -> modules that returned it, with the pass
        for address, pass_, call in record.calls.module_calls():
            nodes = [record.slot_node[slots_of(read)[-1]] for read in call.returned]
            if nodes:
                self._returned.setdefault(address, []).append(nodes[0])
            for node in dict.fromkeys(nodes):
                self._left.setdefault(node, []).append(f"{address}:{pass_}")
        # parameters, buffers, constants, orphans
        self._others = {label: node for node, (label, _, _) in labels.items() if node not in self.position}
        self._labels = labels

    def of(self, node: int) -> tuple[str, ...]:
        """Keys that lead to this operation, alone or among the passes of its layer."""
        modules = [key for left in self._left.get(node, ()) for key in (left, left.rpartition(":")[0])]
        position = self.position.get(node)
        if position is None:
            return (self._labels[node][0], *dict.fromkeys(modules))
        layer, pass_ = self._names.layer[position], self._names.pass_[position]
        label, short = self._names.label[layer], self._names.short[layer]
        return (label, f"{label}:{pass_}", short, f"{short}:{pass_}", *dict.fromkeys(modules))

    def passes_of(self, node: int) -> int:
        """How often the layer of a node runs."""
        position = self.position.get(node)
        return self._names.passes[self._names.layer[position]] if position is not None else 1

    def all(self) -> Iterator[str]:
        yield from self._layers
        yield from self._returned
        yield from self._others

    def find(self, key: str) -> list[int] | None:
        """The nodes behind a text, several if it means several passes."""
        found = self._all_passes(key)
        if found is not None:
            return found
        stem, _, rest = key.partition("_")
        if stem in SPOKEN_NAMES:  # `truediv_1` for `div_1`
            return self.find(f"{SPOKEN_NAMES[stem]}_{rest}")
        if short := self._of_any_dimension(key):  # `conv_2` for `conv2d_2`
            return self.find(short)
        stem, colon, number = key.rpartition(":")
        passes = self._all_passes(stem) if colon and number.isdigit() else None
        if passes is None:
            other = self._calls.first_name(key)
            return self.find(other) if other is not None and other != key else None
        return [passes[int(number) - 1]] if 1 <= int(number) <= len(passes) else None

    def _of_any_dimension(self, key: str) -> str | None:
        """The label that a text means which leaves out underscores and dimensions: `conv_2`, `maxpool_1_3:2`."""
        found = re.fullmatch(r"([a-z]+)_(\d+)(_\d+)?(:\d+)?", key)
        if found is None or found[1] in self._types:
            return None
        alike = [label for label in self._names.label if _bare(_type_of(label)) == found[1]]
        number = int(found[2])
        if not 1 <= number <= len(alike):
            return None
        label = alike[number - 1]
        if found[3] and not label.endswith(found[3]):
            return None
        return label + (found[4] or "")

    def _all_passes(self, key: str) -> list[int] | None:
        """The passes behind a text without a pass number."""
        if key in self._layers:
            return self._passes[self._layers[key]]
        if key in self._returned:
            return self._returned[key]
        other = self._others.get(key)
        return None if other is None else [other]

    def explain(self, key: str, name: str) -> str:
        """Why a text leads nowhere; `name` is that of the trace."""
        stem, colon, pass_ = key.rpartition(":")
        known = self._all_passes(stem) if colon and pass_.isdigit() else None
        if known:
            count = len(known)
            passes = f"{stem}:1" if count == 1 else f"{stem}:1 to {stem}:{count}"
            return f"There is no {key!r}: {stem} ran {count} time{'s' * (count > 1)}. Use {passes}."
        close = ", ".join(repr(k) for k in nearest(key, self.all()))
        return f"No operation of {name} is called {key!r}. Nearest: {close}."
