"""A few words the contract tests are written in. They touch nothing but public names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

import endoscope
from endoscope.errors import ValueChanged


def labels(ops: Iterable[Any]) -> list[str]:
    """The labels, in the order given."""
    return [op.label for op in ops]


def types(ops: Iterable[Any]) -> list[str]:
    """The types, in the order given."""
    return [op.type for op in ops]


def computed(trace: Any) -> list[Any]:
    """What was executed: everything in `trace.ops` that is neither an input nor an output."""
    return [op for op in trace.ops if op.kind not in ("input", "output")]


def only(trace: Any, type_: str) -> Any:
    """The one op of this type; more or fewer is a failure."""
    found = [op for op in trace.ops if op.type == type_]
    assert len(found) == 1, f"expected one {type_!r} among {labels(trace.ops)}"
    return found[0]


def ancestors(op: Any) -> set[str]:
    """Labels of everything that can be reached against the arrows."""
    seen: dict[str, Any] = {}
    waiting = list(op.parents)
    while waiting:
        parent = waiting.pop()
        if parent.label not in seen:
            seen[parent.label] = parent
            waiting.extend(parent.parents)
    return set(seen)


def identical(left: Any, right: Any) -> bool:
    """Bit for bit: dtype, shape, and every element, NaN included."""
    try:
        torch.testing.assert_close(left.detach(), right.detach(), rtol=0, atol=0, equal_nan=True)
    except AssertionError:
        return False
    return True


def true_or_refused(op: Any, expected: Tensor) -> bool:
    """Whether reading the value gives the true one, or is refused because it was overwritten unseen."""
    try:
        return identical(op.value, expected)
    except ValueChanged:
        return True


def label_of(op: Any) -> str:
    """The label a failure points at, whether it carries the op or its name."""
    return str(getattr(op, "label", op))


def proves(target: Callable[..., Any], inputs: Any) -> Any:
    """Validate and, when it does not hold, fail with what the report says."""
    report = endoscope.validate(target, inputs)
    assert report, "\n".join(f"{label_of(failure.op)}: {failure.reason}" for failure in report.failures)
    assert report.ok is True
    assert not list(report.failures)
    return report


def words(items: Iterable[Any]) -> str:
    """Warnings (or anything else) as one lower-case text to search in."""
    return " | ".join(str(item) for item in items).lower()
