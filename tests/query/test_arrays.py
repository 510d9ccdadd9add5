"""Columns for the page: from numpy to Arrow, as small as they can be."""

from __future__ import annotations

import pyarrow as pa
import pytest

from endoscope.query import arrays


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([0, 255]), pa.uint8()),
        (pa.array([0, 256]), pa.uint16()),
        (pa.array([-1, 100]), pa.int8()),
        (pa.array([-1, 255]), pa.int16()),
        (pa.array([2**40]), pa.int64()),
        (pa.array([], pa.int64()), pa.int64()),
        (pa.array([1, None]), pa.int64()),
        (pa.array([1.0, 2.0]), pa.float64()),
        (pa.array([True, False]), pa.bool_()),
        (pa.array(["a", "b"]), pa.string()),
        (pa.array([[1, 2], [], [300]], pa.list_(pa.uint32())), pa.list_(pa.uint16())),
        (pa.array([[70000], [1, 2], [3]], pa.list_(pa.uint32())).slice(1), pa.list_(pa.uint8())),
        (pa.array([[], []], pa.list_(pa.uint32())), pa.list_(pa.uint32())),
        (pa.array([[1], None], pa.list_(pa.uint32())), pa.list_(pa.uint32())),
        (pa.array([[0.5]]), pa.list_(pa.float64())),
    ],
)
def test_whole_numbers_take_as_few_bytes_as_they_can(column: pa.Array, kind: pa.DataType) -> None:
    found = arrays.narrow(column)
    assert found.type == kind
    assert found.to_pylist() == column.to_pylist()
