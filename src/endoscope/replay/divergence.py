"""`compare(a, b)`: how far two traces are apart, operation by operation, in the order of execution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.change.plan import Plan
from endoscope.capture.patch.torch_private import DisableTorchFunction
from endoscope.capture.trace import Arguments, dry_run
from endoscope.capture.trace import trace as run_trace
from endoscope.capture.views.op import Op
from endoscope.capture.views.result import Trace
from endoscope.capture.views.tables import Table
from endoscope.errors import BadArgument, CannotReplay, ValueChanged, ValueNotKept
from endoscope.markup.notebook import Shown, table
from endoscope.markup.tags import Markup, tag
from endoscope.replay.compare import plain, same

_MOST_SHOWN = 30


@dataclass(frozen=True, slots=True)
class Apart:
    """One operation of either trace, or of both."""

    label: str
    type: str
    status: str  # same, differs, only in a, only in b, not kept
    max_abs: float | None = None  # largest absolute difference of an element
    relative: float | None = None  # length of the difference ÷ length of the value in a
    cosine: float | None = None  # of the angle between the two values; None if one is zero
    note: str = ""
    op: Op = field(kw_only=True)  # of a if it is there

    @property
    def differs(self) -> bool:
        return self.status not in ("same", "not kept")

    def __str__(self) -> str:
        if self.max_abs is None:
            return f"{self.label}: {self.note or self.status}"
        cosine = "" if self.cosine is None else f", cosine {self.cosine:.4f}"
        return f"{self.label}: largest difference {self.max_abs:.3g}, relative {self.relative:.3g}{cosine}"


class Comparison(Shown):
    """All rows of a comparison; true if nothing differs."""

    def __init__(self, a: Trace, b: Trace, rows: list[Apart], tolerance: float) -> None:
        self.names = (a.name, b.name)
        self.rows: Table[Apart] = Table(rows)
        self.tolerance = tolerance

    @property
    def differing(self) -> Table[Apart]:
        """Rows that differ, or are in only one of the traces; the first divergence first."""
        return Table([row for row in self.rows if row.differs])

    @property
    def first(self) -> Apart | None:
        """Where the traces first differ; None if they do not."""
        return next((row for row in self.rows if row.differs), None)

    @property
    def equal(self) -> bool:
        return self.first is None

    def __bool__(self) -> bool:
        return self.equal

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Apart]:
        return iter(self.rows)

    def __getitem__(self, key: int | str) -> Apart:
        return self.rows[key]

    def to_pandas(self) -> Any:
        """All rows as a `pandas.DataFrame`."""
        return self.rows.to_pandas()

    def __str__(self) -> str:
        differing = self.differing
        within = f" within {self.tolerance:g}" if self.tolerance else ""
        unknown = sum(row.status == "not kept" for row in self.rows)
        lines = [
            f"Comparison of {' and '.join(self.names)}: {len(differing)} of {len(self)} differ{within}"
            f"{f', {unknown} not kept' if unknown else ''}.",
        ]
        if self.first is not None:
            source = f" ({self.first.op.source})" if self.first.op.source else ""
            lines.append(f"    First: {self.first.label}{source}")
            lines += _text_table(differing[:_MOST_SHOWN])
        if len(differing) > _MOST_SHOWN:
            lines.append(f"    … {len(differing) - _MOST_SHOWN} more in .differing")
        return "\n".join(lines)

    __repr__ = __str__

    def _block(self) -> Markup:
        first, *_ = str(self).partition("\n")
        rows = [
            (row.label, _number(row.max_abs), _number(row.relative), _number(row.cosine), row.note or _said(row.status))
            for row in self.differing[:_MOST_SHOWN]
        ]
        told = [tag("p", tag("b", first))]
        if self.first is not None and self.first.op.source:
            told.append(tag("p", f"First: {self.first.label} ({self.first.op.source})"))
        head = ("operation", "largest difference", "relative", "cosine", "")
        left = len(self.differing) - len(rows)
        more = tag("p", f"{left} more: comparison.differing", class_="soft") if left else None
        return tag("div", told, table(head, rows) if rows else None, more)


def compare(a: Trace, b: Trace, *, tolerance: float = 0.0, seed: int | None = None) -> Comparison:
    """How far two traces are apart, per operation, in the order of execution. Operations are matched by label.

    With a `seed` both are taken once more under it, so that they do not differ in random numbers.
    A `relative` difference of at most `tolerance` counts as none.
    """
    for trace in (a, b):
        if not isinstance(trace, Trace):
            raise BadArgument(
                f"compare() needs two traces, such as endoscope.compare(trace, trace.rerun(edit=...)), "
                f"not {type(trace).__name__}."
            )
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not tolerance >= 0:
        raise BadArgument(f"tolerance={tolerance!r}: use a number that is not negative, such as tolerance=1e-5.")
    if seed is not None:
        a, b = _taken_again(a, seed), _taken_again(b, seed)
    with DisableTorchFunction(), torch.no_grad():
        rows = [_row(left, right, tolerance) for left, right in _pairs(a, b)]
    return Comparison(a, b, rows, float(tolerance))


def _taken_again(trace: Trace, seed: int) -> Trace:
    trace = trace.live()
    if trace.origin is None:
        raise CannotReplay(
            f"compare(seed={seed}) takes both traces once more, and that of {trace.name} came from a `with tracing()` "
            f"block, which cannot be run again. Give the block the seed: endoscope.tracing(model, seed={seed})."
        )
    target, args, kwargs, changes = trace.origin()
    edit = Plan.of(dry_run(target, args, kwargs, seed), changes) if changes else None
    return run_trace(target, Arguments(tuple(args), kwargs), seed=seed, edit=edit)


def _pairs(a: Trace, b: Trace) -> Iterator[tuple[Op | None, Op | None]]:
    """Operations of both in the order of `a`; what only `b` has stands behind what came before it there."""
    left, right = (sorted(trace.everything(), key=lambda op: op.node) for trace in (a, b))
    there = {op.label: op for op in right}
    known = {op.label for op in left}
    extra: dict[str, list[Op]] = {}
    last = ""
    for op in right:
        if op.label in known:
            last = op.label
        else:
            extra.setdefault(last, []).append(op)
    yield from ((None, op) for op in extra.get("", ()))
    for op in left:
        yield op, there.get(op.label)
        yield from ((None, other) for other in extra.get(op.label, ()))


def _row(a: Op | None, b: Op | None, tolerance: float) -> Apart:
    op = a if a is not None else b
    assert op is not None
    if a is None or b is None:
        return Apart(op.label, op.type, "only in b" if a is None else "only in a", op=op)
    if a.node == b.node and _share_values(a, b):
        return Apart(a.label, a.type, "same", 0.0, 0.0, 1.0, op=a)
    try:
        left, right = a.outputs, b.outputs
    except (ValueNotKept, ValueChanged) as error:
        return Apart(a.label, a.type, "not kept", note=str(error).partition(".")[0], op=a)
    if [_kind(t) for t in left] != [_kind(t) for t in right]:
        note = f"{_kinds(left)} in a, {_kinds(right)} in b"
        return Apart(a.label, a.type, "differs", note=note, op=a)
    apart = [_distance(x, y) for x, y in zip(left, right, strict=True)]
    worst = max(apart, key=lambda found: (found[1], found[0]))
    status = "same" if worst[1] <= tolerance else "differs"
    return Apart(a.label, a.type, status, *worst, op=a)


def _share_values(a: Op, b: Op) -> bool:
    """A rerun shares what it did not compute anew with the trace it came from."""
    if a._trace.record.nodes is not b._trace.record.nodes or not a.kept or not b.kept:
        return False
    if a._trace.record is b._trace.record:
        return True  # one from a file has no recorder, and needs none to be equal to itself
    one, other = a._trace.recorder, b._trace.recorder
    return all(one.kept.get(slot) is other.kept.get(slot) for slot in a.slots)


def _distance(x: Tensor, y: Tensor) -> tuple[float, float, float | None]:
    """Largest difference, relative difference, cosine; NaN in both is no difference, in one an infinite one."""
    if same(x, y):
        return 0.0, 0.0, 1.0
    wide = torch.complex128 if x.is_complex() else torch.float64
    left, right = (plain(t, bits=False).to(wide).reshape(-1) for t in (x, y))
    agree = torch.isclose(left, right, rtol=0.0, atol=0.0, equal_nan=True)
    left, right = left[~agree], right[~agree]
    if not bool((torch.isfinite(left) & torch.isfinite(right)).all()):
        return float("inf"), float("inf"), None
    difference = (left - right).abs()
    whole, other = (plain(t, bits=False).to(wide).reshape(-1) for t in (x, y))
    finite = torch.isfinite(whole) & torch.isfinite(other)
    whole, other = whole[finite], other[finite]
    length, other_length = float(whole.norm()), float(other.norm())
    relative = float(difference.norm()) / length if length else float("inf")
    cosine = float((whole.conj() * other).sum().real) / (length * other_length) if length and other_length else None
    return float(difference.max()), relative, cosine


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape) if not tensor.is_nested else ("nested",), tensor.dtype


def _kinds(tensors: tuple[Tensor, ...]) -> str:
    return ", ".join(f"{shape} {dtype}" for shape, dtype in map(_kind, tensors))


def _text_table(rows: Table[Apart]) -> list[str]:
    head = ("", "largest difference", "relative", "cosine", "")
    cells = [head] + [
        (row.label, _number(row.max_abs), _number(row.relative), _number(row.cosine), row.note or _said(row.status))
        for row in rows
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(5)]
    return [
        "    "
        + "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:4], widths[1:4], strict=True))]
            + [row[4]]
        ).rstrip()
        for row in cells
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _said(status: str) -> str:
    return "" if status == "differs" else status
