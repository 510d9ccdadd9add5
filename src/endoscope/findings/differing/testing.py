"""Which of many differences are more than chance: effect with its interval, corrected probability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from endoscope.findings.differing import student
from endoscope.findings.differing.contrasts import SCALES, SHARES, Contrasts, Subject

_LEAST_FREEDOM = 3
_ROUNDING = 1e-7  # of numbers that were recorded; no difference is known better than that
_CLEARLY = 0.3  # of the usual difference
_LASTING = 0.9  # share of the windows from some step on that go the same way


@dataclass(frozen=True, slots=True)
class Tested:
    """One difference that is more than chance."""

    subject: Subject
    a: float
    b: float
    ratio: bool  # a and b are geometric means
    effect: float
    interval: tuple[float, float]
    p: float  # corrected
    size: float  # of the difference, as a share of the numbers themselves
    agreement: float  # share of windows that go the same way
    first_step: int
    counts: tuple[int, int]


def beyond_chance(family: Iterable[Contrasts], confidence: float, smallest: float, families: int) -> list[Tested]:
    """Those of one family of tests that hold at this confidence, together with all other families."""
    groups = list(family)
    results = [_test(group) for group in groups]
    if not results:
        return []
    p = np.minimum(1.0, student.holm(np.concatenate([result.p for result in results])) * families)
    found: list[Tested] = []
    start = 0
    for group, result in zip(groups, results, strict=True):
        corrected = p[start : start + len(result.p)]
        start += len(result.p)
        sizes = _sizes(group, result.mean)
        for row in np.flatnonzero((corrected <= 1 - confidence) & (sizes >= smallest)).tolist():
            found.append(_one(group, result, row, float(corrected[row]), float(sizes[row]), confidence))
    return found


@dataclass(frozen=True, slots=True)
class _Results:
    mean: np.ndarray  # of the differences
    effect: np.ndarray
    freedom: np.ndarray
    p: np.ndarray  # not corrected
    noise: np.ndarray  # variance of the mean difference, in variances of one value


def _test(group: Contrasts) -> _Results:
    """Student's t for all rows at once."""
    there = ~np.isnan(group.deltas)
    many = there.sum(axis=1)
    with np.errstate(all="ignore"):
        mean = np.where(there, group.deltas, 0.0).sum(axis=1) / many
        away = np.where(there, (group.deltas - mean[:, None]) ** 2 / group.noise, 0.0)
        noise = np.where(there, group.noise, 0.0).sum(axis=1) / many**2
        between, freedom = away.sum(axis=1) / (many - 1), (many - 1).astype(np.float64)
        variance = between
        if group.rest is not None and group.rest_freedom is not None:
            variance, freedom = _pooled(group, away, there)
        error = np.sqrt(variance * noise)
        if group.least_error is not None:
            error = np.maximum(error, group.least_error)
        rounding = _ROUNDING * np.where(group.ratio, 1.0, np.abs(group.middle) + np.abs(mean))
        error = np.maximum(error, rounding)
        t = np.where((many > _LEAST_FREEDOM) & (mean != 0), mean / error, np.nan)
        p = student.two_sided(t, freedom)
        if group.wanders:
            apart = np.maximum(np.sqrt(between * noise), rounding)
            p = np.maximum(p, student.two_sided(np.where(np.isnan(t), np.nan, mean / apart), many - 1.0))
            error, freedom = np.maximum(error, apart), many - 1.0
        correction = 1 - 3 / (4 * freedom - 1)  # Hedges: small samples overstate effects
        effect = correction * mean / error * np.sqrt(noise)
    return _Results(mean, effect, freedom, p, noise)


def _pooled(group: Contrasts, away: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variance of one value, from differences that are not alike and from what windows leave unexplained.

    It may change during training, which the variance of the mean difference does not mind; but the fewer windows have
    most of it, the fewer count. Degrees of freedom are Satterthwaite's, with fourth powers corrected for few numbers.
    """
    many = there.sum(axis=1)
    assert group.rest is not None
    assert group.rest_freedom is not None
    rest = np.where(there, group.rest, 0.0)
    own = np.where(there, 1.0 + group.rest_freedom, 0.0)
    every = own.sum(axis=1) - 1
    variance = (away.sum(axis=1) + rest.sum(axis=1)) / every
    squares = away * (many / np.maximum(many - 1, 1))[:, None] + rest
    freedom = squares.sum(axis=1) ** 2 / (squares**2 / (own + 2)).sum(axis=1)
    return variance, np.clip(np.nan_to_num(freedom), 1.0, np.maximum(every, 1.0))


def _sizes(group: Contrasts, mean: np.ndarray) -> np.ndarray:
    """The difference as a share: of the larger side for scales, of the size of the numbers else."""
    with np.errstate(all="ignore"):
        by_ratio = 1 - np.exp(-np.abs(mean))
        largest = np.abs(group.middle) + np.abs(mean) / 2
        is_scale = group.subjects and group.subjects[0].statistic in SCALES
        plain = np.abs(mean) / (largest if is_scale else group.size + np.abs(mean) / 2)
    return np.asarray(np.nan_to_num(np.where(group.ratio, by_ratio, plain), nan=0.0, posinf=1.0))


def _one(group: Contrasts, result: _Results, row: int, p: float, size: float, confidence: float) -> Tested:
    mean, middle, effect = float(result.mean[row]), float(group.middle[row]), float(result.effect[row])
    a, b = middle + mean / 2, middle - mean / 2
    ratio = bool(group.ratio[row])
    if ratio:
        a, b = float(np.exp(a)), float(np.exp(b))
    elif group.subjects[row].statistic in SCALES | SHARES:
        a, b = max(a, 0.0), max(b, 0.0)
    freedom = float(result.freedom[row])
    width = student.critical(confidence, max(1, int(freedom))) * float(
        np.sqrt(result.noise[row] + effect**2 / (2 * freedom))
    )
    there = ~np.isnan(group.deltas[row])
    along = group.deltas[row][there] * np.sign(mean)
    return Tested(
        subject=group.subjects[row],
        a=a,
        b=b,
        ratio=ratio,
        effect=effect,
        interval=(effect - width, effect + width),
        p=p,
        size=size,
        agreement=float((along > 0).mean()),
        first_step=_since(group.first[there], along),
        counts=group.counts,
    )


def _since(first: np.ndarray, along: np.ndarray) -> int:
    """The step from which on nearly all windows go the same way, beginning with one that does so clearly."""
    same = along > 0
    left = np.cumsum(same[::-1])[::-1] / np.arange(len(same), 0, -1)
    lasting = np.flatnonzero((along > _CLEARLY * float(np.median(along))) & same & (left >= _LASTING))
    return int(first[lasting[0] if len(lasting) else int(np.argmax(along))])
