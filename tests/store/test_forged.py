"""Forged recordings, with checksums that are right: a named error, or values; never a crash.

A recording is opened by people who did not make it. Whatever stands in a file, everything that one can ask of a
recording is answered, or refused by an EndoscopeError; what is damaged is named.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from endoscope.errors import DamageWarning, EndoscopeError
from endoscope.query import bulk, one_sample, presence
from endoscope.query.catalog import Recordings
from endoscope.query.recording import Recording
from endoscope.schema.recording import TABLES, GapRecord, TimesRecord
from endoscope.store.sealed import seal
from endoscope.store.writer import TrialWriter
from tests.store.forging import read_journal, replace_file, reseal, rewrite, write_journal
from tests.store.made_up import step_record


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial with something in every file."""
    writer = TrialWriter.create(tmp_path_factory.mktemp("original"), "trial", config={"lr": 0.1})
    writer.write_modules({"modules": []})
    for number in range(4):
        graph = {"nodes": [{"node": "layer.0"}], "edges": [[0, 0, ["0"]]]}
        writer.write_step(step_record(writer, number, graph=graph, categories=["a", "b"]))
        writer.write_note(number, 0.0, "a note")
        writer.write_times(TimesRecord(number, "train", 0, 1, 0.4, 0.1, 0.1, 0.1, 0.1, 0.4, 10**6))
        writer.write_gap(number, 0.0, GapRecord("layer.0", "value", "a reason"))
    writer.close()
    return writer.path


@pytest.fixture
def trial(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "trial")
    return tmp_path / "trial"


def questions(recording: Recording) -> Iterator[Callable[[], Any]]:
    """Everything that Python, the page and the command line ask."""
    for name in ("name", "created", "versions", "config", "closed", "updated", "steps", "superseded", "types", "nodes",
                 "losses", "notes", "gaps", "problems", "modules"):  # fmt: skip
        yield lambda name=name: getattr(recording, name)
    yield lambda: repr(recording)
    yield lambda: dict(recording.metrics)
    for table in TABLES:
        yield lambda table=table: recording.to_arrow(table).to_pylist()
    yield lambda: recording.sql("select * from samples").rows
    for node in ("layer.0", "layer.1.weight"):
        yield lambda node=node: recording.tensors_of(node)
        for options in ({}, {"sample": 1}, {"unit": 1}, {"unit": (1,)}):
            yield lambda node=node, options=options: recording.series(node, "std", **options)
        for step in range(4):
            for what in ("statistics", "histogram", "samples", "units", "tensor"):
                yield lambda node=node, what=what, step=step: getattr(recording, what)(node, step)
            yield lambda node=node, step=step: recording.tensor(node, step, sample=2)
            yield lambda node=node, step=step: bulk.tensor(recording, bulk.Which(node), step)
            yield lambda node=node, step=step: recording.spectrum(node, step)
        yield lambda node=node: bulk.histograms(recording, bulk.Which(node))
    for step in range(4):
        yield lambda step=step: recording.graph(step)
        yield lambda step=step: bulk.step_table(recording, bulk.step_at(recording, step))
        yield lambda step=step: one_sample.sample_table(recording, bulk.step_at(recording, step), 1)
        yield lambda step=step: (bulk.step_at(recording, step).config, bulk.step_at(recording, step).extra)
    yield lambda: bulk.matrix(recording, "value", "mean")
    yield lambda: bulk.prepare(recording)
    yield lambda: presence.presence(recording)
    yield lambda: recording.verify()


def ask_everything(trial: Path) -> list[str]:
    """What was said instead of answers. Anything but an EndoscopeError fails the test."""
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        try:
            recording = Recording(trial)
        except EndoscopeError as error:
            return [str(error)]
        for ask in questions(recording):
            try:
                ask()
            except EndoscopeError as error:
                said.append(str(error))
        said += map(str, recording.problems)
        try:
            Recordings(trial.parent)[trial.name]
            writer = TrialWriter.create(trial.parent, trial.name, resume=True, max_bytes=200_000)
            writer.write_step(step_record(writer, writer.next_step))
            writer.close()
        except EndoscopeError as error:
            said.append(str(error))
    return said


def test_nothing_is_said_of_a_recording_that_is_right(trial: Path) -> None:
    said = ask_everything(trial)
    assert all("damaged" not in text and "cannot" not in text for text in said), said


