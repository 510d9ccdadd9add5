"""Write `docs/architectures.md`: what the tracer was tried on, and whether the proof held.

    python -m tests.zoo.table

Takes about a minute. Run it after a change of the zoo, of the tracer or of the versions it is tried with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

import endoscope

from .architectures import ALL, KNOWN_LIMITS
from .building import Architecture

DOCUMENT = Path(__file__).parents[2] / "docs" / "architectures.md"
LONGEST_REASON = 160

HEAD = """\
# Architectures

We ran [`endoscope.validate`](reference/validate.md) on {total} architectures of `transformers` {transformers}
(torch {torch}). Each was built from a small configuration, with random weights, and ran once on random inputs.
Validation succeeded for **{held}** of them. `python -m tests.zoo.table` writes this page from the tests in `tests/zoo`.

| family | architectures | validated |
|---|---:|---:|
{families}

*Operations* is the number of operations in one forward pass of the small version. *Note* says what the trace could
not see, what validation left out, or why validation failed.

| name | family | class | operations | parameters | validated | note |
|---|---|---|---:|---:|---|---|
"""


@dataclass(frozen=True, slots=True)
class Row:
    architecture: Architecture
    operations: int | None
    parameters: int
    held: bool
    note: str

    def __str__(self) -> str:
        operations = "" if self.operations is None else f"{self.operations:,}"
        cells = (
            self.architecture.name,
            self.architecture.family,
            f"`{self.architecture.model_class}`",
            operations,
            f"{self.parameters:,}",
            "yes" if self.held else "**no**",
            self.note,
        )
        return f"| {' | '.join(cells)} |"


def measure(architecture: Architecture) -> Row:
    model, inputs = architecture.build()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    try:
        trace = endoscope.trace(model, inputs)
        report = endoscope.validate(model, inputs)
    except Exception as error:  # a crash is a result of this table too
        return Row(architecture, None, parameters, False, one_line(f"{type(error).__name__}: {error}"))
    gaps = [notice.message for notice in trace.warnings] + [f"not checked: {gap}" for gap in report.unchecked]
    note = KNOWN_LIMITS.get(architecture.name) or first_of([f.reason for f in report.failures] or gaps)
    return Row(architecture, len(trace), parameters, bool(report), one_line(note))


def first_of(reasons: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(reasons))
    others = len(distinct) - 1
    more = f" (and {others} more note{'s' if others > 1 else ''})" if others > 0 else ""
    return distinct[0] + more if distinct else ""


def one_line(text: str) -> str:
    """Fit for a table cell: no line breaks, no bars, no folders of this machine, not too long."""
    flat = re.sub(r"/\S*/", "", " ".join(text.split())).replace("|", "\\|")
    return flat if len(flat) <= LONGEST_REASON else flat[:LONGEST_REASON] + " …"


def page(rows: Sequence[Row]) -> str:
    total = Counter(row.architecture.family for row in rows)
    held = Counter(row.architecture.family for row in rows if row.held)
    head = HEAD.format(
        total=len(rows),
        held=sum(held.values()),
        transformers=transformers.__version__,
        torch=torch.__version__.partition("+")[0],
        families="\n".join(f"| {family} | {total[family]} | {held[family]} |" for family in total),
    )
    return head + "\n".join(map(str, rows)) + "\n"


def main() -> None:
    torch.set_num_threads(1)
    DOCUMENT.write_text(page([measure(architecture) for architecture in ALL]))


if __name__ == "__main__":
    main()
