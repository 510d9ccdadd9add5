"""Do two things happen together more often than by chance? Counts in, evidence out; numpy only, many pairs at once.

    both, a, b, n, expected ─► surprise ─► times the share that is independent ─► Holm ─► reported pairs with intervals

*Surprise* is minus the logarithm of a bound on the probability of so many coincidences by chance. If a given number of
cells is drawn in every step without looking, their number is a sum of hypergeometric ones, and Hoeffding's bound holds
for it exactly: P(both ≥ x) ≤ exp(-a·KL(x/a ‖ expected/a)), and the same with b.

Neighbouring steps, and samples that come again, repeat what was seen before. The *independent share* says how much of
the surprise remains: the variance that coincidences would have if cells were independent, divided by the one that they
have if only the two series are independent of each other.
"""

from __future__ import annotations

from math import lgamma
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

_WINDOW = 13  # neighbouring frequencies that are averaged
_SLOW_PARTS = 20  # what is slower than a twentieth of the run is a trend, and is left as it is
_MOST_SLOTS = 128


class Intervals(NamedTuple):
    """Of every pair: the lower and the upper end."""

    lift: np.ndarray  # [pairs, 2]
    phi: np.ndarray  # [pairs, 2]


def surprise(both: np.ndarray, expected: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """-log of a bound on the probability to find `both` or more by chance; 0 where there is no more than expected."""
    with np.errstate(all="ignore"):
        found = np.maximum(_divergence(both, expected, a), _divergence(both, expected, b))
    return np.where((both > expected) & (expected > 0), found, 0.0)


def _divergence(both: np.ndarray, expected: np.ndarray, draws: np.ndarray) -> np.ndarray:
    rest = draws - both
    tail = np.where(rest > 0, rest * np.log(rest / (draws - expected)), 0.0)
    return np.asarray(np.nan_to_num(both * np.log(both / expected) + tail))


def phi_of(both: np.ndarray, a: np.ndarray, b: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The correlation of two things that happen or not."""
    with np.errstate(all="ignore"):
        return np.asarray(np.nan_to_num((n * both - a * b) / np.sqrt(a * b * (n - a) * (n - b))))


def lift_of(both: np.ndarray, a: np.ndarray, b: np.ndarray, n: np.ndarray) -> np.ndarray:
    """How many times more often they happen together than if one did not care for the other."""
    with np.errstate(all="ignore"):
        return np.asarray(np.nan_to_num(both * n / (a * b)))


def intervals(both: np.ndarray, a: np.ndarray, b: np.ndarray, n: np.ndarray, share: np.ndarray, z: float) -> Intervals:
    """Confidence intervals of lift and phi: the delta method, on the logarithm of the one and Fisher's z of the other.

    Half a case is added to each of the four cells, so that cells without cases have an error, too.
    """
    cells = np.stack([both, a - both, b - both, n - a - b + both]).astype(np.float64).clip(0) + 0.5
    ends = []
    for scale, back in ((_log_lift, np.exp), (_fisher, np.tanh)):
        middle, error = scale(cells), np.sqrt(_variance(scale, cells) / share)
        ends.append(np.stack([back(middle - z * error), back(middle + z * error)], axis=-1))
    return Intervals(*ends)


def _log_lift(cells: np.ndarray) -> np.ndarray:
    both, only_a, only_b, _ = cells
    return np.asarray(np.log(both * cells.sum(axis=0) / ((both + only_a) * (both + only_b))))


def _fisher(cells: np.ndarray) -> np.ndarray:
    both, only_a, only_b, none = cells
    product = (both + only_a) * (both + only_b) * (only_b + none) * (only_a + none)
    return np.asarray(np.arctanh(np.clip((both * none - only_a * only_b) / np.sqrt(product), -1 + 1e-12, 1 - 1e-12)))


def _variance(scale, cells: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Of a function of multinomial counts that does not change if all counts are doubled."""
    total = np.zeros(cells.shape[1])
    for place in range(4):
        step = np.zeros_like(cells)
        step[place] = 1e-4 * cells[place]
        slope = (scale(cells + step) - scale(cells - step)) / (2 * step[place])
        total += cells[place] * slope**2
    return total


def z_for(confidence: float, pairs: int) -> float:
    """How many standard errors an interval reaches, if all of so many intervals are to hold at once."""
    return NormalDist().inv_cdf(1 - (1 - confidence) / (2 * max(pairs, 1)))


def holm(evidence: np.ndarray, pairs: int, confidence: float) -> np.ndarray:
    """Which of the tested pairs are reported, so that with this confidence not one is by chance (Holm, 1979).

    `evidence` is -log p of some of the pairs; all others count as tested, and not found.
    """
    order = np.argsort(-evidence, kind="stable")
    needed = np.log(np.maximum(pairs - np.arange(len(order)), 1) / (1 - confidence))
    enough = evidence[order] >= needed
    kept = np.zeros(len(order), dtype=bool)
    kept[order[: len(order) if enough.all() else int(np.argmin(enough))]] = True
    return kept


# ---- how much is independent --------------------------------------------------------------------------------------


def powers(series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each series over steps [events, steps]: its power at every frequency, and the same smoothed.

    The median over neighbouring frequencies leaves out a single line: a type of step that comes in turns says nothing
    about how much of another series is noise. Slow changes stay as they are.
    """
    centred = series - series.mean(axis=1, keepdims=True)
    found = np.abs(np.fft.rfft(centred, axis=1)) ** 2
    smooth = found.copy()
    slow = min(_SLOW_PARTS, found.shape[1])
    if found.shape[1] > slow + _WINDOW:
        half = _WINDOW // 2
        padded = np.pad(found[:, slow:], ((0, 0), (half, half)), mode="reflect")
        smooth[:, slow:] = np.median(sliding_window_view(padded, _WINDOW, axis=1), axis=2) / np.log(2)
    return found, smooth


def shift_variance(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], steps: int) -> np.ndarray:
    """Variance of Σ x·y over all ways to shift one series of a pair against the other, around the end; row by row.

    Frequencies but the first and the last stand for two.
    """
    twice = np.full(one[0].shape[1], 2.0)
    twice[0] = 1.0
    if steps % 2 == 0:
        twice[-1] = 1.0
    products = ((one[0] * other[1] * twice).sum(axis=1), (one[1] * other[0] * twice).sum(axis=1))
    return np.asarray(np.maximum(*products) / steps**2)


def slots(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """If the places in the batch keep their samples: how much larger the variance of coincidences is, and a limit.

    Both are deviations from the mean of their step, [steps, samples]. What place j of the one and place k of the other
    have in common tells, for j ≠ k, how much there is by chance. Where that is more than it should be, no surprise can
    be larger than the number of ways to put the places with the event.
    """
    if one.shape[1] > _MOST_SLOTS:
        places = np.linspace(0, one.shape[1] - 1, _MOST_SLOTS).astype(np.int64)
        one, other = one[:, places], other[:, places]
    width = one.shape[1]
    apart = ~np.eye(width, dtype=bool)
    common, alone = (one.T @ other)[apart], ((one**2).T @ (other**2))[apart].mean() if width > 1 else 0.0
    if width < 4 or alone <= 0:
        return 1.0, np.inf
    ratio = float(common.var() / alone)
    if ratio < 1 + 4 * np.sqrt(2 / (width * (width - 1))):
        return max(ratio, 1.0), np.inf
    return ratio, min(_ways(one.sum(axis=0)), _ways(other.sum(axis=0)))


def _ways(sums: np.ndarray) -> float:
    """Logarithm of the number of ways to choose as many places as share in an event."""
    above = np.maximum(sums, 0)
    chosen = max(float(above.sum() ** 2 / max((above**2).sum(), 1e-12)), 1.0)
    return lgamma(len(sums) + 1) - lgamma(chosen + 1) - lgamma(max(len(sums) - chosen, 0) + 1)


def cluster_ratio(one: np.ndarray, other: np.ndarray, samples: np.ndarray) -> float:
    """The same if a sample that comes again brings what it had before; `samples` says which one is in each cell."""
    products = (one * other).ravel()
    ids = samples.ravel()
    there = ids >= 0
    if not there.any():
        return 1.0
    visits = np.bincount(ids[there])
    sums = np.bincount(ids[there], weights=products[there]) - visits * products[there].mean()
    alone = products[there].var() * there.sum()
    return float((sums**2).sum() / alone) if alone > 0 else 1.0
