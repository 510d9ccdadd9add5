"""Text and HTML of traces and operations."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from endoscope.capture.loops import layers_text
from endoscope.capture.summary import size_text
from endoscope.errors import ValueChanged, ValueNotKept
from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    from endoscope.capture.modules import Layer
    from endoscope.capture.op import Op
    from endoscope.capture.result import Trace

_MOST_ROWS = 200
_MOST_REPEATS = 20


def shape_text(shape: Any) -> str:
    if shape and isinstance(shape[0], tuple):
        return ", ".join(shape_text(s) for s in shape)
    return "x".join(map(str, shape)) if shape else "scalar"


def op_line(op: Op) -> str:
    passes = f" ({op.pass_}/{op.passes} passes)" if op.passes > 1 else ""
    return f"{op.label}{passes}  {shape_text(op.shape)}"


def structure_text(trace: Trace) -> str:
    kind, reused = "purely feedforward", _reuse_text(trace)
    if trace.recurrent:
        most = max(layer.passes for loop in trace.loops for layer in loop.layers)
        kind, reused = "recurrent", [f"at most {most} loops", *reused]
    if reused:
        kind += f" ({', '.join(reused)})"
    branching = "with branching" if trace.branching else "without branching"
    modules = trace.totals.modules
    return f"{kind}, {branching}; {modules} total module{'s' * (modules != 1)}"


def _reuse_text(trace: Trace) -> list[str]:
    layers, parameters = _split_reused(trace)
    parts = [f"{len(layers)} layer{'s' * (len(layers) > 1)} used again"] if layers else []
    shared = f"{len(parameters)} parameter{'s' * (len(parameters) > 1)} shared by several layers"
    return [*parts, shared] if parameters else parts


def _split_reused(trace: Trace) -> tuple[list[Layer], list[Layer]]:
    """Layers that run several times, and parameters with the operations that use them."""
    layers = [layer for layer in trace.reused if layer.label == layer.ops[0].layer]
    return layers, [layer for layer in trace.reused if layer.label != layer.ops[0].layer]


def trace_text(trace: Trace) -> str:
    totals, timing = trace.totals, trace.timing
    lines = [
        f"Trace of {trace.name}:" if trace.finished else f"Partial trace of {trace.name} (it did not finish):",
        f"    Model structure: {structure_text(trace)}.",
        f"    {totals.tensors} tensors ({size_text(totals.tensor_bytes)}) computed; "
        f"{totals.kept} tensors ({size_text(totals.kept_bytes)}) saved.",
        f"    {totals.parameter_ops} parameter operation{'s' * (totals.parameter_ops != 1)} "
        f"({totals.parameters} params total; {size_text(totals.parameter_bytes)}).",
        f"    Random seed: {trace.seed if trace.seed is not None else 'not set'}",
        f"    Time elapsed: {timing.run:.3f}s ({timing.ops:.3f}s in {len(trace)} operations)",
    ]
    if trace.edited:
        shown = [f"{op.label} by {', '.join(map(str, op.edited))}" for op in trace.edited[:10]]
        lines.append(f"    Edited: {'; '.join(shown)}{'; …' if len(trace.edited) > 10 else ''}")
    if trace.warnings:
        lines.append(f"    Not everything could be seen ({len(trace.warnings)}):")
        lines += [f"        {warning}" for warning in trace.warnings[:10]]
    lines.append("    Module Hierarchy:")
    lines += _tree(trace) or ["        (none)"]
    lines += _repeats(trace)
    lines.append("    Layers:")
    lines += _rows(trace)
    return "\n".join(lines)


def _tree(trace: Trace) -> list[str]:
    rows = [m for m in trace.modules if m.address]
    lines = [f"        {'    ' * m.address.count('.')}{m.address}: {m.type}" for m in rows[:_MOST_ROWS]]
    return lines + ([f"        … {len(rows) - _MOST_ROWS} more"] if len(rows) > _MOST_ROWS else [])


def _repeats(trace: Trace) -> list[str]:
    """Loops, inner ones indented, and what is only used again."""
    loops = [f"{'    ' * loop.depth}x{loop.passes}: {layers_text(loop.layers)}" for loop in trace.loops]
    layers, parameters = _split_reused(trace)
    alike: dict[int, list[Layer]] = {}
    for layer in layers:
        alike.setdefault(layer.passes, []).append(layer)
    again = [f"x{passes}: {layers_text(same)}" for passes, same in alike.items()]
    again += [f"{one.label}: {_labels(one.ops)}" for one in parameters]
    return _section("Loops", loops) + _section("Used again", again)


def _section(title: str, rows: list[str]) -> list[str]:
    more = [f"… {len(rows) - _MOST_REPEATS} more"] if len(rows) > _MOST_REPEATS else []
    return [f"    {title}:", *[f"        {row}" for row in rows[:_MOST_REPEATS] + more]] if rows else []


def _rows(trace: Trace) -> list[str]:
    ops = list(trace.ops)
    shown = ops if len(ops) <= _MOST_ROWS else [*ops[: _MOST_ROWS // 2], None, *ops[-_MOST_ROWS // 2 :]]
    lines, position = [], 0
    for op in shown:
        if op is None:
            lines.append(f"        … {len(ops) - _MOST_ROWS} more, trace.ops has them all")
            position = len(ops) - _MOST_ROWS // 2
            continue
        lines.append(f"        {position}: {op_line(op)}")
        position += 1
    return lines


def op_text(op: Op) -> str:
    return "\n".join(f"{title}: {text}" if title else text for title, text in op_facts(op))


def op_facts(op: Op) -> list[tuple[str, str]]:
    """Everything worth reading about one operation, as (title, text)."""
    trace = op._trace
    position = trace.position_of(op)
    passes = f" (pass {op.pass_}/{op.passes})" if op.passes > 1 else ""
    where = f", operation {position + 1}/{len(trace)}" if position is not None else f", {op.kind}"
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
    facts.append(("    Parents", _labels(op.parents)))
    facts.append(("    Children", _labels(op.children)))
    if op.kind in (Kind.COMPUTED, Kind.GENERATED):
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
    kept = op._trace.kept or op._trace.ops  # positions count over what was kept
    place = position if len(kept) == len(op._trace) else kept.index(op) if op in kept else None
    numbers = [] if place is None else [str(place - len(kept)), str(place)]
    return [*numbers, *op.keys]


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
        tensor = op.outputs[number]
        return f"{tensor[:5, :5] if tensor.dim() == 2 else tensor}" if tensor.numel() < 100_000 else "(large)"
    except ValueNotKept:
        return "(not kept)"
    except ValueChanged:
        return "(overwritten since, not kept)"
    except Exception:
        return "(cannot be shown)"


def _labels(ops: Sequence[Op]) -> str:
    shown = ", ".join(o.label for o in ops[:12])
    return (shown + (f", … {len(ops) - 12} more" if len(ops) > 12 else "")) or "(none)"


def _arguments(op: Op) -> str:
    call = op.function
    parts = [repr(a) for a in call.plain_args] + [f"{k}={v!r}" for k, v in call.plain_kwargs.items()]
    return textwrap.shorten(", ".join(parts), 300)


def trace_html(trace: Trace) -> str:
    """Summary and a table of operations; plain HTML, no script."""
    totals = trace.totals
    head = (
        f"<b>{html.escape(trace.name)}</b>: {len(trace)} operations, {totals.parameters:,} parameters, "
        f"{size_text(totals.tensor_bytes)} of activations. {html.escape(structure_text(trace))}."
    )
    notes = "".join(f"<li>{html.escape(str(w))}</li>" for w in trace.warnings)
    rows = "".join(
        f"<tr><td>{i}</td><td>{html.escape(op.label)}</td><td>{html.escape(shape_text(op.shape))}</td>"
        f"<td>{html.escape(' > '.join(op.modules))}</td><td>{html.escape(_labels(op.parents))}</td></tr>"
        for i, op in enumerate(trace.ops[:_MOST_ROWS])
    )
    table = f"<table><tr><th></th><th>label</th><th>shape</th><th>module</th><th>parents</th></tr>{rows}</table>"
    notes = f"<ul>{notes}</ul>" if notes else ""
    return f"<div>{head}{notes}<details><summary>operations</summary>{table}</details></div>"


def op_html(op: Op) -> str:
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(title.strip())}</th><td><pre>{html.escape(text)}</pre></td></tr>"
        for title, text in op_facts(op)
    )
    return f"<table>{rows}</table>"
