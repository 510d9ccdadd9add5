"""A loss that does not go down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.architecture import has_attention
from endoscope.findings.check import LEARNING_RATE, STANDSTILL, START, Check, Limits, Seen, Stage
from endoscope.findings.curves import fall, first_level, last_level
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.health import guessing

_END = 0.3  # of a curve, that tells where it ends


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Never, since the beginning: a loss that has gone down and stays there is how training ends."""
    if len({curve.name for curve in facts.losses}) != 1:
        return  # losses that work against each other need not go down
    curves = [curve for curve in facts.losses if len(curve.finite) >= limits["steps"]]
    chance, words = guessing(facts)
    if chance and all(_is_at(curve.finite.values, chance, limits) for curve in curves):
        for curve in curves:
            last = last_level(curve.finite.values, _END)
            yield Seen(
                of_the_run=True, severity=WARNING,
                title=f"`{curve.name}` stays at the level of guessing, {chance:.3g}",
                detail=f"{curve.name} is {last:.4g} after {len(curve.finite)} steps, and {words} costs "
                f"{chance:.4g}: nothing is learned about the targets.",
                value=last / chance, threshold=1 - limits["chance"], remedies=CHECK.remedies[:1] + _AT_CHANCE,
                causes=_why(facts, chance < limits["rare"]),
                **curve.at(np.arange(len(curve))),
            )  # fmt: skip
        return
    if not all(_stands(curve.finite.values, limits) for curve in curves):
        return  # types of steps may work against each other, too: a maker and its judge
    for curve in curves:
        values = curve.finite.values
        first, last, gain = first_level(values), last_level(values, _END), fall(values, _END)
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"`{curve.name}` has not gone down in {len(values)} steps",
            detail=f"{curve.name} is {last:.4g} after {len(values)} steps and began at {first:.4g}: "
            f"{_change(gain)}; a fall of less than {limits['gain']:.0%} is reported.",
            value=gain, threshold=limits["gain"], **curve.at(np.arange(len(curve))),
        )  # fmt: skip


def _why(facts: Facts, is_rare: bool) -> tuple[str, ...]:
    return (_RARE if is_rare else ()) + _NO_INFORMATION + (_MASK if has_attention(facts) else ()) + CHECK.causes


def _change(gain: float) -> str:
    """In words, for a loss may also have risen a little."""
    told = f"{abs(gain):.1%}"
    if told == "0.0%":
        return "it has not changed"
    return f"{told} {'less' if gain > 0 else 'more'}"


def _is_at(values: np.ndarray, chance: float, limits: Limits) -> bool:
    """In the end, and never clearly better."""
    if len(values) < limits["chance_steps"]:
        return False
    parts = [float(part.mean()) for part in np.array_split(values, 5)]  # what guessing costs is a mean, too
    falls = parts[-1] > 1.15 * chance and parts[-1] < 0.95 * parts[-3]  # it may come there yet
    level = float(values[len(values) // 3 :].mean())  # one part is noisy
    never = level > (1 - limits["chance"]) * chance and min(parts) > (1 - 2 * limits["chance"]) * chance
    return never and parts[-1] < 2 * chance and not falls


_RARE = (
    "One answer is so rare that always giving the other costs next to nothing: a class imbalance, which pos_weight or "
    "other weights of the classes make up for.",
)
_NO_INFORMATION = (
    "Labels carry no information about the inputs: they were shuffled separately, or belong to other samples.",
    "Samples are mixed up on the way through the model, so that it answers for another sample.",
)
_MASK = ("A mask of the attention that is inverted: it hides the words, and the model attends to the padding alone.",)
_AT_CHANCE = (
    "Look at a few inputs with their labels just before they are handed to the model.",
    "`endoscope check DIR --deep script.py:build` tries whether samples of a batch influence each other.",
)


def _stands(values: np.ndarray, limits: Limits) -> bool:
    first, gain = first_level(values), fall(values, _END)
    if abs(first) < 1e-6:
        return False
    best = (first - min(float(np.median(part)) for part in np.array_split(values, 5))) / abs(first)
    falls = _trend(values) < -limits["sigmas"]
    return gain < limits["gain"] and best < limits["gain"] and gain > -0.3 and not falls


def _trend(values: np.ndarray) -> float:
    """Slope of a straight line through the curve, in standard errors."""
    steps = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float(steps @ values / (steps @ steps))
    rest = values - values.mean() - slope * steps
    error = float(np.sqrt(rest @ rest / max(len(values) - 2, 1) / (steps @ steps)))
    return slope / error if error > 0 else float(np.sign(slope)) * np.inf if slope else 0.0


CHECK = Check(
    name="plateau",
    description="The loss has not gone down since the beginning.",
    stage=Stage.LOSS,
    run=run,
    thresholds={"gain": 0.02, "steps": 20, "sigmas": 4.0, "chance": 0.03, "chance_steps": 40, "rare": 0.2},
    explained_by=(*STANDSTILL, *LEARNING_RATE, *START),
    causes=(
        "A learning rate that is far too small, or too large.",
        "No gradient reaches the parameters, or the optimizer does not hold them.",
        "Inputs and targets do not belong together, or the network cannot express the answer.",
    ),
    remedies=(
        "Try to learn a single batch by heart; if that fails, something is broken.",
        "Look at the other findings: this is mostly a symptom.",
    ),
)
