"""Text and HTML of traces; `op.py` has those of operations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import groupby

from endoscope.analysis.picture_fold import fold
from endoscope.capture.drawing.scene import picture_of
from endoscope.capture.views.loops import layers_text
from endoscope.capture.views.modules import Layer, ModuleInfo
from endoscope.capture.views.op import Op, labels_text, size_text
from endoscope.capture.views.trace_views import TraceViews

_MOST_ROWS = 200
_MOST_REPEATS = 20
_FEWEST_ALIKE = 3  # modules that are one line
_MOST_UNFOLDED = 40  # operations, and modules, that are always listed one by one


def structure_text(trace: TraceViews) -> str:
    kind, reused = "purely feedforward", _reuse_text(trace)
    if trace.recurrent:
        most = max(layer.passes for loop in trace.loops for layer in loop.layers)
        kind, reused = "recurrent", [f"at most {most} loops", *reused]
    if reused:
        kind += f" ({', '.join(reused)})"
    branching = "with branching" if trace.branching else "without branching"
    modules = trace.totals.modules
    return f"{kind}, {branching}; {modules} total module{'s' * (modules != 1)}"


def _reuse_text(trace: TraceViews) -> list[str]:
    layers, parameters = _split_reused(trace)
    parts = [f"{len(layers)} layer{'s' * (len(layers) > 1)} used again"] if layers else []
    shared = f"{len(parameters)} parameter{'s' * (len(parameters) > 1)} shared by several layers"
    return [*parts, shared] if parameters else parts


def _split_reused(trace: TraceViews) -> tuple[list[Layer], list[Layer]]:
    """Layers that run several times, and parameters with the operations that use them."""
    layers = [layer for layer in trace.reused if layer.label == layer.ops[0].layer]
    return layers, [layer for layer in trace.reused if layer.label != layer.ops[0].layer]


def _title(trace: TraceViews) -> str:
    if trace.finished:
        return f"Trace of {trace.name}:"
    why = f"it was stopped after {trace.stopped_after}" if trace.stopped_after else "it did not finish"
    return f"Partial trace of {trace.name} ({why}):"


def trace_text(trace: TraceViews) -> str:
    totals, timing = trace.totals, trace.timing
    lines = [
        _title(trace),
        f"    Model structure: {structure_text(trace)}.",
        f"    {totals.tensors} tensors ({size_text(totals.tensor_bytes)}) computed; "
        f"{totals.kept} tensors ({size_text(totals.kept_bytes)}) saved.",
        f"    {totals.parameter_ops} parameter operation{'s' * (totals.parameter_ops != 1)} "
        f"({totals.parameters} params total; {size_text(totals.parameter_bytes)}).",
        f"    Random seed: {trace.seed if trace.seed is not None else 'not set'}",
        f"    Time elapsed: {timing.run:.3f}s ({timing.ops:.3f}s in {len(trace)} operations)",
    ]
    if trace.conditional:
        lines.append(f"    Conditional: what runs was decided by {labels_text(trace.conditions)}")
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


def _tree(trace: TraceViews) -> list[str]:
    """Modules below each other; equal ones that follow each other are one line, as in a drawing."""
    inside: dict[str, list[ModuleInfo]] = {}
    for module in trace.modules:
        if module.address:
            inside.setdefault(module.address.rpartition(".")[0], []).append(module)
    fewest = _FEWEST_ALIKE if sum(map(len, inside.values())) > _MOST_UNFOLDED else _MOST_ROWS
    lines = list(_branches(inside, "", "        ", fewest))
    return lines[:_MOST_ROWS] + ([f"        … {len(lines) - _MOST_ROWS} more"] if len(lines) > _MOST_ROWS else [])


def _branches(inside: Mapping[str, Sequence[ModuleInfo]], address: str, indent: str, fewest: int) -> Iterator[str]:
    def shape(module: ModuleInfo) -> Hashable:
        return module.type, module.parameters, module.passes, tuple(map(shape, inside.get(module.address, ())))

    for _, group in groupby(inside.get(address, ()), key=shape):
        alike = list(group)
        together = [alike] if len(alike) >= fewest else [[one] for one in alike]
        for first, *others in together:
            more = f" to {others[-1].address} (×{len(alike)})" if others else ""
            yield f"{indent}{first.address}{more}: {first.type}"
            yield from _branches(inside, first.address, indent + "    ", fewest)


def _repeats(trace: TraceViews) -> list[str]:
    """Loops, inner ones indented, and what is only used again."""
    loops = [f"{'    ' * loop.depth}x{loop.passes}: {layers_text(loop.layers)}" for loop in trace.loops]
    layers, parameters = _split_reused(trace)
    alike: dict[int, list[Layer]] = {}
    for layer in layers:
        alike.setdefault(layer.passes, []).append(layer)
    again = [f"x{passes}: {layers_text(same)}" for passes, same in alike.items()]
    again += [f"{one.label}: {labels_text(one.ops)}" for one in parameters]
    return _section("Loops", loops) + _section("Used again", again)


def _section(title: str, rows: list[str]) -> list[str]:
    more = [f"… {len(rows) - _MOST_REPEATS} more"] if len(rows) > _MOST_REPEATS else []
    return [f"    {title}:", *[f"        {row}" for row in rows[:_MOST_REPEATS] + more]] if rows else []


def _rows(trace: TraceViews) -> list[str]:
    """One line for each operation; of equal blocks that follow each other only the first has its lines."""
    rows: list[tuple[int, Op] | str] = []
    for folded, group in groupby(enumerate(trace.ops), key=_is_folded(trace)):
        members = list(group)
        if folded:
            first, last = members[0][1].label, members[-1][1].label
            rows.append(f"        … {len(members)} more in blocks like the one above: {first} to {last}")
        else:
            rows += members
    if len(rows) > _MOST_ROWS:
        left_out = f"        … {len(rows) - _MOST_ROWS} more, trace.ops has them all"
        rows = [*rows[: _MOST_ROWS // 2], left_out, *rows[-_MOST_ROWS // 2 :]]
    return [row if isinstance(row, str) else f"        {row[0]}: {row[1].line()}" for row in rows]


def _is_folded(trace: TraceViews) -> Callable[[tuple[int, Op]], bool]:
    if len(trace) <= _MOST_UNFOLDED:
        return lambda numbered: False
    drawn = {node.key for node in fold(picture_of(trace)).nodes}
    return lambda numbered: numbered[1].node not in drawn
