"""Numbers: what travels is what the read API says, tensor by tensor."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from endoscope.errors import ValueNotKept
from endoscope.query.recording import Recording
from endoscope.schema.recording import Key, RawValues
from endoscope.schema.stats import SAMPLE, UNIT, WHOLE
from endoscope.server import wire
from endoscope.store.writer import TrialWriter
from tests.query.small_recording import KEYS, STEPS
from tests.server.conftest import table
from tests.store.made_up import step_record

Serve = Callable[..., TestClient]


@pytest.fixture
def recording(runs: Path) -> Recording:
    return Recording(runs / "first")


def columns(row: type, *more: str) -> set[str]:
    return {*typing.get_type_hints(row), *more}


@pytest.mark.parametrize(("ordinal", "number", "type_"), [(0, 0, "train"), (2, 2, "train"), (3, 2, "rare"), (4, 5, "")])
def test_a_step_has_one_row_per_tensor(
    client: TestClient, recording: Recording, ordinal: int, number: int, type_: str
) -> None:
    which = {"type": type_} if type_ else {}
    found = table(client, f"/api/trials/first/steps/{number}", **which)
    assert set(found.column_names) == columns(wire.StepRow, *WHOLE)
    rows = found.to_pylist()
    assert len(rows) == len(STEPS[ordinal][2])
    for row, key in zip(rows, STEPS[ordinal][2], strict=True):
        assert (row["node"], row["role"], row["pass"], row["of"]) == (key.node, key.role, key.pass_, key.of)
        assert tuple(row["shape"]) == key.shape and row["source"] == key.source and row["batch_dim"] == key.batch_dim
        asked = {"of": key.of, "role": key.role, "pass_": key.pass_, **which}
        assert {name: row[name] for name in WHOLE} == recording.statistics(key.node, number, **asked)
        counts = recording.histogram(key.node, number, **asked).counts
        assert counts[row["hist_first"] : row["hist_first"] + len(row["hist"])].tolist() == row["hist"]
    assert [row["raw"] for row in rows] == [n in (0, len(rows) - 1) for n in range(len(rows))]
    facts = json.loads(found.schema.metadata[b"step"])
    assert set(facts) == columns(wire.StepFacts)
    assert facts["ordinal"] == ordinal and facts["rawSamples"] == [1, 3] and facts["config"] == {"beam": ordinal}


@pytest.mark.parametrize(
    "which",
    [
        {"node": "encoder"},
        {"node": "encoder", "pass": 2},
        {"node": "encoder", "of": "gradient:aux", "type": "train"},
        {"node": "sums", "role": "digit 2"},
        {"node": "encoder", "sample": 2},
        {"node": "encoder", "unit": 1},
    ],
)
def test_a_series_has_the_statistics_that_were_asked_for(
    client: TestClient, recording: Recording, which: dict[str, object]
) -> None:
    found = table(client, "/api/trials/first/series", statistics="mean,std", **which)
    assert found.column_names == ["step", "type", "mean", "std"]
    renamed = {"pass_" if name == "pass" else name: value for name, value in which.items()}
    for name in ("mean", "std"):
        expected = recording.series(renamed["node"], name, **{k: v for k, v in renamed.items() if k != "node"})  # type: ignore[arg-type]
        assert found["step"].to_pylist() == expected.steps.tolist()
        assert found["type"].to_pylist() == expected.types.tolist()
        assert found[name].to_pylist() == expected.values.tolist()


@pytest.mark.parametrize("type_", [None, "train", "rare"])
def test_histograms_over_time(client: TestClient, recording: Recording, type_: str | None) -> None:
    which = {"type": type_} if type_ else {}
    found = table(client, "/api/trials/first/histograms", node="encoder", **which)
    assert set(found.column_names) == columns(wire.HistogramRow)
    rows = found.to_pylist()
    assert [row["step"] for row in rows] == [n for n, kind, _ in STEPS if type_ in (None, kind)]
    for row in rows:
        counts = recording.histogram("encoder", row["step"], type=row["type"]).counts
        assert np.flatnonzero(counts).size <= len(row["hist"])
        assert counts[row["hist_first"] : row["hist_first"] + len(row["hist"])].tolist() == row["hist"]


@pytest.mark.parametrize("of", ["value", "gradient:main"])
def test_heat_is_every_tensor_over_all_steps(client: TestClient, recording: Recording, of: str) -> None:
    found = table(client, "/api/trials/first/heat", of=of, statistic="std")
    assert set(found.column_names) == columns(wire.HeatRow)
    assert json.loads(found.schema.metadata[b"ordinals"]) == [0, 1, 2, 3, 4]
    rows = found.to_pylist()
    assert len(rows) == sum(key.of in (("value", "parameter") if of == "value" else (of,)) for key in KEYS) + (
        of == "value"  # one tensor had two shapes, so two keys
    )
    table_of_step = [table(client, f"/api/trials/first/steps/{n}", type=kind).to_pylist() for n, kind, _ in STEPS]
    seen = 0
    for row in rows:
        for ordinal, value in enumerate(row["values"]):
            same = [
                r
                for r in table_of_step[ordinal]
                if all(r[name] == row[name] for name in ("node", "role", "pass", "of"))
            ]
            if not np.isnan(value):
                assert same[0]["std"] == pytest.approx(value, rel=1e-6)
                seen += 1
    assert seen == sum(
        r["of"] in ({of, "parameter"} if of == "value" else {of}) for rows in table_of_step for r in rows
    )


def test_heat_of_one_pass(client: TestClient) -> None:
    found = table(client, "/api/trials/first/heat", **{"statistic": "mean", "pass": 2})
    assert [(row["node"], row["pass"]) for row in found.to_pylist()] == [("encoder", 2)]


def test_heat_follows_a_trial_that_grows(tmp_path: Path, serve: Serve) -> None:
    writer = TrialWriter.create(tmp_path, "live")
    writer.write_step(step_record(writer, 0))
    client = serve(tmp_path)
    assert len(table(client, "/api/trials/live/heat").to_pylist()[0]["values"]) == 1
    writer.write_step(step_record(writer, 1))
    client.app.state.library.refresh()  # type: ignore[attr-defined]
    assert len(table(client, "/api/trials/live/heat").to_pylist()[0]["values"]) == 2
    writer.close()


def test_samples_and_units(client: TestClient, recording: Recording) -> None:
    found = table(client, "/api/trials/first/samples", node="encoder", step=5)
    assert found.column_names == ["sample", *SAMPLE]
    assert found["std"].to_pylist() == recording.samples("encoder", 5)["std"].tolist()
    found = table(client, "/api/trials/first/units", node="encoder", step=5)
    assert found.column_names == list(UNIT) and json.loads(found.schema.metadata[b"shape"]) == [3]
    assert found["abs_max"].to_pylist() == recording.units("encoder", 5)["abs_max"].tolist()


@pytest.mark.parametrize(("number", "type_", "ordinal"), [(2, "train", 2), (2, "rare", 3)])
def test_one_sample_of_all_tensors_of_a_step(
    client: TestClient, recording: Recording, number: int, type_: str, ordinal: int
) -> None:
    found = table(client, f"/api/trials/first/steps/{number}/samples/1", type=type_)
    assert set(found.column_names) == columns(wire.StepSampleRow, *SAMPLE)
    rows = {(row["node"], row["role"], row["pass"], row["of"]): row for row in found.to_pylist()}
    asked = {
        (key.node, key.role, key.pass_, key.of): {"of": key.of, "role": key.role, "pass_": key.pass_, "type": type_}
        for key in STEPS[ordinal][2]
    }
    expected = {}
    for place, which in asked.items():
        try:
            samples = recording.samples(place[0], number, **which)
        except ValueNotKept:  # parameters have no samples
            continue
        at = samples["sample"].tolist().index(1)
        expected[place] = {name: samples[name][at] for name in SAMPLE}
    assert expected
    assert {place: {name: row[name] for name in SAMPLE} for place, row in rows.items()} == expected
    assert table(client, f"/api/trials/first/steps/{number}/samples/10000", type=type_).num_rows == 0


@pytest.mark.parametrize("address", ["steps/2", "steps/2/samples/1"])
def test_names_are_told_once(client: TestClient, address: str) -> None:
    whole = table(client, f"/api/trials/first/{address}", type="train")
    stamp = json.loads(whole.schema.metadata[b"names"])
    names = {"node", "role", "pass", "of", "kind", "shape", "dtype", "batch_dim", "module", "source"}
    rest = table(client, f"/api/trials/first/{address}", type="train", names=stamp)
    assert rest.column_names == [name for name in whole.column_names if name not in names]
    assert rest.equals(whole.select(rest.column_names))
    assert json.loads(rest.schema.metadata[b"names"]) == stamp
    again = table(client, f"/api/trials/first/{address}", type="train", names="others")
    assert again.equals(whole)
    other = table(client, f"/api/trials/first/{address.replace('2', '5', 1)}", names=stamp)  # other tensors
    assert "node" in other.column_names and json.loads(other.schema.metadata[b"names"]) != stamp


def test_raw_values(client: TestClient, recording: Recording) -> None:
    answer = client.get("/api/trials/first/tensor", params={"node": "encoder", "step": 5})
    assert json.loads(answer.headers["x-shape"]) == [2, 3] and json.loads(answer.headers["x-samples"]) == [1, 3]
    values = np.frombuffer(answer.content, "<f4").reshape(2, 3)
    assert np.array_equal(values, recording.tensor("encoder", 5))
    one = client.get("/api/trials/first/tensor", params={"node": "encoder", "step": 5, "sample": 3})
    assert np.array_equal(np.frombuffer(one.content, "<f4"), values[1])
    whole = client.get("/api/trials/first/tensor", params={"node": "encoder.weight", "step": 5})
    assert json.loads(whole.headers["x-samples"]) is None and json.loads(whole.headers["x-shape"]) == [3, 3]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([[1.5, np.nan], [np.inf, -0.0]]), [1.5, np.nan, np.inf, 0.0]),
        (np.array([[3 + 4j, 0j]]), [5.0, 0.0]),
        (np.array([[True, False]]), [1.0, 0.0]),
        (np.zeros((1, 0), np.float32), []),
        (np.array([[1e300]]), [np.inf]),
        (np.arange(600_000, dtype=np.float32).reshape(1, -1), np.arange(600_000)),
    ],
    ids=["float64", "complex", "bool", "empty", "huge", "large"],
)
def test_raw_values_of_all_kinds_travel_as_floats(
    tmp_path: Path, serve: Serve, array: np.ndarray, expected: list[float]
) -> None:
    writer = TrialWriter.create(tmp_path, "odd")
    key = writer.key_id(Key("x", dtype=str(array.dtype), shape=array.shape, batch_dim=0))
    writer.write_step(
        step_record(writer, 0, keys=np.array([key] * 3), raw=[RawValues(key, array, [0, 1][: len(array)])])
    )
    writer.close()
    answer = serve(tmp_path).get("/api/trials/odd/tensor", params={"node": "x", "step": 0})
    assert answer.status_code == 200, answer.text
    np.testing.assert_array_equal(np.frombuffer(answer.content, "<f4"), np.array(expected, np.float32))
    assert json.loads(answer.headers["x-dtype"]) == str(array.dtype)


def test_metrics(client: TestClient) -> None:
    found = table(client, "/api/trials/first/metrics")
    assert set(found.column_names) == columns(wire.MetricRow)
    assert sorted(set(found["name"].to_pylist())) == ["loss", "lr"]
    assert table(client, "/api/trials/first/metrics", names="lr")["value"].to_pylist() == [0.01]
    both = table(client, "/api/trials/first/metrics", names="lr,loss")
    assert both.num_rows == found.num_rows


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("steps/77", 404, "Step 77 was not recorded. Nearest: 2, 5."),
        ("steps/x", 400, "step='x' is no whole number."),
        ("steps/2?type=odd", 404, "No step of type 'odd' was recorded."),
        ("series?statistics=mean", 400, "The address lacks node="),
        ("series?node=encoder", 400, "The address lacks statistics="),
        ("series?node=encoder&statistics=maen", 404, "Did you mean 'mean'?"),
        ("series?node=encodr&statistics=mean", 404, "There is no node 'encodr'"),
        ("series?node=sums&statistics=mean", 404, "Say which: role='digit 1', role='digit 2'."),
        ("histograms?node=encoder&type=odd", 404, "No step of type 'odd' was recorded."),
        ("heat?statistic=nix", 404, "There is no statistic 'nix'"),
        ("heat?of=gradient:nix", 404, "Nothing was recorded of 'gradient:nix'."),
        ("tensor?node=sums&role=digit+1&step=0", 404, "there are no raw values at step 0"),
        ("tensor?node=encoder&step=0&sample=2", 404, "the samples 1, 3 were kept raw, not 2"),
        ("samples?node=encoder", 400, "The address lacks step="),
        ("metrics?names=nix", 404, "There is no metric 'nix'."),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(client: TestClient, address: str, status: int, said: str) -> None:
    answer = client.get(f"/api/trials/first/{address}")
    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text
