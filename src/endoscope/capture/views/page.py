"""A trace as HTML: what a notebook shows of it, and all of it as one offline page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from endoscope.capture.drawing.overview import overview
from endoscope.capture.views.measured import Measured, measured
from endoscope.capture.views.op import Op, labels_text, shape_text, size_text
from endoscope.capture.views.printing import structure_text
from endoscope.capture.views.trace_views import TraceViews
from endoscope.markup import notebook, numbers
from endoscope.markup.page import logo, page
from endoscope.markup.tags import Markup, picture, tag

_MOST_ROWS = 300  # of operations, in a notebook
_MOST_DRAWN = 120  # nodes
_MOST_DEAR = 10
_MOST_DRAWN_BYTES = 180_000  # of SVG


# ---- in a notebook ---------------------------------------------------------------------------------------------------


def trace_block(trace: TraceViews) -> Markup:
    facts = " · ".join(f"{value} {name}" for name, value in _tiles(trace))
    parts = [
        tag("p", tag("b", trace.name), f": {facts}"),
        tag("p", f"{structure_text(trace)}.", class_="soft"),
        *_warnings(trace),
    ]
    svg = overview(trace, _MOST_DRAWN)
    if svg is not None and len(svg) <= _MOST_DRAWN_BYTES:
        parts.append(notebook.folded("graph", tag("div", picture(svg, f"graph of {trace.name}"), class_="picture")))
    parts.append(notebook.folded("operations", notebook.table(("", *_SHORT), _short_rows(trace))))
    if len(trace) > _MOST_ROWS:
        parts.append(
            tag("p", f"{len(trace) - _MOST_ROWS} more: trace.ops, or trace.to_html() for a page.", class_="soft")
        )
    return tag("div", notebook.fitting(parts, "More does not fit here: trace.to_html() makes a page of it."))


_SHORT = ("label", "shape", "module", "parents")


def _short_rows(trace: TraceViews) -> Iterator[tuple[Any, ...]]:
    for number, op in enumerate(trace.ops[:_MOST_ROWS]):
        yield number, op.label, shape_text(op.shape), " > ".join(op.modules), labels_text(op.parents)


# ---- as a page -------------------------------------------------------------------------------------------------------


def trace_page(trace: TraceViews) -> str:
    """Everything that can be read without asking: one file, no script."""
    written = f"taken {numbers.moment(trace.timing.started)}, written {numbers.moment(time.time())}"
    head = tag(
        "header", logo("endoscope trace"), tag("h1", trace.name), tag("p", f"{structure_text(trace)}.", class_="soft"),
        tag("p", written, class_="soft"),
    )  # fmt: skip
    tiles = [tag("div", tag("dt", name), tag("dd", value)) for name, value in _tiles(trace)]
    values = {op.node: measured(op) for op in trace.ops}
    body = [
        head,
        tag("dl", tiles, class_="tiles wide"),
        *_warnings(trace),
        *_picture(trace),
        *_dear(trace),
        *_wrong(trace, values),
        *_told(trace),
        *_modules(trace),
        _operations(trace, values),
    ]
    return page(f"{trace.name} – endoscope trace", body)


def _tiles(trace: TraceViews) -> list[tuple[str, str]]:
    totals, timing = trace.totals, trace.timing
    return [
        ("operations", numbers.whole(len(trace))),
        ("modules", numbers.whole(totals.modules)),
        ("parameters", numbers.whole(totals.parameters)),
        ("activations", size_text(totals.tensor_bytes)),
        ("kept", size_text(totals.kept_bytes)),
        ("FLOPs", numbers.number(totals.flops)),
        ("in operations", _duration(timing.ops)),
    ]


def _warnings(trace: TraceViews) -> list[Markup]:
    told = [str(warning) for warning in trace.warnings]
    if not trace.finished:
        why = f"It was stopped after {trace.stopped_after}" if trace.stopped_after else "It did not finish"
        told.insert(0, f"{why}: this is what was recorded until then.")
    if not told:
        return []
    return [tag("div", tag("b", "Not everything could be seen"), tag("ul", [tag("li", one) for one in told]))]


def _picture(trace: TraceViews) -> list[Markup]:
    svg = overview(trace, _MOST_DRAWN * 3)
    if svg is None:
        hint = f'Too large to be drawn as a whole. trace.draw("{trace.name}.svg", module=…) draws a part of it.'
        return [tag("section", tag("h3", "Graph"), tag("p", hint, class_="soft"))]
    return [tag("section", tag("h3", "Graph"), tag("div", picture(svg, f"graph of {trace.name}"), class_="stage"))]


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], numeric: int = 0) -> list[Markup]:
    """The last `numeric` columns are numbers."""
    if not rows:
        return []
    first = len(head) - numeric
    looks = ["number" if place >= first else None for place in range(len(head))]
    cells = [tag("tr", [tag("th", word, class_=look) for word, look in zip(head, looks, strict=True)])]
    cells += [tag("tr", [tag("td", cell, class_=look) for cell, look in zip(row, looks, strict=True)]) for row in rows]
    return [tag("section", tag("h3", title), tag("table", cells, class_="listing"))]


def _dear(trace: TraceViews) -> list[Markup]:
    """What costs most time, computation and memory."""
    ops = [op for op in trace.ops if op.seconds > 0]
    whole = sum(op.seconds for op in ops) or 1.0
    rows = [
        (op.label, _place(op), str(op.source or ""), _duration(op.seconds),
         f"{op.seconds / whole:.0%}", numbers.number(op.flops) if op.flops is not None else "–", size_text(op.bytes))
        for op in sorted(ops, key=lambda op: -op.seconds)[:_MOST_DEAR]
    ]  # fmt: skip
    return _table("What takes longest", ("operation", "module", "line", "time", "of all", "FLOPs", "memory"), rows, 4)


def _wrong(trace: TraceViews, values: dict[int, Measured | None]) -> list[Markup]:
    found = [(op, values[op.node]) for op in trace.ops]
    rows = [
        (op.label, _place(op), str(op.source or ""), f"{one.not_finite:.2%}")
        for op, one in found
        if one is not None and one.not_finite
    ]
    return _table("NaN and infinity", ("operation", "module", "line", "of its elements"), rows[:50], 1)


def _told(trace: TraceViews) -> list[Markup]:
    loops = [
        (str(loop.source or ""), numbers.whole(loop.passes), ", ".join(one.label for one in loop.layers[:8]))
        for loop in trace.loops
    ]
    decisions = [(str(one.test), str(one.value), one.branch) for one in trace.decisions]
    return [
        *_table("Loops", ("line", "passes", "layers"), loops[:100]),
        *_table("What values decided", ("test", "value", "branch"), decisions[:200]),
    ]


def _modules(trace: TraceViews) -> list[Markup]:
    rows = [
        (m.address or "(target)", m.type, numbers.whole(m.passes), numbers.whole(m.parameters), numbers.number(m.flops),
         _duration(m.seconds))
        for m in trace.modules
    ]  # fmt: skip
    head = ("module", "class", "calls", "parameters", "FLOPs", "time")
    return [tag("details", tag("summary", f"Modules ({len(rows)})"), _table("", head, rows, 4))] if rows else []


def _operations(trace: TraceViews, values: dict[int, Measured | None]) -> Markup:
    rows = [_row(op, values[op.node]) for op in trace.ops]
    head = (
        "operation", "shape", "type", "module", "parents", "line", "time", "FLOPs", "memory", "mean", "std", "least",
        "largest",
    )  # fmt: skip
    return tag("details", tag("summary", f"Operations ({len(rows)})"), _table("", head, rows, 7))


def _place(op: Op) -> str:
    return op.modules[-1] if op.modules else ""


def _duration(seconds: float) -> str:
    """Operations take microseconds."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns" if seconds else "0"


def _row(op: Op, values: Measured | None) -> tuple[str, ...]:
    told = ("–",) * 4 if values is None else tuple(map(numbers.number, values[:4]))
    flops = op.flops
    return (
        op.label, shape_text(op.shape), str(op.dtype).replace("torch.", ""), _place(op),
        labels_text(op.parents), str(op.source or ""), _duration(op.seconds),
        "–" if flops is None else numbers.number(flops), size_text(op.bytes), *told,
    )  # fmt: skip
