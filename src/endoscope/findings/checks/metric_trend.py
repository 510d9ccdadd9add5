"""Metrics that go the wrong way, or that stay bad while the loss becomes good."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.curves import Curve, fall, first_level, last_level
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING

_HELD_OUT_WORD = re.compile(r"valid(ation)?|val|test|eval|held.?out", re.IGNORECASE)


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """What should rise is told by its name; what belongs together, too."""
    curves = [curve.finite for curve in facts.metrics if len(curve.finite) >= limits["steps"]]
    for curve in curves:
        if curve.is_score and not curve.is_held_out:
            yield from _falls(curve, limits)
            yield from _never_moves(curve, limits)
    for curve in curves:
        if curve.is_held_out:
            own = [other for other in facts.metrics if not other.is_held_out and _same(other.name, curve.name)]
            yield from _apart(curve, own, limits)
    yield from _parts_of_the_loss(facts, limits)


def _falls(curve: Curve, limits: Limits) -> Iterator[Seen]:
    """Beyond its own noise, and to less than a part of where it began."""
    values = curve.values
    part = max(len(values) // 5, 5)
    first, last = values[:part], values[-part:]
    spread = np.sqrt(first.var() / len(first) + last.var() / len(last))
    drop = first.mean() - last.mean()
    if drop > limits["sigmas"] * spread and drop > limits["drop"] * max(abs(first.mean()), 1e-12):
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"the metric `{curve.name}` falls, although its name says that it should rise",
            detail=f"{curve.name} began at {first.mean():.3g} and is {last.mean():.3g} now (means of {part} steps).",
            value=float(drop), threshold=limits["drop"] * abs(float(first.mean())), cause=f"falls {curve.name}",
            causes=(
                "The wrong sign: what should be maximised is minimised, such as a reward without the minus.",
                "Training that forgets, or that has become unstable.",
            ),
            remedies=("Check the sign of the loss.", "Lower the learning rate."),
            **curve.at(np.arange(len(values) - part, len(values))),
        )  # fmt: skip


def _never_moves(curve: Curve, limits: Limits) -> Iterator[Seen]:
    """The same number for most of the training, and no better than at first: what is learned has no effect on it."""
    values = curve.values
    stuck = values[len(values) // 3 :]
    if len(values) >= limits["stuck_steps"] and np.ptp(stuck) == 0 and stuck[0] <= min(first_level(values), 0.9):
        yield Seen(
            of_the_run=True, severity=WARNING, title=f"the metric `{curve.name}` never rises",
            detail=f"{curve.name} is {stuck[0]:g} at each of the last {len(stuck)} steps, although its name says that "
            "it should rise.",
            value=float(stuck[0]), threshold=0.0, cause=f"stuck {curve.name}",
            causes=(
                "The policy has collapsed: it takes the same action each time before it has found a reward, as without "
                "a bonus for entropy, or with one of the wrong sign.",
                "The metric does not measure what is trained.",
            ),
            remedies=("Plot the entropy of what the model chooses.", "Compute the metric by hand for one batch."),
            **curve.at(np.arange(len(values))),
        )  # fmt: skip


def _apart(curve: Curve, own: list[Curve], limits: Limits) -> Iterator[Seen]:
    """Good on training data, at the level of the start on others: not overfitting, it never got better."""
    for other in (one.finite for one in own):
        if len(other) < limits["steps"]:
            continue
        first, last, training = curve.values[:2].mean(), last_level(curve.values), last_level(other.values)
        began = float(other.values[:2].mean())
        gained, missed = training - began, last - first
        is_score = curve.is_score
        is_better = gained > limits["gain"] if is_score else gained < -0.7 * abs(began) and began > 0
        behind = missed < 0.15 * gained if is_score else missed > 0.15 * gained
        if is_better and behind:
            yield Seen(
                of_the_run=True, severity=WARNING,
                title=f"`{curve.name}` stays bad while `{other.name}` becomes good",
                detail=f"{other.name} went from {began:.3g} to {training:.3g}, {curve.name} only from {first:.3g} to "
                f"{last:.3g}: what is learned does not hold on held-out data at all.",
                value=float(abs(missed)), threshold=float(abs(gained)), cause=f"apart {curve.name}",
                causes=(
                    "Held-out data that are prepared differently: other scaling, other order of classes, wrong labels.",
                    "Evaluation in training mode, or without the weights that were trained.",
                    "A leak of the target into the training inputs.",
                ),
                remedies=(
                    "Evaluate on the training data by the same code: is it as good as in training?",
                    "Call model.eval() before evaluation; prepare both kinds of data by the same code.",
                    "`endoscope check DIR --deep script.py:build` tries whether samples of a batch mix.",
                ),
                **curve.at(np.arange(len(curve))),
            )  # fmt: skip


def _parts_of_the_loss(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """If the loss is a weighted sum of metrics, one with nearly all the weight may leave another unlearned."""
    for loss in facts.losses:
        metrics = [
            m.finite for m in facts.metrics if m not in facts.rates and m.name != loss.name and len(m.finite) > 9
        ]
        metrics = [m for m in metrics if m.values.std() > 0 and not m.is_held_out]
        if not 2 <= len(metrics) <= 6:
            continue
        numbers = loss.finite.numbers
        for metric in metrics:
            numbers = np.intersect1d(numbers, metric.numbers)
        if len(numbers) < 4 * len(metrics):
            continue
        table = np.stack([_at(metric, numbers) for metric in metrics], axis=1)
        total = _at(loss.finite, numbers)
        weights, *_ = np.linalg.lstsq(table, total, rcond=None)
        rest = total - table @ weights
        if np.abs(rest).max() > 1e-2 * max(float(total.std()), 1e-12):
            continue
        shares = np.abs(weights) * table.std(axis=0)
        for place, metric in enumerate(metrics):
            others = float(shares.sum() - shares[place])
            level = abs(weights[place]) * last_level(metric.values) / max(abs(last_level(total)), 1e-12)
            stays = abs(fall(metric.values)) < 0.1 and fall(loss.finite.values) > 0.3 and level > 0.05
            if stays and others > limits["outweighed"] * shares[place]:
                large = metrics[int(np.argmax(shares))]
                terms = " + ".join(f"{w:.3g} · {m.name}" for w, m in zip(weights, metrics, strict=True))
                yield Seen(
                    of_the_run=True, severity=WARNING,
                    title=f"`{large.name}` outweighs `{metric.name}` in the loss",
                    detail=f"The loss is {terms}. It falls by {fall(loss.finite.values):.0%}, and {metric.name} stays: "
                    f"{first_level(metric.values):.3g} at first, {last_level(metric.values):.3g} at the end.",
                    value=others / float(max(shares[place], 1e-30)), threshold=limits["outweighed"],
                    cause=f"part {metric.name}", also=(loss.name, large.name),
                    causes=("Weights of several losses that do not fit: one loss dominates the others.",),
                    remedies=("Weight the losses so that each falls.",), **metric.at(np.arange(len(metric))),
                )  # fmt: skip


def _at(curve: Curve, numbers: np.ndarray) -> np.ndarray:
    return curve.values[np.searchsorted(curve.numbers, numbers)]


def _same(name: str, held_out: str) -> bool:
    """`val_acc` and `acc`, `train/loss` and `test/loss`."""

    def bare(text: str) -> str:
        return re.sub(r"train(ing)?|[^a-z0-9]", "", _HELD_OUT_WORD.sub("", text).lower())

    return bare(name) == bare(held_out)


CHECK = Check(
    name="metric_trend",
    description="A score falls or never rises, a held-out metric stays bad, or a part of the loss does not fall.",
    stage=Stage.LOSS,
    run=run,
    thresholds={"steps": 5, "sigmas": 6.0, "drop": 0.4, "gain": 0.3, "outweighed": 20.0, "stuck_steps": 40},
    causes=("The loss does not say what is wanted.",),
    remedies=("Look at what is minimised, and at how the metric is computed.",),
)
