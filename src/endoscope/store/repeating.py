"""The messages of recorded steps: what is the same as in the step before is not made again.

    step 7   new tensors, new texts        ─► rows.py ─► messages.py
    step 8   the same once more            ─► a mould for what will come (moulds.py)
    step 9   still the same                ─► numbers into the mould

What is called the same has been compared: arrays that say which tensors, samples and units there are, texts, and the
type and the length of all numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter, is_, itemgetter
from typing import Any

import numpy as np

from endoscope.schema.recording import TABLES, StepRecord
from endoscope.schema.stats import SAMPLE, UNIT, WHOLE
from endoscope.store import rows
from endoscope.store.messages import batch_message
from endoscope.store.moulds import Mould

_ORDINAL, _STEP, _SECONDS = struct.Struct("<i"), struct.Struct("<q"), struct.Struct("<d")
_ARRAY = {np.ndarray}
_FIRST = ("ordinal", "step")  # of every row
_STATS = (*WHOLE, "hist_first", "hist.offsets", "hist")

_dtype_of = attrgetter("dtype")
_whole_of, _samples_of, _units_of = itemgetter(*WHOLE), itemgetter(*SAMPLE), itemgetter(*UNIT)


class StepMessages:
    """Remembers the step before."""

    def __init__(self) -> None:
        self._stats = _Measured("stats", _STATS, ends_anywhere=True)
        self._samples, self._units = _Measured("samples", SAMPLE), _Measured("units", UNIT)
        self._steps = _Described("steps", (*_FIRST, "time", "recording_seconds", "raw"))
        self._metrics = _Described("metrics", ("step", "time", "value"))

    def of(self, record: StepRecord, ordinal: int, raw_file: str) -> dict[str, bytes]:
        """Table -> what a step adds to it; a table without rows is left out."""
        messages = {} if record.measured is None or not len(record.keys) else self._measured(record, ordinal)
        messages["steps"] = self._step(record, ordinal, raw_file)
        return messages

    def of_rows(self, table: str, found: Sequence[tuple[Any, ...]]) -> bytes:
        """Rows of `metrics`, `notes` or `gaps`, at least one."""
        if table != "metrics":
            return batch_message(table, rows.of_tuples(table, found))
        steps, times, names, values, types = zip(*found, strict=True)
        fresh = (np.array(steps, np.int64), np.array(times, np.float64), np.array(values, np.float64))
        return self._metrics.message((names, types), fresh, lambda: rows.of_tuples(table, found))

    def _step(self, record: StepRecord, ordinal: int, raw_file: str) -> bytes:
        about, raw = rows.about_step(record), raw_file.encode()
        first = (_ORDINAL.pack(ordinal), _STEP.pack(int(record.number)))
        seconds = (_SECONDS.pack(record.time), _SECONDS.pack(record.recording_seconds))
        columns = partial(rows.of_step, record, ordinal, raw_file)
        return self._steps.message((about, len(raw)), (*first, *seconds, raw), columns)

    def _measured(self, record: StepRecord, ordinal: int) -> dict[str, bytes]:
        keys, measured = np.asarray(record.keys, np.int32), record.measured
        numbers = (*_whole_of(measured.whole), measured.hist_first, measured.hist_offsets, measured.hist_values)
        samples = (keys, measured.sample_request, measured.sample_index)
        units = (keys, measured.unit_offsets, measured.unit_shape)
        found = {
            "stats": self._stats.message(record, ordinal, (keys,), numbers),
            "samples": self._samples.message(record, ordinal, samples, _samples_of(measured.samples)),
            "units": self._units.message(record, ordinal, units, _units_of(measured.units)),
        }
        return {table: message for table, message in found.items() if message}


class _Measured:
    """Rows of one table; `known` says about which tensors, samples and units they are."""

    def __init__(self, table: str, fresh: Sequence[str], ends_anywhere: bool = False) -> None:
        kinds = dict(TABLES[table]) | {"hist.offsets": "int32"}
        self._table = table
        self._fresh = (*_FIRST, *fresh)
        self._dtypes = [np.dtype(kinds[name].removeprefix("list<").removesuffix(">")) for name in fresh]
        self._compared = len(fresh) - ends_anywhere  # so many arrays have a length that follows from `known`
        self._known: tuple[Any, ...] = ()
        self._lengths: list[int] = []
        self._rows = 0
        self._can_repeat = False
        self._mould: Mould | None = None

    def message(self, record: StepRecord, ordinal: int, known: tuple[Any, ...], numbers: Sequence[Any]) -> bytes:
        """Empty if there are no rows."""
        if _are_same(known, self._known) and self._fits(numbers):
            repeated = self._repeated(record, ordinal, numbers)
            if repeated is not None:
                return repeated
        columns = rows.of_measured(self._table, record, ordinal)
        self._known, self._mould, self._rows = known, None, len(columns["key"])
        self._lengths = [*map(len, numbers[: self._compared])]
        self._can_repeat = rows.stand_together(np.asarray(record.measured.sample_request))
        return batch_message(self._table, columns) if self._rows else b""

    def _fits(self, numbers: Sequence[Any]) -> bool:
        """Whether these can stand where those of the step before stood."""
        return (
            {*map(type, numbers)} == _ARRAY
            and [*map(_dtype_of, numbers)] == self._dtypes
            and [*map(len, numbers[: self._compared])] == self._lengths
        )

    def _repeated(self, record: StepRecord, ordinal: int, numbers: Sequence[Any]) -> bytes | None:
        """None if the numbers have to be brought into another order, or lie in memory with gaps in between."""
        if not self._rows:
            return b""
        if not self._can_repeat:
            return None
        if self._mould is None:
            columns = rows.of_measured(self._table, record, ordinal)
            self._mould = Mould(self._table, columns, self._fresh)
        first = (_ORDINAL.pack(ordinal) * self._rows, _STEP.pack(int(record.number)) * self._rows)
        try:
            return self._mould.fill((*first, *numbers))
        except TypeError:
            return None


class _Described:
    """Rows of one table; `known` is compared, and tells all but the buffers that are `fresh`."""

    def __init__(self, table: str, fresh: Sequence[str]) -> None:
        self._table = table
        self._fresh = fresh
        self._known: Any = None
        self._mould: Mould | None = None

    def message(self, known: Any, fresh: Sequence[Any], columns: Callable[[], rows.Columns]) -> bytes:
        if known != self._known:
            self._known, self._mould = known, None
            return batch_message(self._table, columns())
        if self._mould is None:
            self._mould = Mould(self._table, columns(), self._fresh)
        return self._mould.fill(fresh)


def _are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Arrays and lists: nearly always the very same objects."""
    if len(some) != len(others):
        return False
    return all(map(is_, some, others)) or all(map(_are_equal, some, others))


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)
