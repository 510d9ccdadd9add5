"""One operation of a trace, as the user sees it: a thin view, everything is looked up when asked for.

The common facts are attributes of `Op`; the rest is grouped (`op.function`, `op.relations`, `op.place`, `op.params`)
so that no object has a hundred attributes. `docs/reference/metadata.md` lists them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from endoscope.analysis.flops import Shape, count_flops
from endoscope.capture.records import Meta, Node
from endoscope.capture.source import source_line
from endoscope.capture.torch_private import DisableTorchFunction
from endoscope.schema.ops import Kind, SourceLine

if TYPE_CHECKING:
    from endoscope.capture.metadata import FunctionCall, ParameterUse, Place, Relations
    from endoscope.capture.result import Trace


class Op:
    """One node of the graph: an operation, an input, an output, a parameter, a buffer or a constant."""

    __slots__ = ("__weakref__", "_trace", "node")

    def __init__(self, trace: Trace, node: int) -> None:
        self._trace = trace
        self.node = node  # position in order of hearing

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def _raw(self) -> Node:
        return self._trace.raw(self.node)

    @property
    def label(self) -> str:
        """As looked up: `relu_2_4`, `linear_1_1:2`, `fc.weight`."""
        label: str = self._trace.labels[self.node][0]
        return label

    @property
    def layer(self) -> str:
        """The label without the pass."""
        layer: str = self._trace.labels[self.node][1]
        return layer

    @property
    def pass_(self) -> int:
        """Which pass of its layer, from 1."""
        pass_: int = self._trace.labels[self.node][2]
        return pass_

    @property
    def type(self) -> str:
        """Plain name of the function: `add` for `+`, `add_` and `__iadd__`."""
        return str(self._raw.facts.type)

    @property
    def kind(self) -> Kind:
        return Kind(self._trace.graph_data.kinds[self.node])

    @property
    def path(self) -> str:
        """Where an input, output, parameter or buffer stands: `batch['ids']`, `logits`, `fc.weight`."""
        source = self._trace.recorder.sources.get(self.node)
        return source.name if source else ""

    @property
    def passes(self) -> int:
        """How often its layer runs."""
        return self._trace.passes_of(self)

    @property
    def source(self) -> SourceLine | None:
        """The user's line that asked for it; None for parameters, inputs and the like."""
        return source_line(self._raw.code, self._raw.instruction)

    @property
    def seconds(self) -> float:
        return float(self._raw.ended - self._raw.started) * 1e-9

    @property
    def keys(self) -> tuple[str, ...]:
        """Every text under which this operation is found."""
        return self._trace.keys_of(self)

    # ---- its tensors -----------------------------------------------------------------------------

    @property
    def slots(self) -> range:
        """Numbers of the tensors it returned."""
        return range(self._raw.slot, self._raw.slot + self._raw.outputs)

    @property
    def kept(self) -> bool:
        chosen = self._trace.recorder.chosen
        return chosen is None or self.node in chosen

    @property
    def value(self) -> Any:
        """What it returned: a tensor, or a tuple of tensors if there were several."""
        return self._one_or_all([self._trace.values.value(slot, self) for slot in self.slots])

    @property
    def outputs(self) -> tuple[torch.Tensor, ...]:
        """What it returned, always as a tuple."""
        return tuple(self._trace.values.value(slot, self) for slot in self.slots)

    @property
    def edited(self) -> tuple[Any, ...]:
        """The edits that made its value what it is, in order; empty if there were none."""
        return tuple(applied.edit for applied in self._trace.recorder.edited.get(self.node, ()))

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
        if self.kind not in (Kind.COMPUTED, Kind.GENERATED):
            return 0
        args, kwargs = self._trace.arguments_with(self.node, lambda meta: Shape(meta.shape))
        return count_flops(self.type, args, kwargs, [Shape(meta.shape) for meta in self.metas])

    def _one_or_all(self, values: list[Any]) -> Any:
        return values[0] if len(values) == 1 and not self._trace.returned_sequence(self.node) else tuple(values)

    # ---- its neighbours and place ----------------------------------------------------------------

    @property
    def parents(self) -> tuple[Op, ...]:
        return tuple(map(self._trace.op_at, self._trace.graph_data.parents[self.node]))

    @property
    def children(self) -> tuple[Op, ...]:
        return tuple(map(self._trace.op_at, self._trace.children[self.node]))

    @property
    def modules(self) -> tuple[str, ...]:
        """Addresses of the modules it ran in, outermost first; the target itself is not named."""
        return self._trace.recorder.calls.path(self._raw.call)

    @property
    def functions(self) -> tuple[str, ...]:
        """Custom autograd functions and registered operators it ran in, outermost first."""
        return self._trace.recorder.calls.functions(self._raw.call)

    @property
    def function(self) -> FunctionCall:
        """The call itself: function, arguments, random state."""
        from endoscope.capture.metadata import FunctionCall

        return FunctionCall(self)

    @property
    def relations(self) -> Relations:
        """Its place in the graph: ancestors, siblings, distances."""
        from endoscope.capture.metadata import Relations

        return Relations(self)

    @property
    def place(self) -> Place:
        """Its place in the modules: entered, left, pass by pass."""
        from endoscope.capture.metadata import Place

        return Place(self)

    @property
    def params(self) -> ParameterUse:
        """The parameters it used."""
        from endoscope.capture.metadata import ParameterUse

        return ParameterUse(self)

    def __repr__(self) -> str:
        from endoscope.capture.printing import op_line

        return f"<Op {op_line(self)}>"

    def __str__(self) -> str:
        from endoscope.capture.printing import op_text

        with DisableTorchFunction():
            return op_text(self)

    def _repr_html_(self) -> str:
        from endoscope.capture.printing import op_html

        with DisableTorchFunction():
            return op_html(self)
