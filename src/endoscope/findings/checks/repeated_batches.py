"""The same batch again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import INFO, WARNING

_LOOKED_AT = 6  # pairs of batches


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Every statistic of an input is equal, to the last bit, to that of another recorded step."""
    rows = facts.values
    chosen = rows.rows(lambda t: t.key.kind == "input" and t.key.batch_dim == 0 and len(t.key.shape) > 1 and t.is_float)
    chosen = np.array([row for row in chosen.tolist() if not facts.is_made(rows.tensors[row])], np.int64)
    for row in chosen.tolist():
        there = rows.there[row] & (rows["std"][row] > 0)
        if np.count_nonzero(there) < limits["steps"]:
            continue
        places = np.flatnonzero(there)
        print_ = np.stack([rows[name][row, places] for name in ("mean", "std", "norm", "q05", "q50", "q95")], axis=1)
        _, first, inverse = np.unique(print_, axis=0, return_index=True, return_inverse=True)
        repeated = np.arange(len(places)) != first[np.ravel(inverse)]
        # A step or two apart cannot be a new pass over the data, unless the data is a single batch.
        gaps = np.diff(facts.numbers[places])
        share = float(repeated.mean())
        always = len(first) == 1
        quickly = repeated[1:] & (np.ravel(inverse)[1:] == np.ravel(inverse)[:-1]) & (gaps <= 2)
        few = len(first) <= limits["few"] and len(places) >= 3 * limits["few"]
        # A run records ever fewer steps: only steps that are next to each other can tell.
        in_turn = any(
            np.count_nonzero(quickly & (gaps == gap)) >= max(limits["pairs"], limits["share"] * np.sum(gaps == gap))
            for gap in (1, 2)
        )
        if not in_turn and (share < limits["share"] or not (always or few)):
            continue
        if not _are_equal(facts, row, places, np.ravel(inverse), first):
            continue
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[places[repeated]] = True
        told = "every recorded step has the same batch" if always else f"{share:.0%} of the batches were seen before"
        yield Seen(
            of_the_run=True, severity=INFO if always or not facts.is_supervised else WARNING, title=told,
            detail=f"Going by the statistics of the input, {told}; reported from {limits['share']:.0%} on."
            + (" That is fine if all the data is one batch." if always else ""),
            value=share, threshold=limits["share"], tensor=rows.tensors[row], **facts.steps_where(mask),
        )  # fmt: skip


def _are_equal(facts: Facts, row: int, places: np.ndarray, group: np.ndarray, first: np.ndarray) -> bool:
    """Whether single samples repeat, too: batches of one-hot rows all have the same statistics."""
    again = [n for n in range(len(places)) if n != first[group[n]]][:_LOOKED_AT]
    tensor = facts.values.tensors[row]
    same = []
    for n in again:
        one, other = (facts.of_samples(tensor, int(places[at]), "mean") for at in (n, first[group[n]]))
        of_units = [facts.of_units(tensor, int(places[at])) for at in (n, first[group[n]])]
        if len(one) == len(other):
            same.append(bool(np.array_equal(one, other) and np.array_equal(of_units[0], of_units[1])))
    return not same or float(np.mean(same)) > 0.5


CHECK = Check(
    name="repeated_batches",
    description="The same batch comes again within a few steps, or there are only a few batches.",
    stage=Stage.DATA,
    run=run,
    thresholds={"share": 0.3, "few": 3, "pairs": 3, "steps": 6},
    causes=(
        "next(iter(loader)) inside the loop, which begins anew each time.",
        "Workers with the same random seed.",
    ),
    remedies=("Make the iterator once, before the loop.", "Seed each worker differently: worker_init_fn."),
)
