"""Ranks that have recorded nothing or less than others, and tensors of which the ranks have no whole."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.query.ranks import reasons
from endoscope.query.ranks.placement import BAD_SHARDS, UNTIED
from endoscope.query.ranks.tables import WholeTables


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """What is not known of all ranks together was not checked, and nobody may take it for sound."""
    tables = facts.recording.tables
    if not isinstance(tables, WholeTables) or not facts.steps or facts.recording.world_size == 1:
        return
    lacking = np.array([bool(tables.lacking.get(number)) for number in facts.numbers.tolist()])
    share = float(lacking.mean())
    if share >= limits["share"]:
        ranks = sorted({rank for gone in tables.lacking.values() for rank in gone})
        yield Seen(
            of_the_run=True, severity=WARNING, title="ranks are missing",
            detail=f"Of {np.count_nonzero(lacking)} of {len(lacking)} recorded steps there is nothing of "
            f"{reasons.named(ranks)}. What all ranks have together is not known there, and was not checked.",
            value=share, threshold=limits["share"], cause="missing", **facts.steps_where(lacking),
        )  # fmt: skip
    untied = [place for place, (why, _) in tables.why_not.items() if why in (UNTIED, BAD_SHARDS)]
    share = len(untied) / max(len(tables.arrangements), 1)
    if share >= limits["untied"]:
        yield Seen(
            of_the_run=True, severity=WARNING, title="ranks that nothing ties together",
            detail=f"Of {len(untied)} of {len(tables.arrangements)} tensors nothing says how those of several ranks "
            "belong together, so what they are together was not checked.",
            value=share, threshold=limits["untied"], cause="untied",
            remedies=("Check each rank by itself: `endoscope check DIR --rank 0`.",),
            steps=np.sort(facts.numbers),
        )  # fmt: skip


CHECK = Check(
    name="lost_ranks",
    description="Ranks of a job recorded nothing, or ended early, or it is not known how their tensors belong "
    "together.",
    stage=Stage.RECORDING,
    run=run,
    thresholds={"share": 0.1, "untied": 0.5},
    causes=(
        "A process was killed, or is still at work.",
        "`endoscope.Run` is made on rank 0 only, or each rank decides by itself which steps are kept.",
    ),
    remedies=(
        "Make `endoscope.Run` on every rank; all of them write one trial.",
        "Check what is there: `endoscope check DIR --rank 0`.",
    ),
)