ODD: list[Any] = [None, True, -1, 0, 2**31, 2**63, 10**400, 1.5, float("nan"), "", "../../x", "x" * 300, [], [[]], {},
                  {"a": 1}, [-1, 2], ["x"], "\ud800"]  # fmt: skip


def places_in(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, value in items:
        yield from places_in(value, (*path, name))


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    found = json.loads(json.dumps(document))
    inner = found
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return found


def test_every_member_of_the_journal_replaced(original: Path, tmp_path: Path) -> None:
    lines = read_journal(original / "rank-0")
    chance = random.Random(0)
    places = [(n, place) for n, line in enumerate(lines) for place in places_in(line) if place and place != ("crc",)]
    chosen = chance.sample(places, min(40, len(places)))
    for number, (line, place) in enumerate(chosen):
        trial = tmp_path / str(number) / "trial"
        shutil.copytree(original, trial)
        changed = [put(one, place, chance.choice(ODD)) if n == line else one for n, one in enumerate(lines)]
        write_journal(trial / "rank-0", changed)
        ask_everything(trial)
        shutil.rmtree(trial)


@pytest.mark.parametrize("file", ["trial.json", "rank-0/modules.json"])
def test_every_member_of_a_sealed_file_replaced(original: Path, tmp_path: Path, file: str) -> None:
    document = json.loads((original / file).read_text())
    del document["crc"]
    chance = random.Random(1)
    places = [place for place in places_in(document) if place]
    for number, value in enumerate(ODD):
        trial = tmp_path / str(number) / "trial"
        shutil.copytree(original, trial)
        (trial / file).write_bytes(seal(put(document, chance.choice(places), value)))
        ask_everything(trial)
        for text in (b"", b"[]", b"null", b"{" * 100_000, b'{"format": 1e999}', json.dumps(value).encode()):
            (trial / file).write_bytes(text)
            Recording(trial)
        shutil.rmtree(trial)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"null", b'"x"', b"{", b"\xff", b"[" * 100_000, b'{"nodes":1,"edges":"x"}']
)
def test_a_graph_that_is_none(trial: Path, text: bytes) -> None:
    replace_file(trial / "rank-0", "graphs/abc.json", text)
    assert any("graphs/abc.json" in one for one in ask_everything(trial))


def raw_head(document: Any, body: bytes = b"") -> bytes:
    text = json.dumps(document).encode()
    return struct.pack("<Q", len(text)) + text + body


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
BAD_RAW = {
    "nothing": b"",
    "a huge head": b"\xff" * 16,
    "a list": raw_head([]),
    "no number": raw_head({"x": GOOD}, bytes(8)),
    "an unknown kind": raw_head({"0": GOOD | {"dtype": "F4"}}, bytes(8)),
    "too short": raw_head({"0": GOOD}, bytes(4)),
    "a huge shape": raw_head({"0": GOOD | {"shape": [2**40, 2**40]}}, bytes(8)),
    "a negative shape": raw_head({"0": GOOD | {"shape": [-2]}}, bytes(8)),
    "backwards": raw_head({"0": GOOD | {"data_offsets": [8, 0]}}, bytes(8)),
    "samples that are no JSON": raw_head({"__metadata__": {"samples": "{"}, "0": GOOD}, bytes(8)),
    "samples that are no list": raw_head({"__metadata__": {"samples": '{"0": 5}'}, "0": GOOD}, bytes(8)),
    "samples of nothing": raw_head({"__metadata__": {"samples": '{"9": [1]}'}, "0": GOOD}, bytes(8)),
    "too many samples": raw_head({"__metadata__": {"samples": '{"0": [1, 2, 3]}'}, "0": GOOD}, bytes(8)),
    "pairs that are none": raw_head({"__metadata__": {"pairs": "[0]"}, "0": GOOD}, bytes(8)),
    "pairs that are no list": raw_head({"__metadata__": {"pairs": "[[]]"}, "0": GOOD}, bytes(8)),
}


@pytest.mark.parametrize("data", BAD_RAW.values(), ids=BAD_RAW.keys())
def test_raw_values_that_are_none(trial: Path, data: bytes) -> None:
    replace_file(trial / "rank-0", "raw/2-2.safetensors", data)
    assert any("raw/2-2.safetensors" in one for one in ask_everything(trial))


