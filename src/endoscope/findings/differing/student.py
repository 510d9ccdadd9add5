"""Student's t without scipy: tails down to the smallest numbers, critical values, correction for many tests."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

_ITERATIONS = 300
_TINY = 1e-300


def two_sided(t: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Probability of a value at least as far from zero as `t`; 1 where `t` is not a number."""
    t, freedom = np.broadcast_arrays(np.asarray(t, np.float64), np.asarray(freedom, np.float64))
    result = np.ones(t.shape)
    square = t * t
    usable = np.isfinite(square) & (freedom > 0) & (square > 0)
    result[np.isinf(square) & (freedom > 0)] = 0.0
    x = freedom[usable] / (freedom[usable] + square[usable])
    result[usable] = incomplete_beta(freedom[usable] / 2, 0.5, x)
    return result


def incomplete_beta(a: np.ndarray, b: float, x: np.ndarray) -> np.ndarray:
    """Regularised incomplete beta function I_x(a, b), by its continued fraction."""
    a, x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    turned = x > (a + 1) / (a + b + 2)  # there the fraction of the complement converges faster
    first, second = np.where(turned, b, a), np.where(turned, a, b)
    place = np.where(turned, 1 - x, x)
    with np.errstate(divide="ignore", under="ignore"):
        front = np.exp(_log_gamma_ratio(first, second) + first * np.log(place) + second * np.log1p(-place)) / first
        part = front * _fraction(first, second, place)
    return np.asarray(np.clip(np.where(turned, 1 - part, part), 0.0, 1.0))


@cache
def critical(confidence: float, freedom: float) -> float:
    """The t that is exceeded, to both sides together, with probability 1 - confidence."""
    low, high = 0.0, 1.0
    while float(two_sided(np.array(high), np.array(freedom))) > 1 - confidence and high < 1e12:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        if float(two_sided(np.array(middle), np.array(freedom))) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def holm(p: np.ndarray) -> np.ndarray:
    """Corrected for the number of tests: right whatever they have to do with each other."""
    order = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    corrected = np.minimum(1.0, np.maximum.accumulate(p[order] * factors)) if len(p) else p
    result = np.empty_like(p, dtype=np.float64)
    result[order] = corrected
    return result


def _log_gamma_ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(_log_gamma(a + b) - _log_gamma(a) - _log_gamma(b))


def _log_gamma(values: np.ndarray) -> np.ndarray:
    """Few different numbers occur (degrees of freedom), so each is computed once."""
    distinct, places = np.unique(values, return_inverse=True)
    return np.array([math.lgamma(value) for value in distinct])[places].reshape(values.shape)


def _fraction(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Lentz' method for the continued fraction of the incomplete beta function."""
    c = np.ones_like(x)
    d = 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d.copy()
    for m in range(1, _ITERATIONS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _away_from_zero(1 + even * d), _away_from_zero(1 + even / c)
        result *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _away_from_zero(1 + odd * d), _away_from_zero(1 + odd / c)
        change = d * c
        result *= change
        if np.all(np.abs(change - 1) < 1e-12):
            break
    return result


def _away_from_zero(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < _TINY, _TINY, values)
