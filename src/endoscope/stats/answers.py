"""Memory that statistics are written to, and how it becomes a `Measured`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from endoscope.schema.stats import COUNTS, HISTOGRAM_BINS, NUMBERS, QUANTILES, SAMPLE, UNIT, WHOLE
from endoscope.stats.request import Measured

if TYPE_CHECKING:
    from endoscope.stats.geometry import Arrangement


class Answers:
    """The statistics of n requests, some of them with samples and units.

    `arrangements` has one entry for each request, None for those that cannot be measured. `sample_counts` says how
    many samples of each are wanted.
    """

    def __init__(self, arrangements: Sequence[Arrangement | None], sample_counts: list[int]) -> None:
        requests = len(arrangements)
        self.arrangements = arrangements
        self.sample_starts = [0, *accumulate(sample_counts)]
        self.unit_starts = [0, *accumulate(how.units if how else 0 for how in arrangements)]
        self.numbers = np.full((len(NUMBERS) + len(QUANTILES), requests), np.nan)
        self.counts = np.zeros((len(COUNTS), requests), np.int64)
        self.histograms = np.zeros((requests, HISTOGRAM_BINS), np.uint32)
        self.samples = np.full((len(SAMPLE), self.sample_starts[-1]), np.nan, np.float32)
        self.units = np.full((len(UNIT), self.unit_starts[-1]), np.nan, np.float32)

    def measured(self, gaps: list[tuple[int, str]]) -> Measured:
        """Everything as columns."""
        self._put_units_in_order()
        first, values, offsets = _trimmed(self.histograms)
        counts = np.diff(np.array(self.sample_starts, np.int32))
        names = (*NUMBERS, *QUANTILES)
        columns: dict[str, Any] = dict(zip(names, self.numbers, strict=True)) | dict(
            zip(COUNTS, self.counts, strict=True)
        )
        rows = np.arange(self.sample_starts[-1], dtype=np.int32)
        return Measured(
            whole={name: columns[name] for name in WHOLE},
            hist_first=first,
            hist_values=values,
            hist_offsets=offsets,
            sample_request=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            sample_index=rows - np.repeat(np.array(self.sample_starts[:-1], np.int32), counts),
            samples=dict(zip(SAMPLE, self.samples, strict=True)),
            unit_shape=[how.unit_shape if how else () for how in self.arrangements],
            unit_offsets=np.array(self.unit_starts, np.int32),
            units=dict(zip(UNIT, self.units, strict=True)),
            gaps=gaps,
        )

    def _put_units_in_order(self) -> None:
        """Units were measured in the order of memory; bring them into the order of the tensor."""
        for how, start in zip(self.arrangements, self.unit_starts, strict=False):
            if how and how.unit_order:
                read = [how.unit_shape[axis] for axis in how.unit_order]
                back = [0, *(1 + axis for axis in np.argsort(how.unit_order))]
                part = self.units[:, start : start + how.units]
                part[:] = part.reshape(len(UNIT), *read).transpose(back).reshape(part.shape)


def _trimmed(histograms: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each histogram from its first to its last bin that is not empty: first bins, counts, offsets."""
    used = histograms != 0
    first = used.argmax(axis=1)
    length = np.where(used.any(axis=1), HISTOGRAM_BINS - used[:, ::-1].argmax(axis=1) - first, 0)
    offsets = np.zeros(len(histograms) + 1, np.int32)
    np.cumsum(length, out=offsets[1:])
    skipped = np.arange(len(histograms)) * HISTOGRAM_BINS + first - offsets[:-1]
    values = histograms.ravel()[np.arange(offsets[-1]) + np.repeat(skipped, length)]
    return first.astype(np.int16), values, offsets
