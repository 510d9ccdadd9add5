"""Numbers are found in record batches where pyarrow would find them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.schema.recording import TABLES, StepRecord
from endoscope.store import layout, rows
from endoscope.store.messages import batch_message
from endoscope.store.streams import schema_message, schema_of, to_numpy
from tests.store.made_up import measured


def columns_of(table: str, count: int) -> dict:
    record = StepRecord(number=9, type="t", time=0.0, keys=np.arange(count), measured=measured(count))
    return rows.of_measured(table, record, 4)


@given(table=st.sampled_from(["stats", "samples", "units"]), count=st.integers(2, 9), with_schema=st.booleans())
def test_buffers_lie_where_they_are_said_to_lie(table: str, count: int, with_schema: bool) -> None:
    message = batch_message(table, columns_of(table, count))
    data = memoryview((schema_message(table) if with_schema else b"") + message)
    found = layout.batch_in(data)
    assert found.end == len(data) and found.start == (len(schema_message(table)) if with_schema else 0)
    batch = pa.ipc.read_record_batch(pa.ipc.read_message(pa.py_buffer(message)), schema_of(table))
    assert found.rows == batch.num_rows
    for name, places in layout.buffer_places(schema_of(table)).items():
        column = batch.column(batch.schema.names.index(name))
        if pa.types.is_list(column.type):
            offsets = np.frombuffer(data, np.int32, found.rows + 1, int(found.buffers[places[0]]))
            assert offsets.tolist() == column.offsets.to_pylist()
            column = column.values
        kind = np.dtype(column.type.to_pandas_dtype())
        values = np.frombuffer(data, kind, len(column), int(found.buffers[places[-1]]))
        assert values.tolist() == column.to_pylist()


@pytest.mark.parametrize("table", TABLES)
def test_places_of_text_and_lists_of_text(table: str) -> None:
    schema = schema_of(table)
    buffers = sum(
        {"string": 3, "list<string>": 5}.get(kind, 4 if kind.startswith("list") else 2) for _, kind in TABLES[table]
    )
    places = layout.buffer_places(schema)
    assert list(places) == schema.names and max(place[-1] for place in places.values()) == buffers - 1


@given(data=st.binary(max_size=300))
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        layout.batch_in(memoryview(data))


@given(cut=st.integers(0, 5000), at=st.integers(0, 400), bit=st.integers(0, 7))
def test_damaged_metadata_is_refused_or_read_but_never_crashes(cut: int, at: int, bit: int) -> None:
    message = bytearray(batch_message("stats", columns_of("stats", 3)))
    message[at] ^= 1 << bit
    for data in (bytes(message), bytes(message)[:cut]):
        try:
            found = layout.batch_in(memoryview(data))
        except ValueError:
            continue
        assert all(0 <= place <= len(data) for place in found.buffers.tolist())


def test_compressed_batches_are_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"key": [1] * 100})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(batch)
    with pytest.raises(ValueError, match="compressed"):
        layout.batch_in(memoryview(sink.getvalue()))


@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.uint32()])
def test_columns_as_numpy(kind: pa.DataType) -> None:
    whole = pa.array([1, 2, 3, 4], kind)
    assert to_numpy(whole[1:3]).tolist() == [2, 3]
    assert to_numpy(pa.chunked_array([whole[:1], whole[1:1], whole[2:]])).tolist() == [1, 3, 4]
    assert to_numpy(pa.chunked_array([], kind)).tolist() == [] and to_numpy(whole[:0]).tolist() == []


@given(
    counts=st.lists(st.integers(2, 5), min_size=1, max_size=30), table=st.sampled_from(["stats", "samples", "units"])
)
def test_many_batches_lie_where_each_of_them_lies(counts: list[int], table: str) -> None:
    messages = [batch_message(table, columns_of(table, count)) for count in counts]
    data = memoryview(schema_message(table) + b"".join(messages))
    ends = np.cumsum([len(schema_message(table)), *map(len, messages)]).tolist()
    starts = [0, *ends[1:-1]]
    found = layout.batches_in(data, starts, lambda size, start: bytes(data[start : start + size]))
    for one, start in zip(found, starts, strict=True):
        alone = layout.batch_in(data, start)
        assert (one.start, one.end, one.rows, one.buffers.tolist()) == (*alone[:3], alone.buffers.tolist())


def test_a_damaged_batch_among_many_is_noticed() -> None:
    message = batch_message("stats", columns_of("stats", 4))
    starts = [n * len(message) for n in range(20)]
    for place in range(0, 600, 7):
        data = bytearray(message * 20)
        data[starts[12] + place] ^= 0xFF
        view = memoryview(bytes(data))
        try:
            alone = layout.batch_in(view, starts[12])
        except ValueError:
            with pytest.raises(ValueError):
                layout.batches_in(view, starts, lambda size, start, view=view: bytes(view[start : start + size]))
            continue
        found = layout.batches_in(view, starts, lambda size, start, view=view: bytes(view[start : start + size]))
        assert found[12].rows == alone.rows and found[12].buffers.tolist() == alone.buffers.tolist()
