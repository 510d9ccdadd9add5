"""Memory that statistics are written to, and how it becomes a `Measured`."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from endoscope.schema.stats import COUNTS, HISTOGRAM_BINS, NUMBERS, QUANTILES, SAMPLE, UNIT, WHOLE
from endoscope.stats.plan import address_of
from endoscope.stats.request import Measured

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from endoscope.stats.plan import Plan

_COLUMNS = (*NUMBERS, *QUANTILES, *COUNTS)


class Answers:
    """The statistics of n requests, some of them with samples and units: all in one piece of memory."""

    def __init__(self, plan: Plan) -> None:
        requests = len(plan.readings)
        self.plan = plan
        self.sample_starts, self.unit_starts = plan.sample_starts, plan.unit_starts
        shapes = (
            (np.float64, len(NUMBERS) + len(QUANTILES), requests),
            (np.int64, len(COUNTS), requests),
            (np.int64, requests, 2),
            (np.uint32, requests, HISTOGRAM_BINS),
            (np.float32, len(SAMPLE), plan.sample_starts[-1]),
            (np.float32, len(UNIT), plan.unit_starts[-1]),
        )
        sizes = [(rows * columns * np.dtype(kind).itemsize + 7) // 8 * 8 for kind, rows, columns in shapes]
        starts = [0, *accumulate(sizes)]
        self._memory = np.zeros(starts[-1], np.uint8)
        self._starts = starts
        parts = [
            self._memory[start : start + rows * columns * np.dtype(kind).itemsize].view(kind).reshape(rows, columns)
            for start, (kind, rows, columns) in zip(starts, shapes, strict=False)
        ]
        self.numbers, self.counts, self.histogram_ends, self.histograms, self.samples, self.units = parts
        for part in (self.numbers, self.samples, self.units):
            part.fill(np.nan)

    def addresses(self) -> list[int]:
        """The fields of a job that say where the answers go, in the order of `layout`."""
        first = address_of(self._memory)
        numbers, counts, ends, histograms, samples, units = [first + start for start in self._starts[:-1]]
        return [numbers, counts, histograms, ends, samples, self.samples.shape[1], units, self.units.shape[1]]

    def trim(self, request: int) -> None:
        """Note which bins of a histogram are in use; the kernels do that themselves."""
        used = self.histograms[request].nonzero()[0]
        if len(used):
            self.histogram_ends[request] = used[0], used[-1] + 1

    def measured(self, gaps: list[tuple[int, str]], notes: list[tuple[int, str]]) -> Measured:
        """Everything as columns."""
        for number, other in self.plan.copied:
            self._copy(number, other)
        for number in self.plan.reordered:
            self._put_units_in_order(number)
        first, values, offsets = self._trimmed()
        columns: dict[str, Any] = dict(zip(_COLUMNS, (*self.numbers, *self.counts), strict=True))
        return Measured(
            whole={name: columns[name] for name in WHOLE},
            hist_first=first,
            hist_values=values,
            hist_offsets=offsets,
            sample_request=self.plan.sample_request,
            sample_index=self.plan.sample_index,
            samples=dict(zip(SAMPLE, self.samples, strict=True)),
            unit_shape=self.plan.unit_shape,
            unit_offsets=self.plan.unit_offsets,
            units=dict(zip(UNIT, self.units, strict=True)),
            gaps=gaps,
            notes=notes,
        )

    def _copy(self, number: int, other: int) -> None:
        """Give the answer of another request, which has as many samples and units."""
        for columns in (self.numbers, self.counts):
            columns[:, number] = columns[:, other]
        for rows in (self.histograms, self.histogram_ends):
            rows[number] = rows[other]
        for lists, starts in ((self.samples, self.sample_starts), (self.units, self.unit_starts)):
            lists[:, starts[number] : starts[number + 1]] = lists[:, starts[other] : starts[other + 1]]

    def _put_units_in_order(self, number: int) -> None:
        """Units were measured in the order of memory; bring them into the order of the tensor."""
        reading = self.plan.readings[number]
        assert reading is not None
        how, start = reading.how, self.unit_starts[number]
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
