"""Learning rates that are zero, that fall away while there is much to learn, or that fit no optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.curves import Curve, fall
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING

_ADAPTIVE = frozenset("Adam AdamW NAdam RAdam Adamax RMSprop Lion Adafactor".split())


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The recorder reads the rate of every group at every update, recorded or not."""
    largest = max((float(curve.values.max()) for curve in facts.rates if len(curve)), default=0.0)
    for curve in facts.rates:
        values = curve.finite.values
        if len(values) < limits["steps"]:
            continue
        yield from _zero(curve, values, limits)
        yield from _gone(facts, curve, values, limits)
        yield from _of_one_group(facts, curve, values, largest, limits)
    yield from _for_this_optimizer(facts, limits)


def _zero(curve: Curve, values: np.ndarray, limits: Limits) -> Iterator[Seen]:
    """A warm-up may begin with zero, a schedule may end there."""
    zero = values == 0
    begins = int(np.argmin(zero)) if not zero.all() else len(zero)
    share = begins / len(values)
    if share > limits["zero_share"] and begins >= 5:
        yield Seen(
            of_the_run=True, severity=WARNING, title=f"the learning rate `{curve.name}` is zero",
            detail=f"At the first {begins} of {len(values)} steps {curve.name} is 0: nothing is learned there.",
            value=share, threshold=limits["zero_share"], cause=f"zero {curve.name}",
            causes=(
                "A schedule that divides whole numbers (step // warmup), or whose steps are counted in epochs.",
                "The scheduler has already come to its end: its number of steps is too small.",
            ),
            **curve.finite.at(np.arange(begins)),
        )  # fmt: skip
    last = len(values) - 1 - int(np.argmin(zero[::-1])) if not zero.all() else -1
    after = len(values) - 1 - last
    if last >= 0 and after / len(values) > limits["zero_share"] and after >= 5:
        yield Seen(
            severity=WARNING, title=f"the learning rate `{curve.name}` has become zero",
            detail=f"Since step {curve.finite.numbers[last + 1]} {curve.name} is 0: nothing is learned any more, at "
            f"{after} of {len(values)} steps.",
            value=after / len(values), threshold=limits["zero_share"], cause=f"zero {curve.name}",
            causes=("A schedule that ends too early: its number of steps is too small.",),
            **curve.finite.at(np.arange(last + 1, len(values))),
        )  # fmt: skip


def _gone(facts: Facts, curve: Curve, values: np.ndarray, limits: Limits) -> Iterator[Seen]:
    """Down to next to nothing before the last part of training; a schedule that ends low gets there at its end."""
    tiny = (values > 0) & (values < limits["gone"] * values.max())
    at = int(np.argmax(tiny)) if tiny.any() else len(values)
    left = 1 - at / len(values)
    jumps = values[1:] / np.maximum(values[:-1], 1e-300)
    stepwise = np.median(jumps[np.abs(jumps - 1) > 1e-9]) if (np.abs(jumps - 1) > 1e-9).any() else 1.0
    if left < limits["left"] or not tiny[at:].all() or not _could_learn_more(facts, at / len(values)):
        return
    yield Seen(
        severity=WARNING, title=f"the learning rate `{curve.name}` has fallen away",
        detail=f"{curve.name} fell from {values.max():.2g} to {values[-1]:.2g}, below {limits['gone']:g} of its "
        f"largest value from step {curve.finite.numbers[at]} on: for the last {left:.0%} of the training the steps "
        f"are too small to learn anything (each change by a factor of {stepwise:.2g}).",
        value=float(values[-1] / values.max()), threshold=limits["gone"], cause=f"gone {curve.name}",
        causes=(
            "A schedule that falls too early or too often: ReduceLROnPlateau with the wrong mode (max for a loss), "
            "or scheduler.step() called for each batch where it counts epochs.",
        ),
        remedies=(
            "Plot the learning rate. A loss is to be watched with mode='min'.",
            "Call the scheduler as often as its numbers mean: once an epoch, or once a batch.",
        ),
        **curve.finite.at(np.arange(at, len(values))),
    )  # fmt: skip


def _could_learn_more(facts: Facts, share: float) -> bool:
    """Whether the loss was still falling when the rate fell away, or has not come far."""
    for curve in facts.losses:
        values = curve.finite.values
        before = values[: max(int(share * len(values)), 6)]
        if len(values) >= 10 and values[0] > 0 and np.median(values[-5:]) < 0.02 * values[0]:
            return False
        if len(before) >= 6 and fall(before) > 0 and np.median(values[-5:]) > 0:
            return True
    return not facts.losses


