"""Layers × steps: one number of every tensor at every recorded step, and what kind of number it is.

    a statistic of the tensor   as it was recorded; counts as shares of all elements
    batch_spread, dead_share    from the units over the batch
    quantised_share             from the histogram, of types with few small numbers
    gradient_share              from the norms of all gradients of the same step
    update_ratio                from the norms of update and parameter

Each is a few calls of numpy for each step, however many tensors there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from endoscope.errors import BadArgument, LookupFailed
from endoscope.query import bulk
from endoscope.query.bulk import Matrix
from endoscope.query.reading.columns import Columns, Flat
from endoscope.query.recording import Recording
from endoscope.schema.stats import LOWEST_EXPONENT, ZERO_BIN

OUTPUTS, PARAMETERS = "outputs", "parameters"
Read = Callable[[Recording, str, str], Matrix]
_DEAD_BELOW = 1e-7  # as the check `dead_units` has it
#: Below 2 to this power numbers of the type have fewer digits than others. Of other types that is out of sight.
_SMALLEST_NORMAL = {"float16": -14, "float8_e5m2": -14, "float8_e4m3fn": -6}


class State(IntEnum):
    """What a cell is."""

    ABSENT = 0  # the step has no such tensor, or nothing that the number could be made of
    VALUE = 1
    NAN = 2  # some element is not a number
    INFINITE = 3  # some element is infinite


class Layers(NamedTuple):
    """One row for each tensor, one column for each step."""

    keys: np.ndarray  # numbers of the tensors, ascending
    ordinals: np.ndarray
    values: np.ndarray  # float32; NaN where `states` is not VALUE
    states: np.ndarray  # uint8


@dataclass(frozen=True, slots=True)
class Derived:
    """A statistic that is made of others; `make` gives a matrix of the keys and steps of `there`."""

    name: str
    label: str
    scale: str
    of: tuple[str, ...]  # value, gradient, update: what it can be of
    make: Callable[[_Asked], np.ndarray]


def layers(recording: Recording, of: str, statistic: str, rows: str = "", read: Read = bulk.matrix) -> Layers:
    """Of all values, of all gradients of a loss, or of all updates. `rows` is "outputs", "parameters", or both.

    `read` is how matrices are read: several are needed for each, and some of them again and again.
    """
    if rows not in ("", OUTPUTS, PARAMETERS):
        raise BadArgument(f"rows={rows!r} is neither {OUTPUTS!r} nor {PARAMETERS!r}.")
    derived = {one.name: one for one in DERIVED}.get(statistic)
    if derived is not None and of.partition(":")[0] not in derived.of:
        raise LookupFailed(f"{statistic!r} exists for {' and '.join(derived.of)}, but not for {of!r}.")
    asked = _Asked(recording, of, _chosen(recording, read(recording, of, "count"), rows), read)
    if derived is not None:
        return asked.with_states(derived.make(asked))
    one = next((one for one in recording.tables.statistics if one.name == statistic), None)
    if one is None or not one.is_count:
        return asked.with_states(asked.matrix(statistic))
    found = asked.matrix(statistic)
    shares = found if statistic == "count" else found / np.maximum(asked.matrix("count"), 1)
    return asked.of_counts(shares)


def offered(recording: Recording) -> list[Derived]:
    """The derived ones that something in the recording has."""
    keys = recording.tables.keys.by_number.values()
    ofs = {key.of.partition(":")[0] for key in keys} | {"value"}
    is_small = any(key.dtype in _SMALLEST_NORMAL for key in keys)
    return [one for one in DERIVED if ofs & set(one.of) and (one.name != "quantised_share" or is_small)]


def _chosen(recording: Recording, found: Matrix, rows: str) -> np.ndarray:
    keys = recording.tables.keys.by_number
    is_parameter = np.array([keys[number].kind in ("parameter", "buffer") for number in found.keys.tolist()], bool)
    return np.flatnonzero(is_parameter == (rows == PARAMETERS)) if rows else np.arange(len(found.keys))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an answer is made of."""

    recording: Recording
    of: str
    chosen: np.ndarray  # rows of the matrices
    read: Read

    @property
    def keys(self) -> np.ndarray:
        found: np.ndarray = self.read(self.recording, self.of, "count").keys[self.chosen]
        return found

    @property
    def ordinals(self) -> np.ndarray:
        return self.read(self.recording, self.of, "count").ordinals

    def matrix(self, statistic: str) -> np.ndarray:
        found: np.ndarray = self.read(self.recording, self.of, statistic).values[self.chosen]
        return found

    def with_states(self, values: np.ndarray) -> Layers:
        states = np.where(np.isnan(values), State.ABSENT, State.VALUE).astype(np.uint8)
        there = ~np.isnan(self.matrix("count"))
        states[there & ((self.matrix("infs") > 0) | np.isinf(values))] = State.INFINITE
        states[there & (self.matrix("nans") > 0)] = State.NAN
        shown = np.where(states == State.VALUE, values, np.nan).astype(np.float32)
        return Layers(self.keys, self.ordinals, shown, states)

    def of_counts(self, values: np.ndarray) -> Layers:
        """Shares are numbers also where elements are not."""
        states = np.where(np.isnan(values), State.ABSENT, State.VALUE).astype(np.uint8)
        return Layers(self.keys, self.ordinals, values.astype(np.float32), states)

    def from_lists(self, table: str, reduce: _Reduce) -> np.ndarray:
        """One number from the lists that a table has of every tensor at every step; NaN where it has none."""
        keys, place = self.keys, {ordinal: n for n, ordinal in enumerate(self.ordinals.tolist())}
        result = np.full((len(keys), len(place)), np.nan, np.float32)

        def find(_: object) -> None:
            columns = self.recording.tables.columns(table)
            if type(columns) is not Columns:  # of several ranks: each list is put together by itself
                for row, key in enumerate(keys.tolist()):
                    _put_together(columns, key, reduce, result[row], place, row)
                return
            for flat in columns.flat(reduce.columns, keys.tolist(), reduce.plain):
                at, rows = place.get(flat.ordinal, -1), np.searchsorted(keys, flat.keys)
                if at >= 0:
                    with np.errstate(all="ignore"):
                        result[rows, at] = reduce.each(flat, rows)

        self.recording.tables.steadily(find)
        return result


