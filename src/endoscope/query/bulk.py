"""What the page asks for: many tensors of one step, or one statistic of many tensors over all steps, in one go.

    step_table      all tensors of a step         one batch of the file, names looked up
    histograms      one tensor, all steps         one gather over the mapped segments
    matrix          all tensors × all steps       two gathers

Everything here could be put together from `Recording`'s own methods, tensor by tensor; that would take seconds.
"""

from __future__ import annotations

import hashlib
import re
import time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.errors import LookupFailed
from endoscope.query import arrays
from endoscope.query.recording import Recording
from endoscope.query.steps import UNKNOWN, Step, Steps
from endoscope.schema.recording import PER_STEP
from endoscope.store.streams import schema_of, to_numpy

_NAMES = ("node", "role", "pass", "of", "kind")  # of a tensor; they come first
_DETAILS = ("shape", "dtype", "batch_dim", "module", "source")  # these last
_CHUNKS_AT_ONCE = 16  # a click waits for so many, a few milliseconds
_BREATH_SECS = 0.01  # a lock that is taken again at once is never seen free by those who wait for it
_PAUSE_SECS = 1.0  # between two tables: a page that has just been opened needs both cores for itself
_HASH = re.compile(r"\w{1,128}")


class Which(NamedTuple):
    """A tensor as a user addresses it; what is None is the only one, or the first."""

    node: str
    of: str = "value"
    role: str | None = None
    pass_: int | None = None
    type: str | None = None


class Matrix(NamedTuple):
    """One statistic of many tensors over all steps."""

    keys: np.ndarray  # numbers of the tensors, ascending
    ordinals: np.ndarray  # n-th recorded step, ascending
    values: np.ndarray  # float32[tensors, steps]; NaN where a step has no such tensor


class Raw(NamedTuple):
    """Raw values, and which samples they are of."""

    values: np.ndarray
    samples: list[int] | None  # None: the tensor is kept whole


def prepare(recording: Recording) -> None:
    """Read what every look at a trial begins with: steps, names of tensors, metrics, which tensors there were when."""
    recording.tables.steadily(lambda steps: None)
    _ = recording.tables.names, recording.metrics.table
    while recording.tables.read_ahead("stats", _CHUNKS_AT_ONCE):
        pass


def warm(recording: Recording) -> None:
    """Check what series will read, beside everything else. What is not looked at first has time."""
    for table in PER_STEP:
        while recording.tables.read_ahead(table, _CHUNKS_AT_ONCE):
            time.sleep(_BREATH_SECS)
        recording.tables.release()
        time.sleep(_PAUSE_SECS)


def step_at(recording: Recording, number: int, type_: str | None = None) -> Step:
    """The step with a number; of several the newest."""
    return recording.tables.steadily(lambda steps: steps.at(number, type_)[0])


def graph(recording: Recording, graph_hash: str) -> dict[str, Any]:
    """The dependency graph with a hash, as plain data."""
    known = {step.graph for step in recording.steps}
    # A recording that somebody sent may claim any text as a hash; it must not become a path.
    data = None
    if graph_hash in known and _HASH.fullmatch(graph_hash):
        data = recording.tables.graph(graph_hash)
    if data is None:
        raise LookupFailed(
            f"There is no graph {graph_hash!r} in {recording.name!r}. Its steps have {len(known)} other graphs."
        )
    return data


def names_stamp(recording: Recording, numbers: np.ndarray) -> str:
    """The same for the same tensors in the same order: who knows their names need not be told them again."""
    about = f"{recording.name} {recording.created} {len(numbers)} "
    return hashlib.blake2b(about.encode() + numbers.tobytes(), digest_size=12).hexdigest()


def step_table(recording: Recording, step: Step, known: str | None = None) -> pa.Table:
    """One row per tensor of a step: its names, all statistics, its histogram, whether there are raw values.

    The metadata `names` is the stamp of the names. If it is the `known` one, they are left out: looking them up takes
    longer than all the rest.
    """

    def find(steps: Steps) -> pa.Table:
        batch = recording.tables.batch("stats", step)
        if batch is None and not step.tensors:
            batch = pa.RecordBatch.from_pylist([], schema=schema_of("stats"))
        if batch is None:
            raise recording.tables.why_not_kept("the step", step, "statistics")
        found = pa.Table.from_batches([batch])
        numbers = to_numpy(found["key"])
        names, stamp = recording.tables.names, names_stamp(recording, numbers)
        columns = {} if stamp == known else names.columns(numbers, _NAMES)
        columns |= {name: found[name] for name in found.column_names if name not in ("ordinal", "step", "key")}
        columns |= {} if stamp == known else names.columns(numbers, _DETAILS)
        columns["raw"] = arrays.numbers(np.isin(numbers, recording.tables.keys_with_raw(step)))
        return pa.table(columns, metadata={"names": stamp})

    return recording.tables.steadily(find)