def _of_one_group(facts: Facts, curve: Curve, values: np.ndarray, largest: float, limits: Limits) -> Iterator[Seen]:
    """One group thousands of times below the largest, all the time: seldom meant."""
    if len(facts.rates) > 1 and 0 < values.max() < limits["group"] * largest:
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"the learning rate of the group `{curve.name}` is far below the others",
            detail=f"{curve.name} is {values.max():.2g} and that of another group {largest:.2g}, "
            f"{largest / values.max():.2g} times as much; reported from {1 / limits['group']:g} times on.",
            value=float(values.max() / largest), threshold=limits["group"], cause=f"group {curve.name}",
            causes=("A typing error in the groups of the optimizer, such as 1e-9 for 1e-3.",),
            remedies=("Give the group a learning rate like that of the others, or freeze it if it should not learn.",),
            **curve.finite.at(np.arange(len(values))),
        )  # fmt: skip


def _for_this_optimizer(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """By what is usual for its class; seen in its own settings."""
    for _, entries in facts.extra("optimizers"):
        for entry in entries:
            for group in entry.get("groups", ()):
                yield from _unusual(facts, entry.get("class", ""), group, limits)


def _unusual(facts: Facts, name: str, group: dict[str, Any], limits: Limits) -> Iterator[Seen]:
    rate, momentum, decay = (float(group.get(key, 0) or 0) for key in ("lr", "momentum", "weight_decay"))
    common: dict[str, Any] = {"node": "lr", **facts.steps_where(np.ones(len(facts.steps), dtype=bool))}
    if name in _ADAPTIVE and rate > limits["adaptive"]:
        yield Seen(
            of_the_run=True, severity=WARNING, title=f"the learning rate {rate:g} is large for {name}",
            detail=f"{name} moves every weight by about its learning rate, {rate:g}, at each step, whatever the size "
            f"of the gradient; 0.001 is usual, and above {limits['adaptive']:g} is reported.",
            value=rate, threshold=limits["adaptive"], cause="large", **common,
        )  # fmt: skip
    if name == "SGD" and 0 < momentum < limits["swapped"] and rate > 0.5:
        yield Seen(
            of_the_run=True, severity=WARNING, title="learning rate and momentum of SGD seem to be swapped",
            detail=f"The learning rate is {rate:g} and the momentum {momentum:g}; the other way round is usual.",
            value=rate, threshold=0.5, cause="swapped",
            causes=("Positional arguments: SGD(parameters, lr, momentum).",),
            remedies=("Name them: SGD(parameters, lr=…, momentum=…).",), **common,
        )  # fmt: skip
    yield from _of_averages(name, group, momentum, common)
    if decay < 0 or decay >= limits["decay"]:
        strong = decay > 0
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"the weight decay {decay:g} of {name} is {'strong' if strong else 'negative'}",
            detail=f"weight_decay is {decay:g}; 0 to 0.1 is usual, and from {limits['decay']:g} on is reported. "
            + ("It pulls all weights towards zero." if strong else "Weights grow without end."),
            value=decay, threshold=limits["decay"], cause="decay",
            causes=("A typing error, or a value that was meant for something else.",),
            remedies=("Use a weight decay of 0.01 (AdamW) or 1e-4 (SGD, Adam), or none.",), **common,
        )  # fmt: skip


def _of_averages(name: str, group: dict[str, Any], momentum: float, common: dict[str, Any]) -> Iterator[Seen]:
    """How much of the past an optimizer remembers, and what it divides by."""
    betas = group.get("betas", ())
    told = ""
    if momentum >= 0.999:
        told = f"a momentum of {momentum:g} never forgets; 0.9 is usual"
    elif len(betas) == 2 and (betas[0] > betas[1] or betas[0] >= 0.999 or betas[1] < 0.5):
        told = f"its betas are {tuple(betas)}; (0.9, 0.999) are usual"
    elif name in _ADAPTIVE and float(group.get("eps", 0) or 0) > 0.05:
        told = f"its eps is {group['eps']:g}, so it hardly divides by the size of gradients any more; 1e-8 is usual"
    if told:
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"unusual settings of {name}", detail=f"{told[:1].upper()}{told[1:]}.",
            value=1.0, threshold=0.0, cause="settings", causes=("A typing error, or arguments in the wrong order.",),
            remedies=("Name the arguments, and begin with the defaults of the optimizer.",), **common,
        )  # fmt: skip


CHECK = Check(
    name="learning_rate",
    description="A learning rate that is zero, falls away too early, or does not fit its optimizer or other groups.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={
        "steps": 10,
        "zero_share": 0.15,
        "gone": 1e-3,
        "left": 0.25,
        "group": 1e-4,
        "adaptive": 0.3,
        "swapped": 0.1,
        "decay": 0.5,
    },
    causes=("A learning rate that was mistyped, or a schedule that does not do what was meant.",),
    remedies=("Plot the learning rate: it is recorded at every step as a metric `lr`.", "Lower or raise it."),
)
