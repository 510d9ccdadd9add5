"""One rank that all others wait for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING

#: What a rank does by itself. In the backward pass it waits for the others, so there it is the others that are slow.
_OWN = ("data", "forward", "update")
_WORDS = {"data": "waiting for data", "forward": "the forward pass", "update": "the update"}


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """A rank that does by itself much more than the others, at most blocks of steps."""
    times = {rank: _per_step(own) for rank, own in facts.of_ranks.items()}
    if len(times) < 2:
        return
    starts = sorted(set.intersection(*(set(of_rank) for of_rank in times.values())))[int(limits["warm_up"]) :]
    if len(starts) < limits["blocks"]:
        return
    ranks = list(times)
    taken = np.array([[times[rank][start] for start in starts] for rank in ranks])  # [ranks, blocks, parts and all]
    for place, rank in enumerate(ranks):
        others = np.median(np.delete(taken, place, axis=0), axis=0)
        more = (taken[place, :, :-1] - others[:, :-1]) / np.maximum(others[:, -1:], 1e-9)
        share = float(np.median(more.sum(axis=1)))
        lasts = float(np.mean(more.sum(axis=1) > limits["share"]))
        if share > limits["share"] and lasts >= limits["lasts"]:
            part = _OWN[int(np.argmax(np.median(more, axis=0)))]
            own, usual = (
                float(np.median(taken[place, :, _OWN.index(part)])),
                float(np.median(others[:, _OWN.index(part)])),
            )
            yield Seen(
                of_the_run=True, severity=WARNING,
                title=f"rank {rank} is slow: it takes {share:.0%} of a step more than the others",
                detail=f"Rank {rank} takes {1000 * own:.3g} ms a step for {_WORDS[part]}, the others "
                f"{1000 * usual:.3g} ms; that is {share:.0%} of a step more by itself, while they wait for it.",
                value=share, threshold=limits["share"], cause=f"rank {rank}", steps=np.array(starts, np.int64),
            )  # fmt: skip


def _per_step(own: Facts) -> dict[int, list[float]]:
    """Where a block begins -> seconds a step of each part, and in all. Steps whose values were held take longer."""
    rows = own.recording.read("times").to_pylist()
    plain = [row for row in rows if not row["captured"]] or rows
    found: dict[int, np.ndarray] = {}
    for row in plain:
        added = np.array([row["steps"], *(row[part] for part in _OWN), row["seconds"]], np.float64)
        found[row["step"]] = found.get(row["step"], np.zeros(len(added))) + added
    return {step: (sums[1:] / sums[0]).tolist() for step, sums in found.items() if sums[0] > 0}


CHECK = Check(
    name="straggler",
    description="One rank takes much longer than the others for its own work, so all wait for it.",
    stage=Stage.DATA,
    run=run,
    thresholds={"share": 0.3, "lasts": 0.7, "blocks": 8, "warm_up": 2},
    causes=(
        "Its data is read from a slower disk, or has longer samples.",
        "Its processor is shared with something else, or runs at a lower frequency.",
    ),
    remedies=(
        '`endoscope query DIR "select rank, sum(data), sum(forward) from times group by rank"` compares the ranks.',
        "Give each rank batches of about the same length.",
    ),
)
