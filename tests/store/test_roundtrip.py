"""What is written is read back: every table, every column, every number."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.query.reading.columns import Columns
from endoscope.schema.recording import TABLES, GapRecord, Key
from endoscope.schema.stats import COUNTS, SAMPLE, UNIT, WHOLE
from endoscope.store.reader import RankReader
from endoscope.store.streams import ListColumn, batch_message, read_batch, schema_of
from endoscope.store.writer import TrialWriter
from tests.store.made_up import keys, measured, raw_array, step_record, write_trial


def read(trial: Path) -> RankReader:
    reader = RankReader(trial)
    reader.refresh()
    assert reader.problems == []
    return reader


def test_statistics_samples_and_units_of_every_step(tmp_path: Path) -> None:
    reader = read(write_trial(tmp_path, steps=[3, 5, 8]))
    for ordinal, number in enumerate([3, 5, 8]):
        expected = measured(3, seed=number)
        stats = reader.batch("stats", ordinal).to_pydict()
        assert stats["step"] == [number] * 3 and stats["key"] == [0, 1, 2] and stats["ordinal"] == [ordinal] * 3
        for name in WHOLE:
            assert stats[name] == expected.whole[name].tolist()
        assert stats["hist_first"] == expected.hist_first.tolist()
        assert [count for row in stats["hist"] for count in row] == expected.hist_values.tolist()
        assert [len(row) for row in stats["hist"]] == np.diff(expected.hist_offsets).tolist()
        samples = reader.batch("samples", ordinal).to_pydict()
        assert samples["key"] == [0, 1] and samples["sample"] == [[0, 1, 2, 3]] * 2
        for name in SAMPLE:
            assert np.array(samples[name]).ravel().tolist() == expected.samples[name].tolist()
        units = reader.batch("units", ordinal).to_pydict()
        assert units["key"] == [0, 1] and units["unit_shape"] == [[3], [3]]
        for name in UNIT:
            assert np.array(units[name]).ravel().tolist() == expected.units[name].tolist()


def test_steps_keys_metrics_notes_gaps(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_note(0, 1.5, "lr halved")
    writer.write_metrics(0, "train", 2.5, {"loss": 3, "acc": np.float32(0.5)})
    writer.write_gap(0, 3.5, GapRecord("layer.9", "value", "meta tensor"))
    writer.write_step(
        step_record(writer, 7, config={"beam": 4}, extra={"cosine": {"a": np.float64(0.25)}}, categories=["cat", "dog"])
    )
    writer.close()
    reader = read(writer.path)
    step = reader.table("steps").to_pylist()[0]
    assert step | {"raw": ""} == {
        "ordinal": 0, "step": 7, "type": "train", "time": 1_700_000_007.0, "why": "every step",
        "recording_seconds": 0.001, "graph": "abc", "raw": "", "raw_samples": [0, 2], "categories": ["cat", "dog"],
        "passes": 1, "tensors": 3, "config": '{"beam":4}', "extra": '{"cosine":{"a":0.25}}',
        "iteration": -1, "skipped": 0,
    }  # fmt: skip
    first = reader.table("keys").to_pylist()[0]
    assert first == {
        "key": 0, "node": "layer.0", "role": "", "pass": 1, "of": "value", "kind": "computed", "shape": [4, 3],
        "dtype": "float32", "batch_dim": 0, "module": "layer.0", "source": "model.py:12",
            "placement": "",
    }  # fmt: skip
    metrics = [(row["step"], row["name"], row["value"]) for row in reader.table("metrics").to_pylist()]
    assert metrics == [(0, "loss", 3.0), (0, "acc", 0.5), (7, "loss", 0.125)]
    assert reader.table("notes").to_pylist() == [{"step": 0, "time": 1.5, "text": "lr halved"}]
    gap = {"step": 0, "node": "layer.9", "of": "value", "reason": "meta tensor", "time": 3.5}
    assert reader.table("gaps").to_pylist() == [gap]


def test_a_key_gets_one_number_for_the_whole_trial(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    assert [writer.key_id(key) for key in keys(3)] == [0, 1, 2]
    assert [writer.key_id(key) for key in reversed(keys(3))] == [2, 1, 0]
    assert writer.key_id(Key("layer.0", shape=(8, 3), batch_dim=0, module="layer.0", source="model.py:12")) == 3
    writer.commit()
    assert read(writer.path).table("keys")["key"].to_pylist() == [0, 1, 2, 3]


def test_what_was_not_measured_becomes_a_gap(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    numbers = measured(3)
    numbers.gaps = [(2, "a meta tensor has no values")]
    writer.write_step(step_record(writer, 4, measured=numbers))
    row = read(writer.path).table("gaps").to_pylist()[0]
    assert (row["step"], row["node"], row["of"]) == (4, "layer.1.weight", "parameter")
    assert row["reason"] == "a meta tensor has no values"


def test_a_metric_that_is_no_number_becomes_a_gap(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_metrics(3, "train", 0.0, {"loss": "low", "acc": 1})
    writer.commit()
    reader = read(writer.path)
    assert reader.table("metrics")["name"].to_pylist() == ["acc"]
    assert "one number" in reader.table("gaps")["reason"].to_pylist()[0]


def test_samples_that_are_not_grouped_by_tensor(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    numbers = measured(3)
    order = np.random.default_rng(0).permutation(len(numbers.sample_request))
    shuffled = measured(3)
    shuffled.sample_request, shuffled.sample_index = numbers.sample_request[order], numbers.sample_index[order]
    shuffled.samples = {name: values[order] for name, values in numbers.samples.items()}
    writer.write_step(step_record(writer, 0, measured=shuffled))
    found = read(writer.path).batch("samples", 0).to_pydict()
    for row, key in enumerate(found["key"]):
        for sample, mean in zip(found["sample"][row], found["mean"][row], strict=True):
            place = np.flatnonzero((numbers.sample_request == key) & (numbers.sample_index == sample))[0]
            assert mean == numbers.samples["mean"][place]


def test_a_step_without_measurements(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_step(step_record(writer, 1, keys=[], measured=None, raw=[], graph=None, graph_hash=""))
    reader = read(writer.path)
    assert reader.table("steps")["step"].to_pylist() == [1]
    assert reader.table("stats").num_rows == 0


def test_the_graph_of_a_hash_is_written_once(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, steps=range(3))
    assert [path.name for path in (trial / "rank-0" / "graphs").iterdir()] == ["abc.json"]
    assert bytes(read(trial).whole("graphs/abc.json") or b"") == b'{"nodes":["layer.0"],"edges":[]}'


def test_modules_and_configuration_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial", config={"lr": 0.1})
    writer.write_modules({"": {"type": "MLP"}})
    writer.write_modules({"": {"type": "GAN"}})
    writer.update_config({"batch": 16})
    from endoscope.store import description

    found, problem = description.read(writer.path)
    assert found["config"] == {"lr": 0.1, "batch": 16} and problem == ""
    assert found["name"] == "trial" and found["format"] == 1 and found["versions"]["numpy"] == np.__version__
    assert read(writer.path).modules() == {"": {"type": "GAN"}}


def test_configuration_that_json_does_not_know(tmp_path: Path) -> None:
    from endoscope.store import description

    config = {"lr": np.float32(0.5), "betas": (0.9, 1), "path": Path("a"), 3: {"x", "y"}, "n": float("nan")}
    found, problem = description.read(TrialWriter.create(tmp_path, "trial", config=config).path)
    assert problem == "" and np.isnan(found["config"].pop("n"))
    assert found["config"] == {"lr": 0.5, "betas": [0.9, 1], "path": "a", "3": ["x", "y"]}


def test_segments_are_begun_anew_when_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("endoscope.store.writer.SEGMENT_BYTES", 8_000)
    trial = write_trial(tmp_path, steps=range(20))
    assert len(list((trial / "rank-0").glob("stats-*.arrow"))) > 3
    reader = read(trial)
    assert [batch.column(1)[0].as_py() for batch in reader.batches("stats")] == list(range(20))
    expected = [measured(3, seed=number).whole["std"][1] for number in range(20)]
    assert Columns(reader, "stats").update().numbers("std", [1]).values.tolist() == expected


def test_segments_are_arrow_streams_that_anybody_can_read(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, steps=range(4))
    for table in TABLES:
        for path in (trial / "rank-0").glob(f"{table}-*.arrow"):
            with pa.memory_map(str(path)) as source:
                found = pa.ipc.open_stream(source).read_all()
            found.validate(full=True)
            assert found.schema == schema_of(table)
            assert found.equals(read(trial).table(table))


TEXT = st.text(max_size=8)
VALUES = {
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "float32": st.floats(width=32),
    "float64": st.floats(),
    "string": TEXT.map(lambda text: text.encode(errors="replace").decode()),
}


def values_of(kind: str) -> st.SearchStrategy:
    return st.lists(VALUES[kind[5:-1]], max_size=5) if kind.startswith("list<") else VALUES[kind]


@given(data=st.data(), table=st.sampled_from(sorted(TABLES)))
def test_any_rows_survive_as_a_message(data: st.DataObject, table: str) -> None:
    rows = data.draw(st.integers(0, 4))
    lists = {name: data.draw(st.lists(values_of(kind), min_size=rows, max_size=rows)) for name, kind in TABLES[table]}
    found = read_batch(batch_message(table, lists), schema_of(table))
    found.validate(full=True)
    expected = pa.RecordBatch.from_pydict(lists, schema=schema_of(table))
    assert str(found.to_pydict()) == str(expected.to_pydict())  # as text, because NaN is not NaN


@given(lengths=st.lists(st.integers(0, 4), max_size=6))
def test_lists_from_values_and_offsets(lengths: list[int]) -> None:
    values = np.arange(sum(lengths), dtype=np.uint32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    rows = len(lengths)
    columns = {name: np.zeros(rows) for name, _ in TABLES["stats"]} | {"hist": ListColumn(values, offsets)}
    found = read_batch(batch_message("stats", columns), schema_of("stats")).to_pydict()["hist"]
    assert found == [part.tolist() for part in np.split(values, offsets[1:-1])] if rows else found == []


def test_counts_may_arrive_as_floats(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    numbers = measured(3)
    numbers.whole = {name: np.asarray(values, np.float64) for name, values in numbers.whole.items()}
    writer.write_step(step_record(writer, 0, measured=numbers))
    found = read(writer.path).batch("stats", 0).to_pydict()
    assert all(found[name] == measured(3).whole[name].tolist() for name in COUNTS)


def test_raw_values_come_back(tmp_path: Path) -> None:
    from endoscope.store.tensors import TensorFile

    reader = read(write_trial(tmp_path, steps=[6]))
    data = reader.whole("raw/6-0.safetensors")
    assert data is not None
    file = TensorFile(reader.folder / "raw/6-0.safetensors", data)
    assert file.samples == {0: [0, 2]} and np.array_equal(file.array(0), raw_array(6))
