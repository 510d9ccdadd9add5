"""All samples of a batch become the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings import units
from endoscope.findings.architecture import is_taking_turns
from endoscope.findings.check import START, Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.rows import Tensor

_STEPS = 12  # that are looked at


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Spread over the batch, compared with the size of the numbers themselves, in the last steps."""
    rows = facts.values
    chosen = rows.rows(
        lambda t: t.key.kind in ("computed", "output") and t.key.batch_dim == 0 and t.is_float and t.key.shape[0] >= 4
    )
    shares: dict[int, list[tuple[int, float]]] = {}
    spreads: dict[int, list[tuple[int, float]]] = {}
    for found in units.backwards(facts, set(chosen.tolist()), _STEPS):
        size = float(np.sqrt(np.mean(found.mean.astype(np.float64) ** 2) + np.mean(found.std.astype(np.float64) ** 2)))
        spread = float(np.sqrt(np.mean(found.std.astype(np.float64) ** 2)))
        if size > 0:  # all zero is another matter
            shares.setdefault(found.tensor.row, []).append((found.place, spread / size))
        spreads.setdefault(found.tensor.row, []).append((found.place, spread))
    collapsed = {row for row, found_at in shares.items() if _stays_below(found_at, limits["spread"], limits)}
    faded = {row: _of_first(found_at) for row, found_at in spreads.items()}
    fallen = {row for row, found_at in faded.items() if _stays_below(found_at, limits["fall"], limits)}
    for row in sorted(_in_all_passes(facts, collapsed, shares)):
        if _depends_on_input(facts, rows.tensors[row]):
            text = "The result differs between samples by only {:.1e} of its size"
            yield _seen(facts, rows.tensors[row], shares[row], limits["spread"], text)
    for row in sorted(_in_all_passes(facts, fallen, shares) - collapsed):
        if _depends_on_input(facts, rows.tensors[row]):
            text = "The result differs between samples by only {:.1e} times as much as at first"
            yield _seen(facts, rows.tensors[row], faded[row], limits["fall"], text)


def _stays_below(found_at: list[tuple[int, float]], limit: float, limits: Limits) -> bool:
    """In the last steps; the newest stand first."""
    last = [value for _, value in found_at[: int(limits["steps"])]]
    return len(last) >= limits["steps"] and max(last) < limit


def _of_first(found_at: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Each spread divided by that of the earliest step."""
    first = found_at[-1][1]
    return [(place, value / first if first > 0 else 1.0) for place, value in found_at]


def _in_all_passes(facts: Facts, rows: set[int], known: dict[int, list[tuple[int, float]]]) -> set[int]:
    """A recurrence begins with a state that is the same for all samples; that is no fault of its first pass."""
    names = {facts.values.tensors[row].place[:2] for row in known.keys() - rows}
    return {row for row in rows if facts.values.tensors[row].place[:2] not in names}


def _depends_on_input(facts: Facts, tensor: Tensor) -> bool:
    """Whether it is made from an input that differs between samples; a constant one would explain it."""
    inputs = [t for t in facts.values.tensors if t.key.kind == "input" and t.key.batch_dim >= 0]
    above = facts.structure.above([tensor.place])
    return any(t.place in above and bool((facts.values["std"][t.row] > 0).any()) for t in inputs)


def _seen(facts: Facts, tensor: Tensor, found_at: list[tuple[int, float]], limit: float, text: str) -> Seen:
    mask = np.zeros(len(facts.steps), dtype=bool)
    for place, value in found_at:
        if value >= limit:
            break
        mask[place] = True
    value = float(np.median([value for place, value in found_at if mask[place]]))
    return Seen(
        severity=WARNING,
        title="all samples of a batch give nearly the same result",
        detail=f"{text.format(value)}; reported below {limit:g}.",
        value=value, threshold=limit, tensor=tensor, **facts.steps_where(mask),
    )  # fmt: skip


CHECK = Check(
    name="collapsed_batch",
    description="What a layer returns hardly differs between the samples of a batch, or far less than at first.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"spread": 0.003, "fall": 0.15, "steps": 4},
    evidence=Evidence(("std",), units="std", past=True),
    explained_by=("dead_units", "saturated", *START),
    causes=(
        "The network ignores its input: dead or saturated layers, or weights that are too small beside the biases.",
        "A representation that has collapsed.",
    ),
    causes_where=((is_taking_turns, "Mode collapse of a generator."),),
    remedies=("Look at the first node, in order of execution, that has it, and at what it reads.",),
    remedies_where=(
        (is_taking_turns, "Against mode collapse: a weaker discriminator, a loss that compares samples of one batch."),
    ),
)