def histograms(recording: Recording, which: Which) -> pa.Table:
    """The histogram of a tensor at every step: step, type, hist_first, hist."""
    keys = recording.tables.keys.select(which.node, which.of, which.role, which.pass_)

    def find(steps: Steps) -> pa.Table:
        if which.type is not None:
            steps.check_type(which.type)
        columns = recording.tables.columns("stats")
        first, lists = columns.numbers("hist_first", keys), columns.lists("hist", keys)
        numbers, types = steps.numbers_of(lists.ordinals), steps.types_of(lists.ordinals)
        rows = np.flatnonzero((numbers != UNKNOWN) & ((types == which.type) | (which.type is None)))
        rows = rows[np.argsort(numbers[rows], kind="stable")]
        chosen = [lists.values[row] for row in rows.tolist()]
        counts = np.concatenate([np.empty(0, np.uint32), *chosen])
        return pa.table(
            {
                "step": arrays.numbers(numbers[rows]),
                "type": arrays.dictionary(types[rows]),
                "hist_first": arrays.numbers(first.values[rows].astype(np.int16)),
                "hist": arrays.lists(lists.lengths[rows], counts),
            }
        )

    return recording.tables.steadily(find)


def matrix(recording: Recording, of: str, statistic: str) -> Matrix:
    """A statistic of all values, of all gradients of a loss, … over all steps, in the order of `recording.steps`."""
    recording.tables.check_statistic(statistic)
    words = ("value", "parameter") if of == "value" else (of,)
    numbers = [number for number, key in recording.tables.keys.by_number.items() if key.of in words]
    if not numbers:
        raise LookupFailed(f"Nothing was recorded of {of!r}. `of` is 'value', 'update' or 'gradient:<loss>'.")
    keys = np.array(sorted(numbers), np.int64)

    def find(steps: Steps) -> Matrix:
        columns = recording.tables.columns("stats")
        ordinals = np.array([step.ordinal for step in steps.list], np.int64)
        place = {ordinal: n for n, ordinal in enumerate(ordinals.tolist())}
        result = np.full((len(ordinals), len(keys)), np.nan, np.float32)
        for block in columns.blocks(statistic, keys.tolist()):
            at = np.array([place.get(ordinal, -1) for ordinal in block.ordinals.tolist()], np.int64)
            listed = at >= 0  # not those that were thinned, or whose own row is damaged
            with np.errstate(over="ignore"):  # beyond the range of float32: infinite
                result[at[listed][:, None], np.searchsorted(keys, block.keys)] = block.values[listed]
        result = np.ascontiguousarray(result.T)
        return Matrix(keys, ordinals, result)

    return recording.tables.steadily(find)


def of_pass(recording: Recording, found: Matrix, pass_: int) -> Matrix:
    """Only the tensors of the n-th pass."""
    known = recording.tables.keys.by_number
    rows = [row for row, key in enumerate(found.keys.tolist()) if key in known and known[key].pass_ == pass_]
    return Matrix(found.keys[rows], found.ordinals, found.values[rows])


def names_of(recording: Recording, numbers: np.ndarray) -> pa.Table:
    """node, role, pass, of and kind of tensors that are given by their numbers."""
    return pa.table(recording.tables.names.columns(numbers, _NAMES))


def tensor(recording: Recording, which: Which, step: int, sample: int | None = None) -> Raw:
    """Raw values of one tensor at one step, with the samples that they are of."""
    array = recording.tensor(
        which.node, step, of=which.of, role=which.role, pass_=which.pass_, type=which.type, sample=sample
    )
    if sample is not None:
        return Raw(array, [sample])
    keys = recording.tables.keys.select(which.node, which.of, which.role, which.pass_)
    for candidate in recording.tables.steadily(lambda steps: steps.at(step, which.type)):
        file = recording.tables.raw(candidate)
        key = next((key for key in keys if file is not None and key in file.entries), None)
        if file is not None and key is not None:
            return Raw(array, file.samples.get(key))
    return Raw(array, None)
