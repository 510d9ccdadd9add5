"""Numbers over all steps equal those of a slow twin that reads batch by batch."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endoscope.query.reading.columns import Columns
from endoscope.schema.recording import Key
from endoscope.store.reader import RankReader
from endoscope.store.writer import TrialWriter
from tests.store.made_up import measured, step_record


def reader_of(folder: Path, layouts: list[list[int]], segment_bytes: int) -> RankReader:
    """One step per layout: which tensors, in which order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("endoscope.store.writer.SEGMENT_BYTES", segment_bytes)
        writer = TrialWriter.create(folder, "trial")
    for n in range(8):
        writer.key_id(Key(f"node {n}"))
    for number, keys in enumerate(layouts):
        samples = 1 + number % 3
        numbers = measured(len(keys), samples=samples, unit_shape=(2, 1 + number % 2), seed=number)
        writer.write_step(step_record(writer, number, keys=np.array(keys, np.int32), measured=numbers, raw=[]))
    writer.close()
    reader = RankReader(writer.path)
    reader.refresh()
    return reader


def columns_of(reader: RankReader, table: str) -> Columns:
    return Columns(reader, table).update()


def slow_numbers(reader: RankReader, column: str, keys: set[int]) -> list[tuple[int, float]]:
    rows = [row for batch in reader.batches("stats") for row in batch.to_pylist()]
    return [(row["ordinal"], row[column]) for row in rows if row["key"] in keys]


def slow_lists(reader: RankReader, table: str, column: str, keys: set[int]) -> list[tuple[int, list[float]]]:
    rows = [row for batch in reader.batches(table) for row in batch.to_pylist()]
    return [(row["ordinal"], row[column]) for row in rows if row["key"] in keys]


LAYOUTS = st.lists(
    st.permutations(range(8)).flatmap(lambda p: st.integers(1, 8).map(lambda n: list(p)[:n])), max_size=8
)


@settings(max_examples=40)
@given(
    layouts=LAYOUTS, keys=st.sets(st.integers(0, 9), min_size=1, max_size=3), full=st.sampled_from([1, 5_000, 10**6])
)
def test_columns_equal_their_slow_twin(
    tmp_path_factory: pytest.TempPathFactory, layouts: list[list[int]], keys: set[int], full: int
) -> None:
    reader = reader_of(tmp_path_factory.mktemp("columns"), layouts, full)
    for column in ("mean", "zeros", "hist_first"):
        found = columns_of(reader, "stats").numbers(column, keys)
        assert list(zip(found.ordinals.tolist(), found.values.tolist(), strict=True)) == slow_numbers(
            reader, column, keys
        )
    for table, column in (("samples", "std"), ("units", "abs_max"), ("units", "unit_shape")):
        lists = columns_of(reader, table).lists(column, keys)
        expected = slow_lists(reader, table, column, keys)
        assert lists.ordinals.tolist() == [ordinal for ordinal, _ in expected]
        assert lists.lengths.tolist() == [len(values) for _, values in expected]
        for position in range(4):
            found_values = lists.elements(np.full(len(expected), position))
            for value, (_, values) in zip(found_values, expected, strict=True):
                assert np.isnan(value) if position >= len(values) else value == values[position]


def test_columns_grow_with_the_recording(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    for n in range(3):
        writer.key_id(Key(f"node {n}"))
    reader = RankReader(writer.path)
    columns = Columns(reader, "stats")
    for number in range(6):
        record = step_record(
            writer, number, keys=np.arange(3, dtype=np.int32), measured=measured(3, seed=number), raw=[]
        )
        writer.write_step(record)
        reader.refresh()
        for column in ("std", "hist_first"):
            found = columns.update().numbers(column, {1})
            assert list(zip(found.ordinals.tolist(), found.values.tolist(), strict=True)) == (
                slow_numbers(reader, column, {1})
            )
    writer.close()


def test_lists_in_several_files(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, [[0, 1], [1, 0], [0], [1, 2, 0]], 1)
    columns = columns_of(reader, "stats")
    lists = columns.lists("hist", {0})
    expected = slow_lists(reader, "stats", "hist", {0})
    assert [values.tolist() for values in lists.values] == [values for _, values in expected]
    assert columns.lists("hist", {7}).values == []
