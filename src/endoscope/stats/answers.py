"""Memory that statistics are written to, and how it becomes a `Measured`.

measure_part ─► Answers ─┐
measure_part ─► Answers ─┴─► joined ─► Measured
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from endoscope.schema.stats import COUNTS, HISTOGRAM_BINS, NUMBERS, QUANTILES, SAMPLE, UNIT, WHOLE
from endoscope.stats.plan import address_of, together
from endoscope.stats.request import Measured

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from endoscope.stats.plan import Plan

_COLUMNS = (*NUMBERS, *QUANTILES, *COUNTS)


class Answers:
    """The statistics of n requests, some of them with samples and units."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sample_starts, self.unit_starts = plan.sample_starts, plan.unit_starts
        memory = np.empty(plan.answers.size, np.uint8)  # one piece: asking for memory and its address takes its time
        self._start = address_of(memory)
        views = [np.ndarray(shape, dtype, memory, place) for dtype, shape, place in plan.answers.parts]
        self.numbers, self.counts, self.histogram_ends, self.histograms, self.samples, self.units = views
        self.histograms.fill(0)
        if not plan.is_full:
            self.numbers.fill(np.nan)
            self.counts.fill(0)
            self.histogram_ends.fill(0)
            self.samples.fill(np.nan)
            self.units.fill(np.nan)
        self.gaps: list[tuple[int, str]] = []
        self.notes: list[tuple[int, str]] = []

    def addresses(self) -> list[int]:
        """The fields of a job that say where the answers go, in the order of `layout`."""
        start = self._start
        numbers, counts, ends, histograms, samples, units = [start + place for _, _, place in self.plan.answers.parts]
        return [numbers, counts, histograms, ends, samples, self.samples.shape[1], units, self.units.shape[1]]

    def first(self, count: int) -> Answers:
        """Of the first requests only, in the same memory."""
        plan, part = self.plan.first(count), object.__new__(Answers)
        part.plan, part._start = plan, self._start
        part.sample_starts, part.unit_starts = plan.sample_starts, plan.unit_starts
        part.numbers, part.counts = self.numbers[:, :count], self.counts[:, :count]
        part.histogram_ends, part.histograms = self.histogram_ends[:count], self.histograms[:count]
        part.samples, part.units = self.samples[:, : plan.sample_starts[-1]], self.units[:, : plan.unit_starts[-1]]
        part.gaps, part.notes = [], []
        return part

    def trim(self, request: int) -> None:
        """Note which bins of a histogram are in use; the kernels do that themselves."""
        used = self.histograms[request].nonzero()[0]
        if len(used):
            self.histogram_ends[request] = used[0], used[-1] + 1

    def settle(self) -> None:
        """Everything is measured."""
        for number, other in self.plan.copied:
            self._copy(number, other)
        for number in self.plan.reordered:
            self._put_units_in_order(number)

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


def joined(parts: Sequence[Answers]) -> Measured:
    """The statistics of the requests of all parts, one part after the other, as columns."""
    plan = together([part.plan for part in parts])
    first, values, offsets = _trimmed(parts)
    rows = (*_beside([part.numbers for part in parts]), *_beside([part.counts for part in parts]))
    columns: dict[str, Any] = dict(zip(_COLUMNS, rows, strict=True))
    return Measured(
        whole={name: columns[name] for name in WHOLE},
        hist_first=first,
        hist_values=values,
        hist_offsets=offsets,
        sample_request=plan.sample_request,
        sample_index=plan.sample_index,
        samples=dict(zip(SAMPLE, _beside([part.samples for part in parts]), strict=True)),
        unit_shape=plan.unit_shape,
        unit_offsets=plan.unit_offsets,
        units=dict(zip(UNIT, _beside([part.units for part in parts]), strict=True)),
        gaps=_numbered(parts, [part.gaps for part in parts]),
        notes=_numbered(parts, [part.notes for part in parts]),
    )


def _beside(blocks: list[NDArray[Any]]) -> NDArray[Any]:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def _numbered(parts: Sequence[Answers], texts: list[list[tuple[int, str]]]) -> list[tuple[int, str]]:
    firsts = accumulate([len(part.plan.readings) for part in parts], initial=0)
    return [(first + request, text) for first, told in zip(firsts, texts, strict=False) for request, text in told]


def _trimmed(parts: Sequence[Answers]) -> tuple[NDArray[np.int16], NDArray[np.uint32], NDArray[np.int32]]:
    """Each histogram from its first to its last bin that is not empty: first bins, counts, offsets."""
    ends = np.concatenate([part.histogram_ends for part in parts])
    offsets = np.zeros(len(ends) + 1, np.int32)
    np.cumsum(ends[:, 1] - ends[:, 0], out=offsets[1:])
    values = [_in_use(part) for part in parts]
    return ends[:, 0].astype(np.int16), values[0] if len(values) == 1 else np.concatenate(values), offsets


def _in_use(part: Answers) -> NDArray[np.uint32]:
    """The bins that are in use, one histogram after the other."""
    first, lengths = part.histogram_ends[:, 0], part.histogram_ends[:, 1] - part.histogram_ends[:, 0]
    before = lengths.cumsum() - lengths  # bins that are taken from the histograms above
    places = np.repeat(np.arange(0, part.histograms.size, HISTOGRAM_BINS) + first - before, lengths)
    places += np.arange(len(places))
    return part.histograms.ravel().take(places)
