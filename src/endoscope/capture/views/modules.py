"""Layers (operations that are passes of the same thing) and modules of a trace."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from endoscope.analysis.recurrence.arguments import differing
from endoscope.capture.data.calls import Calls
from endoscope.capture.data.record import ModuleFacts, Record
from endoscope.capture.views.op import Op, op_at, ops_at
from endoscope.capture.views.tables import Table
from endoscope.capture.views.trace_data import TraceData
from endoscope.capture.views.unheard import unheard
from endoscope.markup.notebook import Shown
from endoscope.markup.tags import Markup, tag
from endoscope.schema.ops import Kind

_MOST_SHOWN = 6  # passes


@dataclass(frozen=True, slots=True)
class Layer(Shown):
    """All passes of one layer, or all calls of one module. Behaves like a tuple of operations."""

    label: str
    ops: tuple[Op, ...]

    @property
    def type(self) -> str:
        return self.ops[0].type

    @property
    def kind(self) -> Kind:
        return self.ops[0].kind

    @property
    def passes(self) -> int:
        return len(self.ops)

    @property
    def shape(self) -> Any:
        return self.ops[0].shape

    @property
    def values(self) -> tuple[Any, ...]:
        """The value of every pass, in order."""
        return tuple(op.value for op in self.ops)

    @property
    def value(self) -> Any:
        """The value if there is one pass, else the tuple of all."""
        return self.ops[0].value if len(self.ops) == 1 else self.values

    @property
    def modules(self) -> tuple[str, ...]:
        return self.ops[0].modules

    @property
    def seconds(self) -> float:
        return sum(op.seconds for op in self.ops)

    @property
    def bytes(self) -> int:
        return sum(op.bytes for op in self.ops)

    @property
    def flops(self) -> int | None:
        known = [op.flops for op in self.ops]
        return sum(f for f in known if f is not None) if any(f is not None for f in known) else None

    @property
    def differing(self) -> dict[str, tuple[Any, ...]]:
        """The plain arguments that are not the same in all passes: name -> value in each pass."""
        if len({op.layer for op in self.ops}) > 1:
            return {}  # calls of a module, or all that use a parameter: each has arguments of its own
        with unheard():
            return differing((op._raw.args, op._raw.kwargs) for op in self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    def __getitem__(self, index: int) -> Op:
        return self.ops[index]

    def _block(self) -> Markup:
        with unheard():
            told = tag("p", tag("b", self.label), f": {self.type}, {len(self)} passes. {changes_text(self)}")
            return tag("div", told, Table(self.ops)._block())

    def __repr__(self) -> str:
        shown = [op.label for op in self.ops[:_MOST_SHOWN]]
        more = ["…", self.ops[-1].label] if len(self.ops) > _MOST_SHOWN else []
        changes = changes_text(self)
        return f"<Layer {self.label} (x{self.passes}): {', '.join(shown + more)}{changes and '; ' + changes}>"

    __str__ = __repr__


def found_by_key(trace: TraceData, key: str) -> Op | Layer | None:
    """What a text means: an operation, or a layer if it has several passes."""
    nodes = trace.keys.find(key)
    if nodes is None:
        return None
    ops = tuple([op_at(trace, node) for node in nodes])
    return ops[0] if len(ops) == 1 else Layer(key, ops)


def changes_text(layer: Layer) -> str:
    """args[1]: 0, 1, 2, 3, 4, … 199"""
    parts = []
    for name, values in layer.differing.items():
        shown = values if len(values) <= _MOST_SHOWN else values[: _MOST_SHOWN - 1]
        text = ", ".join([textwrap.shorten(repr(value), 40) for value in shown])
        last = "" if shown is values else f", … {textwrap.shorten(repr(values[-1]), 40)}"
        parts.append(f"{name}: {text}{last}")
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """One module of the target."""

    label: str  # its address; the target's own is empty
    type: str  # its class
    passes: int  # how often it was called
    children: tuple[str, ...]  # addresses of the modules directly inside
    parameters: int  # how many numbers it can learn, with everything inside
    trainable: int  # how many of them require a gradient
    bytes: int  # size of its parameters
    ops: tuple[Op, ...]  # operations inside, at any depth
    training: bool  # in training mode when the trace was taken

    @property
    def address(self) -> str:
        return self.label

    @property
    def seconds(self) -> float:
        return sum(op.seconds for op in self.ops)

    @property
    def flops(self) -> int:
        return sum(op.flops or 0 for op in self.ops)

    def __str__(self) -> str:
        times = "never called" if not self.passes else f"called {self.passes} time{'s' * (self.passes > 1)}"
        return f"{self.label or '(target)'}: {self.type}, {times}, {self.parameters:,} parameters"


def module_infos(trace: TraceData) -> list[ModuleInfo]:
    calls, ops = trace.record.calls, list(ops_at(trace, trace.graph_data.ops))
    passes: dict[str, int] = {}
    for call in calls.entries:
        if not call.is_function:
            passes[calls.address(call)] = call.pass_
    inside: dict[str, list[Op]] = {"": ops}
    for op in ops:
        for address in op.modules:
            inside.setdefault(address, []).append(op)
    return [
        ModuleInfo(
            one.address, one.type, passes.get(one.address, 0), one.children, one.parameters, one.trainable, one.bytes,
            tuple(inside.get(one.address, ())), one.training,
        )
        for one in module_facts(trace.record)
    ]  # fmt: skip


def module_facts(record: Record) -> list[ModuleFacts]:
    """Beside their calls; asked of the modules themselves, if they are there."""
    calls = record.calls
    if record.modules is not None:
        return record.modules
    return [_facts_of(calls, address, module) for address, module in calls.addresses.values()]


def _facts_of(calls: Calls, address: str, module: Any) -> ModuleFacts:
    parameters = list(module.parameters())
    return ModuleFacts(
        address=address,
        type=type(module).__name__,
        children=tuple(calls.addresses[id(c)][0] for _, c in module.named_children() if id(c) in calls.addresses),
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        bytes=sum(p.numel() * p.element_size() for p in parameters),
        training=bool(module.training),
    )
