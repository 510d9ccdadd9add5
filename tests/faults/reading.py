"""Figures out of a recording: what shows that a planted fault is really there. Plain and slow on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np


def series(recording: Any, node: str, statistic: str, **which: Any) -> np.ndarray:
    return np.asarray(recording.series(node, statistic, **which).values, dtype=float)


def first(recording: Any, node: str, statistic: str, **which: Any) -> float:
    return float(series(recording, node, statistic, **which)[0])


def last(recording: Any, node: str, statistic: str, **which: Any) -> float:
    return float(series(recording, node, statistic, **which)[-1])


def largest(recording: Any, node: str, statistic: str, **which: Any) -> float:
    return float(np.nanmax(series(recording, node, statistic, **which)))


def growth(recording: Any, node: str, statistic: str, **which: Any) -> float:
    """Last ÷ first."""
    values = series(recording, node, statistic, **which)
    return float(values[-1] / values[0])


def peak(recording: Any, node: str, statistic: str, **which: Any) -> float:
    """Largest ÷ median over the steps."""
    values = series(recording, node, statistic, **which)
    return float(np.nanmax(values) / np.nanmedian(values))


def peak_before_clipping(recording: Any) -> float:
    """The same of the norm that was clipped."""
    norms = [step.extra["clipping"][0]["norm"] for step in recording.steps if "clipping" in step.extra]
    return float(np.nanmax(norms) / np.nanmedian(norms))


def ratio(recording: Any, above: str, below: str, statistic: str = "norm", **which: Any) -> float:
    """Of one node to another, median over the steps."""
    return float(np.median(series(recording, above, statistic, **which) / series(recording, below, statistic, **which)))


def share(recording: Any, node: str, statistic: str, limit: float) -> float:
    """Of the units, over all steps: whose largest `statistic` stays at or below the limit."""
    steps = [step for step in recording.steps if step.type == "train"]
    highest = np.max([recording.units(node, step.number, type="train")[statistic] for step in steps], axis=0)
    return float((highest <= limit).mean())


def quiet_share(recording: Any, node: str, tau: float) -> float:
    """Of the units at the last step: whose largest value is at most `tau` of the mean of all."""
    largest_of_unit = recording.units(node, recording.steps[-1].number)["abs_max"]
    return float((largest_of_unit <= tau * largest_of_unit.mean()).mean())


def beyond(recording: Any, node: str, limit: float, pass_: int | None = None) -> float:
    """Share of raw values that were kept whose size is at least the limit."""
    values = np.concatenate([recording.tensor(node, step.number, pass_=pass_).ravel() for step in recording.steps])
    return float((np.abs(values) >= limit).mean())


def nonfinite_steps(recording: Any, node: str) -> float:
    bad = sum(series(recording, node, statistic) for statistic in ("nans", "infs", "neg_infs"))
    return float((np.asarray(bad) > 0).sum())


def unit_std(recording: Any, node: str, **which: Any) -> float:
    """Standard deviation over the batch, mean over units, at the last step, as a share of that at the first."""
    steps = [step.number for step in recording.steps if which.get("type") in (None, step.type)]
    early, late = (recording.units(node, number, **which)["std"].mean() for number in (steps[0], steps[-1]))
    return float(late / early)


def rank_left(recording: Any, node: str) -> float:
    """Effective rank at the last step that has one ÷ at the first."""
    with_spectra = [step.number for step in recording.steps if "spectra" in step.extra]
    early, late = (recording.spectrum(node, number).effective_rank for number in (with_spectra[0], with_spectra[-1]))
    return float(late / early)


def entropy(recording: Any, node: str, at: int = -1) -> float:
    """Of the rows of an attention matrix, mean, as a share of that of a uniform row."""
    weights = recording.tensor(node, recording.steps[at].number)
    rows = -(weights * np.log(np.clip(weights, 1e-30, None))).sum(-1)
    return float(rows.mean() / np.log(weights.shape[-1]))


def between_types(recording: Any, node: str, statistic: str = "std") -> float:
    """How many times larger a statistic is in one type of step than in the other, over the later half."""
    ends = []
    for type_ in ("train", "validation"):
        values = series(recording, node, statistic, type=type_)
        ends.append(float(np.median(values[len(values) // 2 :])))
    return max(ends) / max(min(ends), 1e-12)


def metric(recording: Any, name: str) -> np.ndarray:
    return np.asarray(recording.metrics[name].values, dtype=float)


def improvement(recording: Any, name: str = "loss") -> float:
    """Mean of the last quarter ÷ mean of the first quarter."""
    values = metric(recording, name)
    quarter = max(len(values) // 4, 1)
    return float(values[-quarter:].mean() / values[:quarter].mean())


def turns(recording: Any, name: str = "loss") -> float:
    """Share of steps after which the loss changes direction."""
    way = np.sign(np.diff(metric(recording, name)))
    return float((way[1:] != way[:-1]).mean())


def no_gradient(recording: Any, parameter: str) -> float:
    """Share of the steps at which a parameter is listed as without a gradient."""
    return float(np.mean([parameter in _names(step.extra.get("no_gradient", ())) for step in recording.steps]))


def _names(listed: Any) -> list[str]:
    return [one if isinstance(one, str) else one[0] for one in listed]


def cosine(recording: Any, node: str) -> float:
    """Between the gradients of two losses at a node, mean over the steps, from the raw gradients."""
    found = []
    for step in recording.steps:
        one, two = (recording.tensor(node, step.number, of=f"gradient:{loss}").ravel() for loss in recording.losses)
        found.append(float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two) + 1e-30)))
    return float(np.mean(found))


def largest_sample_share(recording: Any, node: str) -> float:
    """Share of the squared gradient that comes from the one largest sample, median over steps."""
    shares = []
    for step in recording.steps:
        squares = recording.samples(node, step.number, of="gradient")["norm"].astype(float) ** 2
        shares.append(squares.max() / max(squares.sum(), 1e-300))
    return float(np.median(shares))


def steps_taken(recording: Any, node: str) -> float:
    """Norm of the update ÷ norm of the gradient, at the last step ÷ at the first."""
    sizes = series(recording, node, "norm", of="update") / series(recording, node, "norm", of="gradient")
    return float(sizes[-1] / sizes[0])


def update_size(recording: Any, node: str) -> float:
    """mean|update| ÷ mean|parameter|, median over the steps."""
    return float(np.median(series(recording, node, "abs_mean", of="update") / series(recording, node, "abs_mean")))


def commonest_label(recording: Any) -> float:
    """Share of the commonest label among those that were kept."""
    labels = np.concatenate([recording.tensor("target", step.number).ravel() for step in recording.steps])
    return float(np.bincount(labels.astype(int)).max() / len(labels))


def labels_per_batch(recording: Any) -> float:
    """Different labels among those kept of a step, mean over the steps."""
    return float(np.mean([len(np.unique(recording.tensor("target", step.number))) for step in recording.steps]))


def repeated(recording: Any) -> float:
    """Share of the steps whose input has the very numbers of an earlier one."""
    seen: set[tuple[float, ...]] = set()
    again = 0
    for step in recording.steps:
        numbers = recording.statistics("input", step.number)
        print_of_it = (numbers["mean"], numbers["std"], numbers["norm"])
        again += print_of_it in seen
        seen.add(print_of_it)
    return again / len(recording.steps)


def raw_negative_share(recording: Any, node: str) -> float:
    values = recording.tensor(node, recording.steps[-1].number)
    return float((values < 0).mean())


def raw_tiny_share(recording: Any, node: str, limit: float = 1e-5) -> float:
    values = recording.tensor(node, recording.steps[-1].number)
    return float((np.abs(values) < limit).mean())


def lopsided(recording: Any, node: str) -> float:
    """|5 % quantile| ÷ 95 % quantile, median over the later half of the steps."""
    low, high = (series(recording, node, name) for name in ("q05", "q95"))
    later = slice(len(low) // 2, None)
    return float(np.median(np.abs(low[later]) / np.abs(high[later])))


def moved(recording: Any, node: str) -> float:
    """Largest difference of a parameter between the first and the last step."""
    early, late = (recording.tensor(node, recording.steps[at].number) for at in (0, -1))
    return float(np.abs(late - early).max())


def over_passes(recording: Any, node: str, passes: int) -> float:
    """Size of the gradient on the first pass ÷ on the last, median over the steps."""
    first_pass, last_pass = (series(recording, node, "norm", of="gradient", pass_=n) for n in (1, passes))
    return float(np.median(first_pass / last_pass))
