"""One operation of a trace, as the user sees it: a thin view, everything is looked up when asked for.

The common facts are attributes of `Op`; the rest is grouped (`op.function`, `op.relations`, `op.place`, `op.params`)
so that no object has a hundred attributes. `docs/reference/metadata.md` lists them all.
"""

from __future__ import annotations

import textwrap
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from endoscope.analysis.flops import Shape, count_flops
from endoscope.capture.data.nodes import Meta, Node
from endoscope.capture.views.metadata import FunctionCall, ParameterUse, Place, Relations
from endoscope.capture.views.tables import MadeRows, Table
from endoscope.capture.views.trace_data import TraceData
from endoscope.capture.views.unheard import unheard
from endoscope.errors import LookupFailed, ValueChanged, ValueNotKept
from endoscope.markup.notebook import Shown, facts
from endoscope.markup.tags import Markup
from endoscope.schema.ops import Kind, SourceLine

_MADE = (Kind.COMPUTED, Kind.GENERATED)


class Op(Shown):
    """One node of the graph: an operation, an input, an output, a parameter, a buffer or a constant."""

    __slots__ = ("__weakref__", "_trace", "node")

    def __init__(self, trace: TraceData, node: int) -> None:
        self._trace = trace
        self.node = node  # position in the order of execution

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def _raw(self) -> Node:
        return self._trace.raw(self.node)

    @property
    def label(self) -> str:
        """As looked up: `relu_2_4`, `linear_1_1:2`, `fc.weight`."""
        return self._trace.labels[self.node][0]

    @property
    def layer(self) -> str:
        """The label without the pass."""
        return self._trace.labels[self.node][1]

    @property
    def pass_(self) -> int:
        """Which pass of its layer, from 1."""
        return self._trace.labels[self.node][2]

    @property
    def type(self) -> str:
        """Plain name of the function: `add` for `+`, `add_` and `__iadd__`."""
        return self._raw.facts.type

    @property
    def kind(self) -> Kind:
        return self._trace.graph_data.kinds[self.node]

    @property
    def path(self) -> str:
        """Where an input, output, parameter or buffer stands: `batch['ids']`, `logits`, `fc.weight`."""
        source = self._trace.record.sources.get(self.node)
        return source.name if source else ""

    @property
    def passes(self) -> int:
        """How often its layer runs."""
        return self._trace.keys.passes_of(self.node)

    @property
    def source(self) -> SourceLine | None:
        """The user's line that asked for it; None for parameters, inputs and the like."""
        return self._raw.position.line

    @property
    def seconds(self) -> float:
        return (self._raw.ended - self._raw.started) * 1e-9

    @property
    def keys(self) -> tuple[str, ...]:
        """Every text under which this operation is found."""
        return self._trace.keys.of(self.node)

    # ---- its tensors -----------------------------------------------------------------------------

    @property
    def slots(self) -> range:
        """Numbers of the tensors it returned."""
        return self._raw.returned

    @property
    def kept(self) -> bool:
        chosen = self._trace.record.chosen
        return chosen is None or self.node in chosen

    @property
    def value(self) -> Any:
        """What it returned: a tensor, or a tuple of tensors if there were several."""
        return self._one_or_all(self.outputs)

    @property
    def outputs(self) -> tuple[Any, ...]:
        """What it returned, always as a tuple."""
        label, layer, _ = self._trace.labels[self.node]
        return tuple([self._trace.values.value(slot, label, layer, self.kept) for slot in self.slots])

    @property
    def edited(self) -> tuple[Any, ...]:
        """The edits that made its value what it is, in order; empty if there were none."""
        return tuple(applied.edit for applied in self._trace.record.edited.get(self.node, ()))

    @property
    def gradient(self) -> Any:
        """Gradient of its value after `backward()`, None where none arrived."""
        return self._one_or_all([self._trace.values.gradient(slot) for slot in self.slots])

    @property
    def metas(self) -> tuple[Meta, ...]:
        return tuple(self._trace.values.meta(slot) for slot in self.slots)

    @property
    def shape(self) -> Any:
        """Shape of what it returned; a tuple of shapes if there were several tensors."""
        return self._one_or_all([tuple(meta.shape) for meta in self.metas])

    @property
    def dtype(self) -> Any:
        return self._one_or_all([meta.dtype for meta in self.metas])

    @property
    def device(self) -> Any:
        return self._one_or_all([meta.device for meta in self.metas])

    @property
    def bytes(self) -> int:
        """Size of the values it returned (a view counts like a copy)."""
        return sum(meta.bytes for meta in self.metas)

    @property
    def flops(self) -> int | None:
        """Floating point operations, a multiply-add as two; None if the count is not known."""
        if self.kind not in _MADE:
            return 0
        args, kwargs = self._trace.arguments_with(self.node, Shape)
        return count_flops(self.type, args, kwargs, [Shape(meta.shape) for meta in self.metas])

    def _one_or_all(self, values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 and not self._trace.returned_sequence(self.node) else tuple(values)

    # ---- its neighbours and place ----------------------------------------------------------------

    @property
    def parents(self) -> tuple[Op, ...]:
        return tuple(map(self._op_at, self._trace.graph_data.parents[self.node]))

    @property
    def children(self) -> tuple[Op, ...]:
        return tuple(map(self._op_at, self._trace.children[self.node]))

    @property
    def modules(self) -> tuple[str, ...]:
        """Addresses of the modules it ran in, outermost first; the target itself is not named."""
        return self._trace.record.calls.path(self._raw.call)

    @property
    def functions(self) -> tuple[str, ...]:
        """Custom autograd functions and registered operators it ran in, outermost first."""
        return self._trace.record.calls.functions(self._raw.call)

    @property
    def _op_at(self) -> partial[Op]:
        return partial(op_at, self._trace)

    @property
    def function(self) -> FunctionCall[Op]:
        """The call itself: function, arguments, random state."""
        return FunctionCall(self._trace, self.node, self._op_at)

    @property
    def relations(self) -> Relations[Op]:
        """Its place in the graph: ancestors, siblings, distances."""
        return Relations(self._trace, self.node, self._op_at)

    @property
    def place(self) -> Place[Op]:
        """Its place in the modules: entered, left, pass by pass."""
        return Place(self._trace, self.node, self._op_at)

    @property
    def params(self) -> ParameterUse[Op]:
        """The parameters it used."""
        return ParameterUse(self._trace, self.node, self._op_at)

    # ---- text ------------------------------------------------------------------------------------

    def line(self) -> str:
        """linear_1_1 (1/3 passes)  5x8"""
        passes = f" ({self.pass_}/{self.passes} passes)" if self.passes > 1 else ""
        return f"{self.label}{passes}  {shape_text(self.shape)}"

    def __repr__(self) -> str:
        return f"<Op {self.line()}>"

    def __str__(self) -> str:
        with unheard():
            return "\n".join(f"{title}: {text}" if title else text for title, text in _told(self))

    def _block(self) -> Markup:
        with unheard():
            return facts((title.strip(), text) for title, text in _told(self))


def op_at(trace: TraceData, node: int) -> Op:
    """The one object that stands for a node as long as anybody uses it."""
    alive = trace.views.get(node)
    op: Op | None = alive() if alive is not None else None
    if op is None or not trace.sealed:
        op = Op(trace, node)
        trace.views[node] = weakref.ref(op)
    return op


def kept_nodes(trace: TraceData) -> list[int]:
    """The operations whose value was kept, by number."""
    chosen = trace.record.chosen
    return [node for node in trace.graph_data.ops if chosen is None or node in chosen]


def op_at_position(trace: TraceData, position: int) -> Op:
    """Positions count over what was kept, or over everything if nothing was."""
    kept = kept_nodes(trace) or trace.graph_data.ops
    if not -len(kept) <= position < len(kept):
        raise LookupFailed(
            f"There is no operation at position {position}: {trace.name} has {len(kept)} of them, "
            f"0 to {len(kept) - 1} or -{len(kept)} to -1."
        )
    return op_at(trace, kept[position])


def ops_at(trace: TraceData, nodes: Iterable[int]) -> Table[Op]:
    return Table(MadeRows(partial(op_at, trace), list(nodes)))


def size_text(count: float) -> str:
    """1.6 KB."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def shape_text(shape: Any) -> str:
    if shape and isinstance(shape[0], tuple):
        return ", ".join(shape_text(s) for s in shape)
    return "x".join(map(str, shape)) if shape else "scalar"


def _told(op: Op) -> list[tuple[str, str]]:
    """Everything worth reading about one operation, as (title, text)."""
    trace = op._trace
    position = trace.keys.position.get(op.node)
    passes = f" (pass {op.pass_}/{op.passes})" if op.passes > 1 else ""
    where = f", operation {position + 1}/{len(trace.graph_data.ops)}" if position is not None else f", {op.kind}"
    facts = [("", f"{op.layer}{passes}{where}:")]
    facts.append(("    Kind", f"{op.kind}{f' at {op.path}' if op.path else ''}"))
    if op.edited:
        facts.append(("    Edited", ", ".join(map(str, op.edited))))
    facts += _tensor_facts(op)
    if op.params:
        shapes = ", ".join(map(str, op.params.shapes))
        facts.append(
            ("    Params", f"{', '.join(op.params.names)} with shape {shapes}; {op.params.count} params total "
             f"({size_text(op.params.bytes)})")
        )  # fmt: skip
    facts.append(("    Parents", labels_text(op.parents)))
    facts.append(("    Children", labels_text(op.children)))
    if op.kind in _MADE:
        call = op.function
        facts.append(("    Function", f"{call.name} (grad_fn={call.grad_fn})"))
        if call.plain_args or call.plain_kwargs:
            facts.append(("    Arguments", _arguments(op)))
        flops = op.flops
        facts.append(("    Cost", f"{op.seconds:.3E}s, {'unknown' if flops is None else f'{flops:,}'} FLOPs"))
    if op.functions:
        facts.append(("    Computed inside function", " > ".join(op.functions)))
    facts.append(("    Computed inside module", " > ".join(op.place.modules) or "(none)"))
    if op.place.left:
        facts.append(("    Output of modules", ", ".join(op.place.left)))
    if op.source:
        facts.append(("    Source", str(op.source)))
    facts.append(("    Lookup keys", ", ".join(_all_keys(op, position))))
    return facts


def _all_keys(op: Op, position: int | None) -> list[str]:
    kept = kept_nodes(op._trace) or op._trace.graph_data.ops
    place = kept.index(op.node) if position is not None and op.node in kept else None
    return [*([] if place is None else [str(place - len(kept)), str(place)]), *op.keys]


def _tensor_facts(op: Op) -> list[tuple[str, str]]:
    facts = []
    several = len(op.slots) > 1
    for number, meta in enumerate(op.metas):
        title = f"    Output tensor {number}" if several else "    Output tensor"
        facts.append((title, f"shape={tuple(meta.shape)}, dtype={meta.dtype}, size={size_text(meta.bytes)}"))
        if number < 3:
            facts.append(("", textwrap.indent(_value_text(op, number), " " * 8)))
    return facts


def _value_text(op: Op, number: int) -> str:
    try:
        return corner_text(op.outputs[number])
    except ValueNotKept:
        return "(not kept)"
    except ValueChanged:
        return "(overwritten since, not kept)"
    except Exception:
        return "(cannot be shown)"


def corner_text(tensor: Any) -> str:
    """The first five rows and columns, of the first matrix where there are more; with what was left out."""
    tensor = tensor.detach() if hasattr(tensor, "detach") else tensor  # what made this corner of it says nothing
    if hasattr(tensor, "layout") and (str(tensor.layout) != "torch.strided" or tensor.is_nested or tensor.is_quantized):
        return f"{tensor}" if tensor.numel() < 1000 else "(large)"
    corner, leading = tensor, ["0"] * (tensor.ndim - 2)
    for _ in leading:
        if not corner.shape[0]:
            return f"{tensor}"
        corner = corner[0]
    part = corner[:_CORNER, :_CORNER] if corner.ndim == 2 else corner[:_CORNER] if corner.ndim else corner
    if part.shape == tensor.shape:
        return f"{part}"
    sides = [f":{_CORNER}" if size > _CORNER else ":" for size in corner.shape]
    return f"{part}  ([{', '.join([*leading, *sides])}] of {shape_text(tuple(tensor.shape))})"


_CORNER = 5


def labels_text(ops: Sequence[Op]) -> str:
    shown = ", ".join(o.label for o in ops[:12])
    return (shown + (f", … {len(ops) - 12} more" if len(ops) > 12 else "")) or "(none)"


def _arguments(op: Op) -> str:
    call = op.function
    parts = [repr(a) for a in call.plain_args] + [f"{k}={v!r}" for k, v in call.plain_kwargs.items()]
    return textwrap.shorten(", ".join(parts), 300)
