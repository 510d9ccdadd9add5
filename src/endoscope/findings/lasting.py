"""From "is it so at this step?" to "has it been so for long enough to be worth a word?", for all tensors at once."""

from __future__ import annotations

import numpy as np


def lasts(bad: np.ndarray, there: np.ndarray, part: float = 0.5, least: int = 3) -> np.ndarray:
    """Rows that are bad at this part of their steps, and at so many at least."""
    many = np.count_nonzero(there, axis=1)
    return np.asarray(np.count_nonzero(bad & there, axis=1) >= np.maximum(least, part * many))


def late(there: np.ndarray, part: float = 0.5) -> np.ndarray:
    """The last part of the steps of each row."""
    so_far = np.cumsum(there, axis=1)
    return there & (so_far > so_far[:, -1:] * (1 - part)) if there.shape[1] else there


def early(there: np.ndarray, part: float = 0.25) -> np.ndarray:
    """The first part of the steps of each row, one at least."""
    so_far = np.cumsum(there, axis=1)
    return there & (so_far <= np.maximum(1, so_far[:, -1:] * part)) if there.shape[1] else there


def median_where(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Median of each row over some of its steps; NaN if there are none."""
    result = np.full(len(values), np.nan)
    mask = mask & ~np.isnan(values)
    rows = np.flatnonzero(mask.any(axis=1))
    if len(rows):
        result[rows] = np.nanmedian(np.where(mask[rows], values[rows], np.nan), axis=1)
    return result


def above(values: np.ndarray, limit: float) -> np.ndarray:
    """Like >, and NaN is never above."""
    return np.asarray((values > limit) & ~np.isnan(values))


def below(values: np.ndarray, limit: float) -> np.ndarray:
    """Like <, and NaN is never below."""
    return np.asarray((values < limit) & ~np.isnan(values))
