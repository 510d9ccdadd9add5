"""Columns become plain lists, as pyarrow would make them."""

import pyarrow as pa
import pytest

from endoscope.store.streams import to_list

COLUMNS = [
    pa.array([1, 2, -3], pa.int32()),
    pa.array([0.5, float("inf")], pa.float64()),
    pa.array([], pa.int64()),
    pa.array(["a", "", "ä€😀"], pa.string()),
    pa.array([["a", "bc"], [], ["d"]], pa.list_(pa.string())),
    pa.array([[1, 2], [], [3]], pa.list_(pa.int32())),
    pa.array([None, "x"], pa.string()),
    pa.array([None, [1]], pa.list_(pa.int32())),
    pa.array([True, False]),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_as_pyarrow_would(column: pa.Array) -> None:
    assert to_list(column) == column.to_pylist()
    assert to_list(column.slice(1)) == column.slice(1).to_pylist()
    chunked = pa.chunked_array([column, column.slice(0, 1)], column.type)
    assert to_list(chunked) == chunked.to_pylist()
