"""Histograms of wholes, and the quantiles that are read off them.

All tensors have the same bins, so counts add up. A quantile of the whole is known to one bin by that: inside of a bin
the elements are taken to lie evenly.
"""

from __future__ import annotations

import numpy as np

from endoscope.schema.stats import HISTOGRAM_BINS, histogram_edges

_EDGES = np.array(histogram_edges())


def dense(first: np.ndarray, offsets: np.ndarray, counts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """int64[rows, bins]: some of the histograms of a record batch, each with all of its bins."""
    found = np.zeros((len(rows), HISTOGRAM_BINS), np.int64)
    starts, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    place = np.repeat(np.arange(len(rows)), lengths)
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    found[place, np.repeat(first[rows].astype(np.int64), lengths) + within] = counts[
        np.repeat(starts, lengths) + within
    ]
    return found


def trimmed(histogram: np.ndarray) -> tuple[int, np.ndarray]:
    """From the first to the last bin that is not empty, as they are stored: (first, counts)."""
    full = np.flatnonzero(histogram)
    if not len(full):
        return 0, np.empty(0, np.uint32)
    counts = histogram[full[0] : full[-1] + 1]
    return int(full[0]), counts.astype(np.uint32) if counts.max() <= np.iinfo(np.uint32).max else counts


def quantile(histograms: np.ndarray, level: float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """numpy's linear definition, of elements that lie evenly in their bins; NaN where there is none.

    `histograms` has the bins last; `low` and `high` are the smallest and the largest element.
    """
    ends = histograms.cumsum(axis=-1)
    total = ends[..., -1]
    position = level * np.maximum(total - 1, 0)
    below = np.floor(position)
    part = position - below
    found = _element(histograms, ends, below, low, high) * (1 - part)
    found += _element(histograms, ends, np.minimum(below + 1, np.maximum(total - 1, 0)), low, high) * part
    return np.where(total > 0, np.clip(found, low, high), np.nan)


def _element(
    histograms: np.ndarray, ends: np.ndarray, number: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """About the n-th element in ascending order, from 0 on."""
    place = np.minimum((ends <= number[..., None]).sum(axis=-1), HISTOGRAM_BINS - 1)
    count = np.take_along_axis(histograms, place[..., None], -1)[..., 0]
    before = np.take_along_axis(ends, place[..., None], -1)[..., 0] - count
    share = (number - before + 0.5) / np.maximum(count, 1)
    # The outermost bins hold whatever is larger, too.
    start = np.where(place == 0, np.minimum(low, _EDGES[0]), _EDGES[place])
    end = np.where(place == HISTOGRAM_BINS - 1, np.maximum(high, _EDGES[-1]), _EDGES[place + 1])
    return np.asarray(start * (1 - share) + end * share)
