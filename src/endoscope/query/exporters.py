"""Recordings as files that other programs read; one function for each format.

    @exporter("parquet")
    def parquet(recording, folder): …      ─► endoscope export DIR --to parquet

A function gets a `Recording` and a folder that is there; what it writes, and under which names, is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from endoscope.analysis.selecting.patterns import nearest
from endoscope.errors import BadArgument, LookupFailed
from endoscope.query.recording import Recording
from endoscope.schema import plugins
from endoscope.schema.recording import TABLES

Exporter = Callable[[Recording, Path], None]
_known: dict[str, Exporter] = {}


def exporter(name: str) -> Callable[[Exporter], Exporter]:
    """Register a format; the first line of the function's docstring says what is written."""

    def register(function: Exporter) -> Exporter:
        if not callable(function) or not (function.__doc__ or "").strip():
            raise BadArgument(f"The exporter {name!r} has to be a function with a docstring that says what it writes.")
        _known[name] = function
        return function

    return register


def exporters() -> dict[str, Exporter]:
    """Name -> function, also those of plug-ins."""
    plugins.load()
    return dict(_known)


def export(recording: Recording, to: str, folder: Path) -> list[Path]:
    """Write a recording into a folder that is not there yet, or empty; returns the files."""
    known = exporters()
    if to not in known:
        near = ", ".join(repr(name) for name in nearest(to, known, 3))
        raise LookupFailed(f"There is no format {to!r}. Nearest: {near}. There are: {', '.join(sorted(known))}.")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise BadArgument(f"{folder} is not empty, and nothing is overwritten. Type another folder, or empty this one.")
    folder.mkdir(parents=True, exist_ok=True)
    known[to](recording, folder)
    return sorted(path for path in folder.rglob("*") if path.is_file())


@exporter("parquet")
def parquet(recording: Recording, folder: Path) -> None:
    """One Parquet file for each table."""
    import pyarrow.parquet

    for table in TABLES:
        pyarrow.parquet.write_table(recording.to_arrow(table), folder / f"{table}.parquet")


@exporter("csv")
def csv(recording: Recording, folder: Path) -> None:
    """One file of comma-separated values for each table; lists, such as histograms, are left out."""
    import pyarrow.csv

    for table in TABLES:
        found = recording.to_arrow(table)
        plain = [name for name in found.column_names if not pa.types.is_list(found.schema.field(name).type)]
        pyarrow.csv.write_csv(_plain(found.select(plain)), folder / f"{table}.csv")


def _plain(table: pa.Table) -> pa.Table:
    """Texts that are stored once and referred to, as texts."""
    types = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))
