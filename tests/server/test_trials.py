"""Descriptions: the catalog, a trial, graphs, notes, gaps, modules, and what is said when something is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from endoscope.errors import NewerFormat, NotARecording
from endoscope.server import wire
from endoscope.server.library import Library
from endoscope.store.sealed import seal
from endoscope.store.writer import TrialWriter
from tests.query.small_recording import STEPS
from tests.store.made_up import step_record, write_trial

Serve = Callable[..., TestClient]


def test_the_catalog_lists_trials(client: TestClient, runs: Path) -> None:
    found = client.get("/api/catalog").json()
    assert found["root"] == str(runs)
    assert [trial["name"] for trial in found["trials"]] == ["first", "second"]
    first = found["trials"][0]
    assert (first["steps"], first["lastStep"], first["known"]) == (5, 5, True)
    assert first["closed"] and not first["live"] and first["readable"] and first["problems"] == []


def test_a_single_trial_can_be_served(runs: Path, serve: Serve) -> None:
    client = serve(runs / "second")
    assert [trial["name"] for trial in client.get("/api/catalog").json()["trials"]] == ["second"]
    assert client.get("/api/trials/second").json()["name"] == "second"


def test_a_trial_describes_its_steps(client: TestClient) -> None:
    found = client.get("/api/trials/first").json()
    steps = found["steps"]
    assert steps["number"] == [number for number, _, _ in STEPS]
    assert [found["types"][place] for place in steps["type"]] == [type_ for _, type_, _ in STEPS]
    assert [found["graphs"][place] for place in steps["graph"]] == ["h0", "h1", "h1", "h1", "h1"]
    assert [found["reasons"][place] for place in steps["why"]] == ["every(1)"] * 5
    assert steps["raw"] == [True] * 5 and steps["seconds"] == [0.25] * 5
    assert found["losses"] == ["main", "aux"] and found["metrics"] == ["loss", "lr"]
    assert found["config"]["lr"] == 0.1 and found["gaps"] == 1 and found["notes"] == 1


def test_a_graph_is_found_by_its_hash(tmp_path: Path, serve: Serve) -> None:
    writer = TrialWriter.create(tmp_path, "one")
    node = {"node": "layer.0", "role": "", "pass": 1, "kind": "computed", "module": "layer.0", "source": "m.py:1"}
    graph = {"hash": "g1", "nodes": [node, {**node, "node": "loss", "type": "sum"}], "edges": [[0, 1, ["0"]]]}
    writer.write_step(step_record(writer, 0, graph=graph, graph_hash="g1"))
    writer.close()
    found = serve(tmp_path).get("/api/trials/one/graphs/g1").json()
    assert found["edges"] == [[0, 1, ["0"]]] and found["hash"] == "g1"
    assert found["nodes"][0] == {**node, "type": None, "modules": None, "shape": None}
    assert found["nodes"][1]["type"] == "sum"


@pytest.mark.parametrize("hash_", ["nix", "..%2f..%2ftrial", "%2e%2e%2fh1", "h1%00"])
def test_an_unknown_graph_is_a_sentence(client: TestClient, hash_: str) -> None:
    answer = client.get(f"/api/trials/first/graphs/{hash_}")
    assert answer.status_code == 404 and answer.json()["error"].startswith("There is n")


def test_a_hash_that_is_a_path_leads_nowhere(tmp_path: Path, serve: Serve) -> None:
    """A recording that somebody sent may claim anything as the hash of a graph."""
    writer = TrialWriter.create(tmp_path / "runs", "one")
    (tmp_path / "secret.json").write_text('{"nodes": ["secret"]}')
    writer.write_step(step_record(writer, 0, graph_hash="../../../../secret", graph=None))
    writer.close()
    client = serve(tmp_path / "runs")
    assert client.get("/api/trials/one").json()["graphs"] == ["../../../../secret"]
    answer = client.get("/api/trials/one/graphs/..%2F..%2F..%2F..%2Fsecret")
    assert answer.status_code == 404 and "nodes" not in answer.text


def test_notes_and_gaps(client: TestClient) -> None:
    assert client.get("/api/trials/first/notes").json() == [{"step": 0, "time": 5.0, "text": "begin"}]
    assert client.get("/api/trials/first/gaps").json()[0]["reason"] == "sparse"
    assert client.get("/api/trials/second/modules").json() == {"modules": []}


def test_modules(tmp_path: Path, serve: Serve) -> None:
    from torch import nn

    import endoscope

    with endoscope.Run(tmp_path, trial="one") as run:
        run.watch(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    found = serve(tmp_path).get("/api/trials/one/modules").json()["modules"]
    assert all(set(module) == set(wire.Module.__annotations__) for module in found)
    assert [(module["address"], module["type"], module["parameters"]) for module in found] == [
        ("", "Sequential", 9), ("0", "Linear", 9), ("1", "ReLU", 0)
    ]  # fmt: skip
    assert set(found[1]["own"][0]) == set(wire.ModuleParameter.__annotations__)


def test_json_has_no_nan(tmp_path: Path, serve: Serve) -> None:
    TrialWriter.create(tmp_path, "odd", config={"lr": float("nan"), "most": float("inf"), "fine": 1}).close()
    answer = serve(tmp_path).get("/api/trials/odd")
    assert json.loads(answer.text, parse_constant=pytest.fail)["config"] == {"lr": None, "most": None, "fine": 1}


@pytest.mark.parametrize("name", ["frist", "..", "../runs", "%2e%2e", "..%2fruns%2ffirst", "first%2f..%2ffirst"])
def test_only_trials_of_the_folder_can_be_asked_for(client: TestClient, name: str) -> None:
    answer = client.get(f"/api/trials/{name}/notes")
    assert answer.status_code == 404 and answer.json()["error"]


def test_a_misspelt_trial_gets_a_hint(client: TestClient) -> None:
    assert "'frist'" in (said := client.get("/api/trials/frist").json()["error"]) and "Nearest: first" in said


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(NotARecording, match="is empty: nothing has been recorded there yet"):
        Library(tmp_path)


def test_a_folder_without_a_recording(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(NotARecording, match="is no recording"):
        Library(tmp_path)


def test_a_damaged_file_costs_what_is_damaged(tmp_path: Path, serve: Serve) -> None:
    path = write_trial(tmp_path, "hurt", range(5))
    file = path / "rank-0" / "stats-0001.arrow"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    client = serve(tmp_path)
    statuses = [client.get(f"/api/trials/hurt/steps/{number}").status_code for number in range(5)]
    assert sorted(statuses) == [200, 200, 200, 200, 404]
    said = client.get(f"/api/trials/hurt/steps/{statuses.index(404)}").json()["error"]
    assert "Something is damaged: stats-0001.arrow" in said
    assert client.get("/api/trials/hurt/series?node=layer.0&statistics=mean").status_code == 200
    problems = client.get("/api/catalog").json()["trials"][0]["problems"]
    assert len(problems) == 1 and "stats-0001.arrow" in problems[0]


def test_a_newer_recording_is_named_and_the_others_are_shown(runs: Path, serve: Serve) -> None:
    file = runs / "second" / "trial.json"
    file.write_bytes(seal({**json.loads(file.read_text()), "format": 99}))
    found = serve(runs).get("/api/catalog").json()["trials"]
    assert [trial["readable"] for trial in found] == [True, False]
    assert "newer" in found[1]["problems"][0]
    answer = serve(runs).get("/api/trials/second")
    assert answer.status_code == 409 and answer.json()["kind"] == "NewerFormat"
    with pytest.raises(NewerFormat):
        Library(runs / "second")


def test_unknown_addresses_are_sentences(client: TestClient) -> None:
    assert client.get("/api/nix").json()["error"].startswith("There is nothing at /api/nix")
    assert client.post("/api/catalog").status_code == 405


def test_tensors_say_which_steps_have_them(client: TestClient) -> None:
    found = client.get("/api/trials/first").json()["steps"]
    tensors = client.get("/api/trials/first/tensors").json()
    names = list(zip(tensors["node"], tensors["role"], tensors["passes"], tensors["of"], strict=True))
    assert len(set(names)) == len(names), "two shapes of one tensor are one tensor"
    assert tensors["ordinals"] == found["ordinal"]
    for at, (_, _, keys) in zip(tensors["setOf"], STEPS, strict=True):
        there = {names[place] for place in tensors["sets"][at]}
        assert there == {(key.node, key.role, key.pass_, key.of) for key in keys}
    assert len(tensors["sets"]) == 3, "steps with the same tensors share a list"
    batch = dict(zip(names, tensors["batch"], strict=True))
    assert batch["encoder", "", 1, "value"] == 6, "of two shapes the larger"
    assert batch["encoder.weight", "", 1, "parameter"] == 0
