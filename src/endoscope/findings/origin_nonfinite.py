"""NaN and infinity in a recording: what the recorder found out about them, or else where statistics show them first."""

from __future__ import annotations

from typing import Any

import numpy as np

from endoscope.findings.checks import nonfinite
from endoscope.findings.facts import Facts
from endoscope.findings.origin_noted import recorded_origins
from endoscope.schema.origin import NONFINITE, Origin


def nonfinite_of(facts: Facts, place: int | None) -> list[Origin]:
    """At one step, or at the first that has anything of the kind."""
    with np.errstate(all="ignore"):
        first = nonfinite.first_place(facts) if place is None else place
        if first is None:
            return []
        found = recorded_origins(facts, first)
        return found or [_shown(facts, seen, first) for seen in nonfinite.producers_at(facts, first)]


def _shown(facts: Facts, seen: Any, place: int) -> Origin:
    tensor = seen.tensor
    key = tensor.key
    rows = facts.parameters if key.of == "parameter" else facts.values
    of_tensors = key.of in ("value", "parameter")
    has_nan = not of_tensors or rows["nans"][tensor.row, place] > 0
    below_zero = of_tensors and rows["neg_infs"][tensor.row, place] > 0
    return Origin(
        sort=NONFINITE, of=key.of, node=key.node, operation=facts.type_of(tensor) or key.kind, module=key.module,
        source=key.source, step=int(facts.numbers[place]), samples=seen.samples, elements=int(seen.value),
        value=float("nan") if has_nan else float("-inf") if below_zero else float("inf"),
        exact=key.kind in ("input", "target", "parameter", "buffer") and key.of in ("value", "parameter"),
    )  # fmt: skip
