"""Memory that statistics are written to, and how it becomes a `Measured`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from endoscope.schema.stats import COUNTS, HISTOGRAM_BINS, NUMBERS, QUANTILES, SAMPLE, UNIT, WHOLE
from endoscope.stats.request import Measured

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from endoscope.stats.geometry import Arrangement


class Answers:
    """The statistics of n requests, some of them with samples and units.

    `arrangements` has one entry for each request, None for those that cannot be measured. `samples` says how
    many samples of each are measured one by one.
    """

    def __init__(self, arrangements: Sequence[Arrangement | None], samples: list[int]) -> None:
        requests = len(arrangements)
        self.arrangements = arrangements
        self.sample_counts = samples
        self.sample_starts = [0, *accumulate(samples)]
        self.unit_starts = [0, *accumulate([how.units if how else 0 for how in arrangements])]
        self.numbers = np.full((len(NUMBERS) + len(QUANTILES), requests), np.nan)
        self.counts = np.zeros((len(COUNTS), requests), np.int64)
        self.histograms = np.zeros((requests, HISTOGRAM_BINS), np.uint32)
        self.histogram_ends = np.zeros((requests, 2), np.int64)
        self.samples = np.full((len(SAMPLE), self.sample_starts[-1]), np.nan, np.float32)
        self.units = np.full((len(UNIT), self.unit_starts[-1]), np.nan, np.float32)

    def trim(self, request: int) -> None:
        """Note which bins of a histogram are in use; the kernels do that themselves."""
        used = self.histograms[request].nonzero()[0]
        if len(used):
            self.histogram_ends[request] = used[0], used[-1] + 1

    def measured(self, gaps: list[tuple[int, str]], notes: list[tuple[int, str]]) -> Measured:
        """Everything as columns."""
        self._put_units_in_order()
        first, values, offsets = self._trimmed()
        request, index = _sample_numbers(tuple(self.sample_counts))
        columns: dict[str, Any] = dict(zip((*NUMBERS, *QUANTILES), self.numbers, strict=True))
        columns.update(zip(COUNTS, self.counts, strict=True))
        return Measured(
            whole={name: columns[name] for name in WHOLE},
            hist_first=first,
            hist_values=values,
            hist_offsets=offsets,
            sample_request=request,
            sample_index=index,
            samples=dict(zip(SAMPLE, self.samples, strict=True)),
            unit_shape=[how.unit_shape if how else () for how in self.arrangements],
            unit_offsets=np.array(self.unit_starts, np.int32),
            units=dict(zip(UNIT, self.units, strict=True)),
            gaps=gaps,
            notes=notes,
        )

    def _put_units_in_order(self) -> None:
        """Units were measured in the order of memory; bring them into the order of the tensor."""
        for how, start in zip(self.arrangements, self.unit_starts, strict=False):
            if how and how.unit_order:
                read = [how.unit_shape[axis] for axis in how.unit_order]
                back = [0, *(1 + axis for axis in np.argsort(how.unit_order))]
                part = self.units[:, start : start + how.units]
                part[:] = part.reshape(len(UNIT), *read).transpose(back).reshape(part.shape)

    def _trimmed(self) -> tuple[NDArray[np.int16], NDArray[np.uint32], NDArray[np.int32]]:
        """Each histogram from its first to its last bin that is not empty: first bins, counts, offsets."""
        ends = self.histogram_ends.tolist()
        pieces = [row[first:end] for row, (first, end) in zip(self.histograms, ends, strict=True)]
        values = np.concatenate(pieces) if pieces else np.zeros(0, np.uint32)
        offsets = [0, *accumulate([end - first for first, end in ends])]
        return self.histogram_ends[:, 0].astype(np.int16), values, np.array(offsets, np.int32)


@lru_cache(32)  # the same in every step; nobody writes into them
def _sample_numbers(counts: tuple[int, ...]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """For every row of the table of samples: of which request it is, and which sample of it."""
    rows = np.arange(sum(counts), dtype=np.int32)
    request = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    index = rows - np.array([0, *accumulate(counts)], np.int32)[request]
    for numbers in (request, index):
        numbers.flags.writeable = False
    return request, index
