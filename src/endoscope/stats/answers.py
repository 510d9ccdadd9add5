"""Memory that statistics are written to, and how it becomes a `Measured`.

measure_part ─► Answers ─┐
measure_part ─► Answers ─┴─► joined ─► Measured
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from endoscope.schema.stats import COUNTS, HISTOGRAM_BINS, SAMPLE, SWEPT, UNIT, WHOLE
from endoscope.stats.kernels import address_of
from endoscope.stats.plan import together
from endoscope.stats.request import Measured

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from endoscope.stats.plan import Plan


class Answers:
    """The statistics of n requests, some of them with samples and units."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        memory = np.empty(plan.answer_bytes, np.uint8)  # one piece: asking for memory and its address takes its time
        self._start = address_of(memory)
        views = [np.ndarray(shape, dtype, memory, place) for dtype, shape, place in plan.answer_tables]
        self.whole, self.histogram_ends, self.histograms, self.samples, self.units = views
        self.more: dict[str, NDArray[np.float64]] = {}  # statistics that are not swept
        self.gaps: list[tuple[int, str]] = []
        self.notes: list[tuple[int, str]] = []
        if plan.unwritten:
            self._clear(plan.unwritten)

    def _clear(self, numbers: list[int]) -> None:
        """Of these nothing is known yet."""
        for name, column in self.whole_columns().items():
            column[numbers] = 0 if name in COUNTS else np.nan
        self.histogram_ends[numbers] = self.histograms[numbers] = 0
        for number in numbers:
            for table, starts in self._lists():
                table[:, starts[number] : starts[number + 1]] = np.nan

    def _lists(self) -> list[tuple[NDArray[np.float32], list[int]]]:
        """The tables with several rows for each request, and where those begin."""
        return [(self.samples, self.plan.sample_starts), (self.units, self.plan.unit_starts)]

    def addresses(self) -> list[int]:
        """The fields of a `Job` that say where the answers go."""
        whole, ends, histograms, samples, units = [self._start + place for _, _, place in self.plan.answer_tables]
        return [whole, histograms, ends, samples, self.samples.shape[1], units, self.units.shape[1]]

    def whole_columns(self) -> dict[str, NDArray[Any]]:
        return _by_name(self.whole)

    def set_count(self, number: int, count: int) -> None:
        """How many numbers a request has that the kernels do not measure."""
        self.whole_columns()["count"][number] = count

    def write(self, numbers: list[int], whole: dict[str, NDArray[Any]], histograms: NDArray[np.int64]) -> None:
        """What torch found about some requests of the same shape."""
        columns = self.whole_columns()
        for name, column in whole.items():
            columns[name][numbers] = column
        for number, histogram in zip(numbers, histograms, strict=True):
            used = histogram.nonzero()[0]
            self.histograms[number] = histogram
            self.histogram_ends[number] = (used[0], used[-1] + 1) if len(used) else 0

    def settle(self) -> None:
        """Everything is measured."""
        for number, other in self.plan.copied:  # it has as many samples and units
            self.whole[:, number] = self.whole[:, other]
            for rows in (self.histograms, self.histogram_ends):
                rows[number] = rows[other]
            for table, starts in self._lists():
                table[:, starts[number] : starts[number + 1]] = table[:, starts[other] : starts[other + 1]]
        for number in self.plan.reordered:
            self._put_units_in_order(number)

    def _put_units_in_order(self, number: int) -> None:
        """Units were measured in the order of memory; bring them into the order of the tensor."""
        reading = self.plan.readings[number]
        assert reading is not None
        how, start = reading.how, self.plan.unit_starts[number]
        read = [how.unit_shape[axis] for axis in how.unit_order]
        back = [0, *(1 + axis for axis in np.argsort(how.unit_order))]
        part = self.units[:, start : start + how.units]
        part[:] = part.reshape(len(UNIT), *read).transpose(back).reshape(part.shape)


def joined(parts: Sequence[Answers]) -> Measured:
    """The statistics of the requests of all parts, one part after the other, as columns."""
    plan = together([part.plan for part in parts])
    first, values, offsets = _trimmed(parts)
    return Measured(
        whole=_with_more(_by_name(_beside([part.whole for part in parts])), [part.more for part in parts]),
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


def _by_name(table: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """By name; counts are kept as whole numbers in the same memory."""
    return {
        name: column.view(np.int64) if name in COUNTS else column for name, column in zip(SWEPT, table, strict=True)
    }


def _with_more(swept: dict[str, NDArray[Any]], parts: list[dict[str, NDArray[np.float64]]]) -> dict[str, NDArray[Any]]:
    """All statistics, in the order of the columns."""
    if not parts[0]:
        return swept
    all_of = swept | {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: all_of[name] for name in WHOLE}


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
