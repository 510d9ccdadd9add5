"""Every public answer of a trace, told by walking its public names; so that two traces can be compared without a list.

`answers(trace)` yields (where, answer). What an answer is made of is taken apart until plain values are left: names
that are added to a class are looked at without anything being changed here.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np
import torch

from endoscope.capture.change.edit import Edit
from endoscope.capture.data.words import Stored, TorchName
from endoscope.capture.drawing.draw import DotSource
from endoscope.capture.views.loops import Loop
from endoscope.capture.views.metadata import FunctionCall, ParameterUse, Place, Relations
from endoscope.capture.views.modules import Layer, ModuleInfo
from endoscope.capture.views.op import Op
from endoscope.capture.views.result import Trace
from endoscope.capture.views.structure import TraceGraph
from endoscope.errors import EndoscopeError
from endoscope.schema.graph import GraphEdge

#: Names that are no answers: what is behind the trace, and what is done with it.
NOT_ANSWERS: dict[type, set[str]] = {
    Trace: set(
        """record recorder values store views graph_data labels keys raw op_at of_kind caches arguments_with learned
        returned_sequence conditions_by_node decisions_by_node seal sealed with_values_of origin live result_from
        freeze draw rerun validate save show to_html position_of everything children""".split()
    ),
    Op: {"line"},
    FunctionCall: {"func"},  # not in a file
    TraceGraph: set("ancestors descendants paths parents children select contract between find".split()),
}


def differences(one: Trace, other: Trace) -> list[str]:
    """What the second answers differently."""
    mine, theirs = dict(answers(one)), dict(answers(other))
    found = [f"{where}: only one of them answers" for where in sorted(mine.keys() ^ theirs.keys())]
    found += [f"{w}: {mine[w]!r} and {theirs[w]!r}" for w in mine if w in theirs and not same(mine[w], theirs[w])]
    return found


def answers(trace: Trace) -> Iterator[tuple[str, Any]]:
    yield from _of(trace, "trace", 0)
    for op in trace.everything():
        yield from _of(op, f"op {op.node}", 0)
        yield f"op {op.node} str", str(op)
        yield f"op {op.node} html", op._repr_html_()
        for group in (op.function, op.relations, op.place, op.params):
            yield from _of(group, f"op {op.node} {type(group).__name__}", 1)
        yield f"op {op.node} position", trace.position_of(op)
        for key in op.keys:
            yield f"key {key}", _plain(trace[key])
    for layer in trace.layers:
        yield from _of(layer, f"layer {layer.label}", 1)
    for module in trace.modules:
        yield from _of(module, f"module {module.label}", 1)
    yield "str", str(trace)
    yield "html", trace._repr_html_()
    for how in ({}, {"rolled": True}, {"depth": 1}, {"fold": False}):
        drawn = trace.draw(**how)  # type: ignore[arg-type]
        assert isinstance(drawn, DotSource)
        yield f"draw {how}", str(drawn)
        yield f"svg {how}", drawn._repr_svg_()
    yield "edges", [_plain(edge) for edge in trace.graph.edges]
    yield "columns", trace.ops.columns()


def public_names(kind: type) -> list[str]:
    hidden = {name for known, names in NOT_ANSWERS.items() if issubclass(kind, known) for name in names}
    return [name for name in dir(kind) if not name.startswith("_") and name not in hidden]


def _of(thing: Any, where: str, depth: int) -> Iterator[tuple[str, Any]]:
    attributes = [*public_names(type(thing)), *(n for n in getattr(thing, "__dict__", ()) if not n.startswith("_"))]
    hidden = {name for known, names in NOT_ANSWERS.items() if isinstance(thing, known) for name in names}
    for name in dict.fromkeys(attributes):
        if name in hidden or callable(getattr(type(thing), name, None)):
            continue
        try:
            value = getattr(thing, name)
        except EndoscopeError as error:
            value = type(error).__name__
        if not callable(value):
            yield f"{where}.{name}", _plain(value)


def _plain(value: Any) -> Any:
    """The same without objects of ours: operations by their label, all else by its parts."""
    if isinstance(value, Op):
        return f"<{value.label}>"
    if isinstance(value, Layer):
        return ("layer", value.label, [_plain(op) for op in value.ops])
    if isinstance(value, TraceGraph):
        return ("graph", value.hash, len(value))
    if isinstance(value, (Loop, ModuleInfo, GraphEdge, Edit)):
        return str(value)
    if isinstance(value, (FunctionCall, Relations, Place, ParameterUse)):
        return type(value).__name__
    if isinstance(value, (torch.Tensor, np.ndarray)) or value is None or isinstance(value, (enum.Enum, torch.dtype)):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, Stored)):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return (type(value).__name__, str(value), fields)
    if isinstance(value, Stored):
        return repr(value)
    if isinstance(value, (bool, int, float, str, bytes, complex, TorchName, torch.Size)):
        return value
    if isinstance(value, slice):
        return ("slice", *map(_plain, (value.start, value.stop, value.step)))
    return [_plain(item) for item in value] if isinstance(value, (Sequence, Set)) else repr(value)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and _sizes(one) == _sizes(other) and _bits(one) == _bits(other)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return type(one) is type(other) and bool(one == other)


def _sizes(tensor: torch.Tensor) -> object:
    return [tuple(one.shape) for one in tensor.unbind()] if tensor.is_nested else tensor.shape


def _bits(tensor: torch.Tensor) -> bytes:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_meta:
        return str(tensor).encode()
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().as_strided((tensor.numel(),), (1,))
    return flat.view(torch.uint8).numpy().tobytes()
