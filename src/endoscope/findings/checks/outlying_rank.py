"""One rank whose loss or gradient is far from that of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, WARNING
from endoscope.query.ranks.placement import PARTIAL


class _Curves(NamedTuple):
    """The same number on several ranks."""

    name: str
    ranks: list[int]
    values: np.ndarray  # float64[ranks, steps], as magnitudes; NaN where a rank lacks


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Compared with the other ranks at the same step, and with how far ranks are apart at all steps."""
    for curves in (*_losses(facts), *_gradients(facts)):
        seen = _of(facts, limits, curves)
        if seen is not None:
            yield seen


def _of(facts: Facts, limits: Limits, curves: _Curves) -> Seen | None:
    values = curves.values
    there = ~np.isnan(np.where(np.isinf(values), 0.0, values))
    broken = np.isinf(values) & (np.isfinite(values).sum(axis=0) > 0)
    others = np.stack([np.nanmedian(np.delete(values, n, axis=0), axis=0) for n in range(len(values))])
    away = np.log(values / others)
    usual = 1.4826 * np.nanmedian(np.abs(away[np.isfinite(away)])) if np.isfinite(away).any() else 0.0
    limit = max(np.log(limits["factor"]), limits["sigmas"] * usual)
    bad = (broken | ((away > limit) & np.isfinite(away))) & there
    if not bad.any():
        return None
    place = int(np.argmax(bad.sum(axis=1)))
    steps = np.flatnonzero(bad[place])
    first = int(steps[0])
    rank, is_broken = curves.ranks[place], bool(broken[place].any())
    factor = float(np.exp(np.max(away[place, steps]))) if not is_broken else float("inf")
    told = "is not finite" if is_broken else f"is {factor:.3g} times that of the others"
    micro = _micro_batch(facts, rank, first, curves.name)
    mask = np.zeros(len(facts.steps), bool)
    mask[steps] = True
    return Seen(
        severity=ERROR if is_broken else WARNING, title=f"{curves.name} of rank {rank} {told}",
        detail=f"{curves.name[:1].upper()}{curves.name[1:]} of rank {rank} {told}, at {len(steps)} of "
        f"{values.shape[1]} steps, first at step {facts.numbers[first]}{micro}.",
        value=factor, threshold=limits["factor"], node=curves.name, cause=f"rank {rank}", **facts.steps_where(mask),
    )  # fmt: skip


def _losses(facts: Facts) -> Iterator[_Curves]:
    """Losses that were logged, or recorded as tensors, at the recorded steps."""
    ranks = list(facts.of_ranks)
    names = dict.fromkeys(curve.name for own in facts.of_ranks.values() for curve in own.losses)
    for name in names:
        values = np.full((len(ranks), len(facts.steps)), np.nan)
        for place, own in enumerate(facts.of_ranks.values()):
            for curve in (one for one in own.losses if one.name == name):
                known = dict(zip(curve.numbers.tolist(), curve.values.tolist(), strict=True))
                found = np.array([known.get(n, np.nan) for n in facts.numbers.tolist()])
                logged = np.array([n in known for n in facts.numbers.tolist()], bool)
                values[place, logged] = np.where(np.isfinite(found), np.abs(found), np.inf)[logged]
        if (~np.isnan(values)).sum(axis=0).max(initial=0) > 1:
            yield _Curves(f"loss {name!r}" if name != "loss" else "the loss", ranks, values)


def _gradients(facts: Facts) -> Iterator[_Curves]:
    """The gradient of all parameters together, before the ranks reduce it."""
    ranks = list(facts.of_ranks)
    values = np.full((len(ranks), len(facts.steps)), np.nan)
    for place, own in enumerate(facts.of_ranks.values()):
        rows = own.local_gradients
        # Summands of one gradient need not be alike.
        comparable = rows.rows(lambda tensor: f'"{PARTIAL}:' not in tensor.key.placement)
        if not len(comparable):
            continue
        norm, others = rows["norm"][comparable], (rows["nans"] + rows["infs"])[comparable]
        at = {number: n for n, number in enumerate(own.numbers.tolist())}
        total = np.sqrt(np.nansum(norm.astype(np.float64) ** 2, axis=0))
        total = np.where(np.nansum(others, axis=0) > 0, np.inf, np.where(np.isnan(norm).all(axis=0), np.nan, total))
        found = [at.get(number, -1) for number in facts.numbers.tolist()]
        values[place] = [total[n] if n >= 0 else np.nan for n in found]
    if (~np.isnan(values)).sum(axis=0).max(initial=0) > 1:
        yield _Curves("the local gradient", ranks, values)


def _micro_batch(facts: Facts, rank: int, place: int, name: str) -> str:
    """Which of several forward passes of the step has the largest loss, if there are several."""
    own = facts.of_ranks[rank]
    at = np.flatnonzero(own.numbers == facts.numbers[place])
    losses = [tensor for tensor in own.values.tensors if tensor.key.kind == "loss" and not tensor.key.shape]
    passes = [tensor for tensor in losses if tensor.node == losses[0].node] if losses else []
    if len(passes) < 2 or not len(at):
        return ""
    values = np.array([own.values["mean"][tensor.row, at[0]] for tensor in passes], np.float64)
    values = np.where(np.isfinite(values), np.abs(values), np.inf)
    worst = passes[int(np.argmax(values))]
    return f", in micro-batch {worst.key.pass_} of {len(passes)}"


CHECK = Check(
    name="outlying_rank",
    description="The loss or the local gradient of one rank is far larger than that of the others, or not finite.",
    stage=Stage.LOSS,
    run=run,
    thresholds={"factor": 4.0, "sigmas": 8.0},
    causes=(
        "A broken shard of the data: outliers, wrong labels, padding without a mask.",
        "A faulty device, or another version of a library on that machine.",
    ),
    remedies=(
        "Look at the samples of that rank: `endoscope.open(path).rank(1).samples(node, step)`.",
        "Exchange the data of two ranks: does the outlier go with the data or stay with the machine?",
    ),
)