def _put_together(
    columns: Columns, key: int, reduce: _Reduce, result: np.ndarray, place: dict[int, int], row: int
) -> None:
    """One tensor over all steps."""
    try:
        found = [columns.lists(column, [key]) for column in reduce.columns]
        plain = [columns.numbers(column, [key]).values for column in reduce.plain]
    except LookupFailed:  # it cannot be put together
        return
    if not len(found[0].ordinals):
        return
    values = [np.concatenate(one.values) for one in found]
    flat = Flat(-1, np.array([key]), found[0].lengths, values, plain)
    with np.errstate(all="ignore"):
        numbers = reduce.each(flat, np.full(len(found[0].values), row))
    for ordinal, number in zip(found[0].ordinals.tolist(), numbers.tolist(), strict=True):
        if ordinal in place:
            result[place[ordinal]] = number


class _Reduce(NamedTuple):
    """Lists of one step -> one number for each tensor."""

    columns: tuple[str, ...]
    each: Callable[[Flat, np.ndarray], np.ndarray]  # of the lists, and of the rows that they belong to
    plain: tuple[str, ...] = ()


def _means(lengths: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of each list; NaN where it is empty. Each has a sum of its own: one that is infinite spoils no other."""
    found = np.full(len(lengths), np.nan)
    there = np.flatnonzero(lengths)
    if len(there):
        starts = np.cumsum(lengths) - lengths
        found[there] = np.add.reduceat(values, starts[there], dtype=np.float64) / lengths[there]
    return found


def _batch_spread(asked: _Asked) -> np.ndarray:
    """How far samples are from each other: the root of the mean variance of the units over the batch."""

    def each(flat: Flat, rows: np.ndarray) -> np.ndarray:
        spread: np.ndarray = np.sqrt(_means(flat.lengths, np.square(flat.values[0], dtype=np.float64)))
        return spread

    return asked.from_lists("units", _Reduce(("std",), each))


def _dead_share(asked: _Asked) -> np.ndarray:
    """Of all units, those that are zero for every sample."""
    return asked.from_lists(
        "units", _Reduce(("abs_max",), lambda flat, rows: _means(flat.lengths, flat.values[0] <= _DEAD_BELOW))
    )


def _quantised_share(asked: _Asked) -> np.ndarray:
    """Of the elements that are not zero, those too small for the full precision of their type."""
    keys = asked.recording.tables.keys.by_number
    known = [_SMALLEST_NORMAL.get(keys[number].dtype) for number in asked.keys.tolist()]
    # Two bins an octave; the number of the first bin that holds full numbers, counted from the zero bin.
    bounds = np.array([0 if power is None else 1 + 2 * (power - LOWEST_EXPONENT) for power in known])

    def each(flat: Flat, rows: np.ndarray) -> np.ndarray:
        lengths, counts = flat.lengths, flat.values[0]
        inside = np.arange(len(counts)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        distance = np.abs(np.repeat(flat.plain[0].astype(np.int64), lengths) + inside - ZERO_BIN)
        nonzero = np.where(distance > 0, counts, 0)
        small = np.where(distance < np.repeat(bounds[rows], lengths), nonzero, 0)
        found: np.ndarray = _means(lengths, small) / _means(lengths, nonzero)
        return np.where(bounds[rows] > 0, found, np.nan)

    return asked.from_lists("stats", _Reduce(("hist",), each, ("hist_first",)))


def _gradient_share(asked: _Asked) -> np.ndarray:
    """Of the squared norm of all gradients of the same step, those of parameters and of outputs apart."""
    squares = asked.matrix("norm").astype(np.float64) ** 2
    keys = asked.recording.tables.keys.by_number
    is_parameter = np.array([keys[number].kind == "parameter" for number in asked.keys.tolist()], bool)
    for chosen in (is_parameter, ~is_parameter):
        with np.errstate(invalid="ignore", divide="ignore"):
            squares[chosen] /= np.nansum(squares[chosen], axis=0)
    return squares


def _update_ratio(asked: _Asked) -> np.ndarray:
    """What a step changed, as a share of the parameter's norm."""
    weights = asked.read(asked.recording, "value", "norm")
    keys = asked.recording.tables.keys.by_number
    rows = {
        (keys[number].node, keys[number].role): row
        for row, number in enumerate(weights.keys.tolist())
        if keys[number].of == "parameter"
    }
    at = [rows.get((keys[number].node, keys[number].role), -1) for number in asked.keys.tolist()]
    sizes = np.where(np.array(at)[:, None] >= 0, weights.values[at], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: np.ndarray = asked.matrix("norm") / np.where(sizes > 0, sizes, np.nan)
    return found


DERIVED = (
    Derived("batch_spread", "spread over the batch", "log", ("value", "gradient"), _batch_spread),
    Derived("dead_share", "dead units", "linear", ("value",), _dead_share),
    Derived("quantised_share", "quantised share", "linear", ("value", "gradient", "update"), _quantised_share),
    Derived("gradient_share", "gradient share", "linear", ("gradient",), _gradient_share),
    Derived("update_ratio", "update ÷ weight", "log", ("update",), _update_ratio),
)
