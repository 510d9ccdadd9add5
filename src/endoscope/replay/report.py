"""What a validation found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from endoscope.capture.views.op import Op
from endoscope.markup.notebook import Shown
from endoscope.markup.tags import Markup, tag
from endoscope.schema.ops import SourceLine


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that does not hold."""

    reason: str
    op: Op | None = None  # None if it concerns the run as a whole
    check: str = ""  # replay, parents, complete, untouched, inputs
    index: tuple[int, ...] | None = None  # first differing element
    expected: Any = None  # the value that was kept
    found: Any = None  # the value that the replay gave

    @property
    def source(self) -> SourceLine | None:
        return self.op.source if self.op is not None else None

    def __str__(self) -> str:
        where = f"{self.op.label}: " if self.op is not None else ""
        at = "" if self.index is None else f" at index {list(self.index)}: kept {self.expected}, replayed {self.found}"
        line = f" ({self.source})" if self.source else ""
        return f"[{self.check}] {where}{self.reason}{at}{line}"


@dataclass(slots=True)
class Report(Shown):
    """Truthy if everything that was checked holds."""

    name: str
    failures: list[Failure] = field(default_factory=list)
    checked: int = 0  # operations whose result was recomputed and compared
    edges: int = 0  # parents that were perturbed, or excused
    excused: list[tuple[Op, Op, str]] = field(default_factory=list)  # operation, parent, why it need not matter
    unchecked: list[str] = field(default_factory=list)  # what could not be checked, and why
    inexact: list[tuple[Op, float]] = field(default_factory=list)  # equal only within the tolerance
    tolerance: str = "bit for bit, else within 16 (half precision: 2) units of the last place of the largest value"

    @property
    def ok(self) -> bool:
        return not self.failures

    def __bool__(self) -> bool:
        return self.ok

    def fail(self, check: str, reason: str, op: Op | None = None, **details: Any) -> None:
        self.failures.append(Failure(reason, op, check, **details))

    def __str__(self) -> str:
        failed = f"FAILED: {len(self.failures)} failure{'s' * (len(self.failures) != 1)}"
        exact = self.checked - len(self.inexact)
        lines = [
            f"Validation of {self.name}: {'every check holds, the trace is right' if self.ok else failed}.",
            f"    {self.checked} operations were checked: {exact} gave the same bits again, {len(self.inexact)} gave "
            "the same values up to rounding.",
            f"    {self.edges} parents were checked: {self.edges - len(self.excused)} change the result, "
            f"{len(self.excused)} cannot change it with these values (see report.excused).",
        ]
        lines += [f"    FAILED {failure}" for failure in self.failures[:20]]
        if len(self.failures) > 20:
            lines.append(f"    … {len(self.failures) - 20} more in report.failures")
        lines += [f"    not checked: {text}" for text in self.unchecked[:20]]
        return "\n".join(lines)

    __repr__ = __str__

    def _block(self) -> Markup:
        return tag("pre", str(self))
