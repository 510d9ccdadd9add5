"""Recordings as another version, or somebody who means ill, would have written them: every checksum is right."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from endoscope.store import paths
from endoscope.store.sealed import seal

Change = Callable[[str, pa.RecordBatch], pa.RecordBatch]  # (table, batch) -> what stands in its place


def rewrite(rank: Path, change: Change) -> None:
    """Exchange every record batch of a rank, and tell the journal."""
    lines = [json.loads(line) for line in (rank / paths.JOURNAL).read_text().splitlines()]
    places = {file: _rewrite(rank / file, paths.table_of(file), change) for file in _segments(rank)}
    for line in lines:
        for file, span in line.get("files", {}).items():
            line["files"][file] = places[file][span[0]] if file in places else span
        for file, chunks in line.get("copied", {}).items():
            line["copied"][file] = [
                [*places[file][start], ordinal] for start, _, _, ordinal in chunks if file in places
            ]
    write_journal(rank, lines)


def reseal(rank: Path) -> None:
    """Make checksums right again for files whose chunks have kept their places."""
    lines = read_journal(rank)
    for line in lines:
        for file, span in line.get("files", {}).items():
            if (rank / file).is_file():
                span[2] = zlib.crc32((rank / file).read_bytes()[span[0] : span[1]])
    write_journal(rank, lines)


def replace_file(rank: Path, file: str, data: bytes) -> None:
    """Exchange a file beside the tables, and tell the journal."""
    (rank / file).write_bytes(data)
    lines = read_journal(rank)
    for line in lines:
        if file in line.get("files", {}):
            line["files"][file] = [0, len(data), zlib.crc32(data)]
    write_journal(rank, lines)


def read_journal(rank: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (rank / paths.JOURNAL).read_text().splitlines()]


def write_journal(rank: Path, lines: list[Any]) -> None:
    for line in lines:
        line.pop("crc", None)
    (rank / paths.JOURNAL).write_bytes(b"".join(map(seal, lines)))


def without(*columns: str) -> Change:
    """Leave columns out, wherever they stand."""
    return lambda table, batch: batch.select([name for name in batch.schema.names if name not in columns])


def with_column(table: str, name: str, place: int, values: Callable[[int], pa.Array]) -> Change:
    """Put one more column into a table."""

    def change(of: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.add_column(place, name, values(len(batch))) if of == table else batch

    return change


def _segments(rank: Path) -> list[str]:
    return [path.name for path in rank.glob("*.arrow") if paths.table_of(path.name)]


def _rewrite(path: Path, table: str, change: Change) -> dict[int, list[int]]:
    """Where the chunk that began at a place lies now: [start, end, crc]."""
    source = pa.BufferReader(path.read_bytes())
    schema = pa.ipc.read_schema(source)
    new, places, start = b"", {}, 0
    while source.tell() < source.size():
        batch = change(table, pa.ipc.read_record_batch(pa.ipc.read_message(source), schema))
        head = b"" if new else batch.schema.serialize().to_pybytes()
        chunk = head + batch.serialize().to_pybytes()
        places[start] = [len(new), len(new) + len(chunk), zlib.crc32(chunk)]
        new, start = new + chunk, source.tell()
    path.write_bytes(new)
    return places
