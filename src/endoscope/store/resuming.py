"""What earlier sessions have left in the folder of a rank, for the writer that goes on there.

    look ─► journal, keys, steps ─► Former ─► TrialWriter: begins new segments, appends to the journal
         └► clean: what a crash has left behind and no line of the journal names

Nothing that is part of the recording is changed. Damage costs what is damaged, here as for readers; as long as lines of
the journal are damaged, nothing is removed, because it might be what they told of.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from endoscope.errors import StoreError
from endoscope.schema.recording import NO_STEP, PER_STEP, TABLES, THINNED, Key
from endoscope.store import paths
from endoscope.store.commits.contents import Chunk, Contents
from endoscope.store.files import remove
from endoscope.store.limit.ledger import Ledger
from endoscope.store.reader import RankReader
from endoscope.store.streams import to_list, to_numpy


class Former(NamedTuple):
    """Where to go on."""

    session: int  # the one that begins
    ordinal: int  # of its first recorded step
    next_step: int  # number behind the last step that was recorded or reported
    named: list[Key]  # key number -> key
    contents: Contents
    ledger: Ledger
    half_thinned: list[int]  # ordinals of steps that are gone for readers, but not from all tables


def look(trial: Path, rank: int) -> Former | None:
    """None if nothing was committed there."""
    folder = paths.rank_folder(trial, rank)
    reader = RankReader(trial, rank, quiet=True)
    reader.refresh()
    if reader.lost_lines:
        raise StoreError(
            f"{trial} cannot be resumed: its {paths.JOURNAL} {reader.lost_lines}. Restore the missing files, or record "
            "under another trial name; what is there can still be read."
        )
    if not (folder / paths.JOURNAL).exists() or b"\n" not in (folder / paths.JOURNAL).read_bytes():
        return None
    contents = reader.contents
    is_whole = not reader.problems and not contents.held_back
    if is_whole:
        _clean(folder, contents)
    else:  # only what can be read: for that, all of it has to be
        contents.chunks = {table: [_with_checksum(folder, chunk) for chunk in reader.good(table)] for table in TABLES}
    for table in THINNED:
        contents.chunks[table] = [chunk for chunk in contents.chunks[table] if chunk.ordinal >= 0]
    ledger = _ledger(reader)
    left = {chunk.ordinal for table in THINNED for chunk in contents.chunks[table]} - ledger.steps.keys()
    return Former(
        session=contents.session + 1,
        ordinal=_next_ordinal(reader),
        next_step=_next_step(reader),
        named=_named(reader),
        contents=contents,
        ledger=ledger,
        half_thinned=sorted(left),
    )


def next_step(trial: Path, rank: int, attempt: int) -> int:
    """The number behind the last step that processes before this attempt have recorded or reported."""
    found = [0]
    for earlier in range(attempt):
        reader = RankReader(trial, rank, earlier, quiet=True)
        reader.refresh()
        found.append(_next_step(reader))
    return max(found)


def iteration_before(trial: Path, rank: int, step: int, attempt: int = 0) -> int:
    """The iteration that the trial had reached before a step: that of the last recorded one, and what came behind it.

    What is known of steps that were not recorded is their metrics: a step in which the only optimizer has stepped has a
    learning rate, `lr` or that of its first group. Where several take turns, nothing is added.
    """
    reader = RankReader(trial, rank, attempt, quiet=True)
    reader.refresh()
    steps, metrics = reader.table("steps"), reader.table("metrics")
    if "iteration" not in steps.column_names:  # an older recording
        return -1
    gone = reader.contents.superseded
    rows = zip(*(to_list(steps[name]) for name in ("ordinal", "step", "iteration")), strict=True)
    recorded = {number: iteration for ordinal, number, iteration in rows if ordinal not in gone and number < step}
    last = max(recorded, default=-1)
    iteration = recorded.get(last)
    if iteration is None:  # of no step, or of an older recording that was gone on with
        iteration = -1
    rates = zip(to_list(metrics["step"]), to_list(metrics["name"]), strict=True)
    return iteration + len({number for number, name in rates if last < number < step and name in ("lr", "lr 0")})


def bytes_in(folder: Path) -> int:
    """Of all files in the folder of a rank."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _clean(folder: Path, contents: Contents) -> None:
    """Cut off what was written behind the last commit, and remove files of which the journal does not tell."""
    ends: dict[str, int] = {}
    for chunks in contents.chunks.values():
        for chunk in chunks:
            ends[chunk.file] = max(ends.get(chunk.file, 0), chunk.end)
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        file = path.relative_to(folder).as_posix()
        if file.endswith(paths.UNFINISHED) or (paths.is_data(file) and file not in ends and file not in contents.files):
            remove(path)
        elif path.stat().st_size > ends.get(file, math.inf):
            os.truncate(path, ends[file])


def _with_checksum(folder: Path, chunk: Chunk) -> Chunk:
    if chunk.crc is not None:
        return chunk
    return replace(
        chunk, crc=zlib.crc32((folder / chunk.file).read_bytes()[chunk.start : chunk.end])
    )  # its line is lost


def _ledger(reader: RankReader) -> Ledger:
    contents = reader.contents
    ledger = Ledger(contents)
    table = reader.table("steps")
    rows = zip(*(to_list(table[name]) for name in ("ordinal", "step", "type", "graph")), strict=True)
    described = {ordinal: row for ordinal, *row in rows}
    # A step stays one when its row is damaged, or the journal's line, or both.
    known = {chunk.ordinal for name in THINNED for chunk in contents.chunks[name]}
    for ordinal in sorted(known | contents.step_of.keys() | described.keys()):
        if ordinal not in contents.thinned:
            number, type_, graph = described.get(ordinal, (NO_STEP, "", ""))
            contents.step_of.setdefault(ordinal, number)
            ledger.add(ordinal, type_, graph)
    return ledger


def _next_ordinal(reader: RankReader) -> int:
    contents = reader.contents
    used = [*contents.step_of, *contents.thinned, *(commit.ordinal for commit in contents.held_back)]
    used += [chunk.ordinal for table in THINNED for chunk in contents.chunks[table]]
    lost = len(reader.problems)  # every damaged line may have been that of a step
    return max(used, default=-1) + 1 + lost


def _next_step(reader: RankReader) -> int:
    contents = reader.contents
    recorded = (step for ordinal, step in contents.step_of.items() if ordinal not in contents.superseded)
    reported = to_numpy(reader.table("metrics")["step"])
    return max(max(recorded, default=-1), int(reported.max(initial=-1))) + 1


def _named(reader: RankReader) -> list[Key]:
    """Keys whose names are lost keep their numbers."""
    table = reader.table("keys")
    columns = {name: to_list(table[name]) for name, _ in TABLES["keys"]}
    columns["shape"] = [tuple(shape) for shape in columns["shape"]]
    keys = {number: Key(*fields) for number, *fields in zip(*columns.values(), strict=True)}
    largest = max(keys, default=-1)
    if reader.problems or reader.contents.held_back:
        used: Iterable[int] = (_largest_key(batch) for name in PER_STEP for batch in reader.batches(name))
        largest = max([largest, *used])
    return [keys.get(number, Key(f"lost {number}")) for number in range(largest + 1)]


def _largest_key(batch: object) -> int:
    return int(to_numpy(batch.column(batch.schema.names.index("key"))).max(initial=-1))  # type: ignore[attr-defined]