def test_segments_with_flipped_bytes(original: Path, tmp_path: Path) -> None:
    chance = random.Random(2)
    files = sorted(path.name for path in (original / "rank-0").glob("*.arrow"))
    for number in range(4 * len(files)):
        trial = tmp_path / str(number) / "trial"
        shutil.copytree(original, trial)
        path = trial / "rank-0" / files[number % len(files)]
        data = bytearray(path.read_bytes())
        for _ in range(chance.choice([1, 1, 3])):
            place = chance.randrange(min(len(data), chance.choice([3000, 10**9])))
            data[place] = chance.choice([0, 0xFF, 0x80, data[place] ^ 1, chance.randrange(256)])
        path.write_bytes(data)
        reseal(trial / "rank-0")
        ask_everything(trial)
        shutil.rmtree(trial)


def test_files_cut_off_at_many_places(original: Path, tmp_path: Path) -> None:
    chance = random.Random(3)
    files = sorted(path.relative_to(original) for path in original.rglob("*") if path.is_file())
    for number in range(3 * len(files)):
        trial = tmp_path / str(number) / "trial"
        shutil.copytree(original, trial)
        path = trial / files[number % len(files)]
        data = path.read_bytes()
        path.write_bytes(data[: chance.choice([0, 1, chance.randrange(len(data)), len(data) - 1])])
        if number % 2:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DamageWarning)
                if path.name != "journal.jsonl":
                    reseal(trial / "rank-0")
        ask_everything(trial)
        shutil.rmtree(trial)


def with_numbers(column: str, value: int) -> Callable[[str, pa.RecordBatch], pa.RecordBatch]:
    """All numbers of a column replaced, also those in lists."""

    def change(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        if column not in batch.schema.names:
            return batch
        place = batch.schema.names.index(column)
        old = batch.column(place)
        is_list = pa.types.is_list(old.type)
        kind = old.type.value_type if is_list else old.type
        info = np.iinfo(kind.to_pandas_dtype())
        many = len(old.values) if is_list else len(old)
        new = pa.array(np.full(many, max(min(value, info.max), info.min), kind.to_pandas_dtype()))
        new = pa.ListArray.from_arrays(old.offsets, new) if is_list else new
        return batch.set_column(place, column, new)

    return change


NUMBERS = "ordinal step key hist_first hist sample unit_shape shape raw_samples batch_dim pass tensors".split()


@pytest.mark.parametrize("value", [-(2**63), -1, 7, 2**31 - 1, 2**63 - 1])
@pytest.mark.parametrize("column", NUMBERS)
def test_numbers_that_are_places(trial: Path, column: str, value: int) -> None:
    rewrite(trial / "rank-0", with_numbers(column, value))
    ask_everything(trial)


@pytest.mark.parametrize("kind", [pa.float16(), pa.list_(pa.string()), pa.null()])
def test_columns_of_other_types(original: Path, tmp_path: Path, kind: pa.DataType) -> None:
    for table, columns in TABLES.items():
        for place, (column, _) in enumerate(columns):
            trial = tmp_path / f"{table}-{column}" / "trial"
            shutil.copytree(original, trial)

            def change(of: str, batch: pa.RecordBatch, table: str = table, place: int = place) -> pa.RecordBatch:
                return batch.set_column(place, columns[place][0], pa.nulls(len(batch), kind)) if of == table else batch

            rewrite(trial / "rank-0", change)
            if place % 3 == 0:
                said = ask_everything(trial)
                assert any(f"{table}-0001.arrow" in one for one in said)
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DamageWarning)
                    assert not Recording(trial).verify()
            shutil.rmtree(trial)


@pytest.mark.parametrize("table", sorted(TABLES))
def test_columns_that_are_missing_or_come_twice(trial: Path, table: str) -> None:
    def change(of: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        first = batch.schema.names[0]
        return batch.add_column(1, first, batch.column(0)) if of == table else batch

    rewrite(trial / "rank-0", change)
    assert any(f"{table}-0001.arrow" in one for one in ask_everything(trial))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "x" * 10_000, '{"origins": 5, "cosines": [1], "spectra": 3}', "../x"]
)
@pytest.mark.parametrize("column", ["config", "extra", "graph", "raw", "type", "node", "role", "of", "dtype", "name"])
def test_texts_that_mean_something(trial: Path, column: str, text: str) -> None:
    def change(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        if column not in batch.schema.names:
            return batch
        return batch.set_column(batch.schema.names.index(column), column, pa.array([text] * len(batch)))

    rewrite(trial / "rank-0", change)
    ask_everything(trial)
