"""The tables of a trace in a file: their columns, and rows to and from Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from endoscope.capture.file.archive import Archive

_INT, _INTS = pa.int64(), pa.list_(pa.int64())
_READS = pa.list_(_INTS)  # each read as a list; -1 in front says that its values lie over each other in memory
_WORD = pa.dictionary(pa.int32(), pa.string())

TABLES: dict[str, dict[str, pa.DataType]] = {
    "nodes": {
        "function": _INT,  # which of `functions` in header.json
        "func": _WORD,  # name of the Python function; null for what is no operation
        "arguments": pa.string(),  # JSON: [positional, by name]
        "reads": _READS,
        "hidden_reads": _READS,  # what an opaque body reads besides; null for most
        "slot": _INT,
        "outputs": _INT,
        "written": _INT,
        "started": _INT,  # nanoseconds of a clock of the process
        "ended": _INT,
        "line": _INT,  # which of `lines` in header.json; -1 for none
        "call": _INT,
        "autocast": _WORD,  # JSON
        "grad": pa.bool_(),
        "kind": _WORD,  # of a source: input, output, parameter, buffer, constant; null for operations
        "name": pa.string(),
        "sequence": pa.bool_(),  # it returned a list or tuple
        "kept": pa.bool_(),
        "learned": pa.bool_(),
        "statement": _INT,  # equal where the same statement ran again; null for what is not in `trace.ops`
        "random_state": _INT,  # which tensor
        "edits": pa.list_(pa.string()),
    },
    "slots": {
        "node": _INT,
        "shape": _INTS,
        "dtype": _WORD,
        "device": _WORD,
        "requires_grad": pa.bool_(),
        "grad_fn": _WORD,
        "elements": _INT,
        "state": pa.int8(),  # 0 kept, 1 not kept, 2 overwritten before it was saved, 3 of a kind that no file holds
        "tensor": _INT,
        "strides": _INTS,  # null: one element behind the other
        "value_shape": _INTS,  # where it is not that of the slot: inside of `vmap` a value has its batch
        "special": pa.string(),  # JSON: what a sparse, nested or quantised tensor consists of
        "gradient": _INT,
        "gradient_strides": _INTS,
        "reason": _WORD,  # for state 3
    },
    "calls": {
        "module": _INT,  # which of `modules` in header.json; null for a function
        "custom": pa.string(),  # name of a custom function; null for a module
        "parent": _INT,
        "pass": _INT,
        "first_node": _INT,
        "last_node": _INT,
        "entered": _INTS,
        "returned": _READS,
        "root": pa.bool_(),
        "line": _INT,
    },
    "tensors": {"crc": pa.uint32()},
}


_MAY_BE_NULL = frozenset(
    """func hidden_reads autocast kind name statement random_state edits grad_fn tensor strides value_shape
    special gradient gradient_strides reason module custom last_node""".split()
)


def to_arrow(name: str, columns: Mapping[str, Sequence[Any]]) -> bytes:
    schema = pa.schema(list(TABLES[name].items()))
    arrays = [pa.array(columns[column], kind) for column, kind in TABLES[name].items()]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return bytes(sink.getvalue())


def from_arrow(archive: Archive, name: str) -> dict[str, list[Any]]:
    """Columns as lists; those that this version does not know are left out."""
    data = archive.read(f"{name}.arrow")
    try:
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        table.validate(full=True)
        for column in TABLES[name]:
            if table[column].null_count and (column not in _MAY_BE_NULL):
                raise ValueError(f"{column} has no value in every row")
        return {column: table[column].to_pylist() for column in TABLES[name]}
    except (pa.ArrowException, ValueError, KeyError, OSError) as error:
        raise archive.damaged(f"{name}.arrow cannot be read ({str(error).partition(chr(10))[0]})") from None


def from_read(read: int | tuple[int, ...]) -> list[int]:
    return [read] if isinstance(read, int) else [-1, *read]


def to_read(stored: Sequence[int]) -> int | tuple[int, ...]:
    return tuple(stored[1:]) if stored[0] == -1 else stored[0]
