"""What the page of a trace is told, address by address."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from starlette.testclient import TestClient

import endoscope
from endoscope.capture.views.result import Trace
from endoscope.server.security import Access
from endoscope.server.traces.app import create
from tests.server.conftest import HOME
from tests.server.pictures import read
from tests.server.traces import nets

Ask = Callable[..., Any]


def client_of(trace: Trace, access: Access | None = None) -> TestClient:
    return TestClient(create(trace, access), base_url=HOME)


@pytest.fixture
def trace() -> Trace:
    return nets.loop()


@pytest.fixture
def ask(trace: Trace) -> Ask:
    client = client_of(trace)

    def asked(address: str, status: int = 200, **params: Any) -> Any:
        answer = client.get(f"/api/{address}", params=params)
        assert answer.status_code == status, answer.text
        kind = answer.headers["content-type"]
        if kind.startswith("application/json"):
            return answer.json()
        return pa.ipc.open_stream(answer.content).read_all() if "arrow" in kind else answer

    return asked


def test_a_trace_is_served_and_no_trials(ask: Ask) -> None:
    assert ask("catalog")["trials"] == [] and ask("catalog")["trace"] == "Loop"
    facts = ask("trace")
    assert facts["operations"] == 15 and facts["passes"] == 3 and facts["complete"] and not facts["gradients"]
    assert facts["loops"][0]["passes"] == 3
    (decision,) = facts["decisions"]
    assert decision["kind"] == "if" and decision["branch"] == "then" and decision["value"] == "True"
    assert decision["text"] == "x.sum() > -1e9" and len(decision["ops"]) == 1
    assert ask("trial", 404)["kind"] == "NotFound"


def test_what_could_not_be_seen_is_told() -> None:
    def leaves(x: torch.Tensor) -> torch.Tensor:
        return x * x.sum().item()

    facts = client_of(endoscope.trace(leaves, torch.ones(3))).get("/api/trace").json()
    assert not facts["complete"] and "item()" in facts["warnings"][0]["text"]
    assert "test_routes.py" in facts["warnings"][0]["source"]


@pytest.mark.parametrize("rolled", ["", "1"])
def test_graph_and_picture_are_of_the_same_tensors(ask: Ask, rolled: str) -> None:
    graph = ask("trace/graph", rolled=rolled)
    picture = read(ask("trace/picture", rolled=rolled).content)
    assert picture["head"]["tensors"] == len(graph["label"])
    assert len(graph["edges"]) % 2 == 0 and max(graph["edges"]) < len(graph["label"])
    passes = {name: sorted(n for other, n in zip(graph["node"], graph["passNumber"], strict=True) if other == name)
              for name in graph["node"]}  # fmt: skip
    assert (max(map(len, passes.values())) == 3) == bool(rolled)
    assert all(own == list(range(1, len(own) + 1)) for own in passes.values())


def test_modules_open_by_their_addresses_and_by_a_kept_name(trace: Trace) -> None:
    client = client_of(trace)
    assert read(client.get("/api/trace/picture", params={"open": "cell:1,out"}).content)["head"]["opened"] == [
        "cell:1",
        "out",
    ]
    name = client.put("/api/trace/opened", json=["cell:1"]).json()["name"]
    kept = read(client.get("/api/trace/picture", params={"open": f"@{name}"}).content)
    assert kept["head"]["opened"] == ["cell:1"]
    lost = client.get("/api/trace/picture", params={"open": "@nobody"})
    assert lost.status_code == 400 and "nobody" in lost.json()["error"]
    assert client.put("/api/trace/opened", json=[1]).status_code == 400


def test_an_operation_with_its_call_and_its_neighbours(ask: Ask, trace: Trace) -> None:
    found = ask("trace/op", label=trace["out"].label)
    assert found["function"] == "linear" and found["parents"][1:] == ["out.weight", "out.bias"]
    assert found["arguments"][1:] == ["1: out.weight", "2: out.bias"]
    assert found["outputs"] == [{"shape": [5, 2], "dtype": "float32", "device": "cpu", "bytes": 40, "learns": True}]
    assert found["flops"] == trace["out"].flops and found["modules"] == ["out:1"] and found["left"] == ["out:1"]
    second = ask("trace/op", label="tanh_1_2:2")
    assert (second["layer"], second["passNumber"], second["passes"]) == ("tanh_1_2", 2, 3)
    assert "no operation with the label 'nix'" in ask("trace/op", 404, label="nix")["error"]


def test_the_code_around_an_operation(ask: Ask, trace: Trace) -> None:
    found = ask("trace/code", label=trace["out"].label)
    assert found["file"].endswith("nets.py") and found["problem"] == ""
    assert found["lines"][found["line"] - found["first"]].strip() == "return self.out(x)"
    assert ask("trace/code", label="input_1_0")["problem"] == "No line of your code made input_1_0."


def test_code_that_is_gone_or_was_changed_is_said(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("def run(x):\n    return x + 1\n")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    trace = endoscope.trace(space["run"], torch.ones(2))
    client = client_of(trace)
    ask = {"label": trace["add_1"].label}
    os.utime(file, (0, 0))
    assert client.get("/api/trace/code", params=ask).json()["problem"] == ""
    os.utime(file, (2**31, 2**31))
    changed = client.get("/api/trace/code", params=ask).json()
    assert changed["lines"] and "was changed after the trace was taken" in changed["problem"]
    file.write_text("\n")
    assert "only 1 lines now" in client.get("/api/trace/code", params=ask).json()["problem"]
    file.unlink()
    gone = client.get("/api/trace/code", params=ask).json()
    assert gone["lines"] == [] and "cannot be read here" in gone["problem"]


def test_only_python_files_are_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("one\ntwo\nthree\n")
    space: dict[str, Any] = {}
    exec(compile("def run(x):\n    return x + 1\n", str(secret), "exec"), space)
    trace = endoscope.trace(space["run"], torch.ones(2))
    found = client_of(trace).get("/api/trace/code", params={"label": trace["add_1"].label}).json()
    assert found["lines"] == [] and "only files that end in .py" in found["problem"]


def test_a_value_with_its_statistics_and_its_numbers(ask: Ask, trace: Trace) -> None:
    tensor = trace["out"].value
    row = ask("trace/value", label=trace["out"].label)
    assert row["mean"][0].as_py() == pytest.approx(float(tensor.mean())) and row["count"][0].as_py() == 10
    assert sum(row["hist"][0].as_py()) == 10
    raw = ask("trace/tensor", label=trace["out"].label)
    assert json.loads(raw.headers["X-Shape"]) == json.loads(raw.headers["X-Whole"]) == [5, 2]
    assert np.array_equal(np.frombuffer(raw.content, "<f4").reshape(5, 2), tensor.numpy())


def test_a_value_that_was_not_kept_is_said() -> None:
    trace = nets.loop(save="none")
    answer = client_of(trace).get("/api/trace/value", params={"label": trace["out"].label})
    assert answer.status_code == 404 and "was not kept" in answer.json()["error"]
    heat = pa.ipc.open_stream(
        client_of(trace).get("/api/trace/heat", params={"statistic": "mean"}).content
    ).read_all()  # fmt: skip
    operations = [n for n, node in enumerate(client_of(trace).get("/api/trace/graph").json()["kind"])
                  if node == "computed"]  # fmt: skip
    assert {heat["state"][n].as_py() for n in operations} == {0}


@pytest.mark.parametrize("name", ["seconds", "bytes", "flops", "mean", "std", "nans"])
def test_colours_have_one_number_for_each_node(ask: Ask, trace: Trace, name: str) -> None:
    graph = ask("trace/graph")
    heat = ask("trace/heat", statistic=name)
    place = graph["label"].index(trace["out"].label)
    expected = {
        "seconds": trace["out"].seconds, "bytes": 40, "flops": trace["out"].flops, "nans": 0,
        "mean": float(trace["out"].value.mean()), "std": float(trace["out"].value.std(correction=0)),
    }  # fmt: skip
    assert heat.num_rows == len(graph["label"])
    assert heat["value"][place].as_py() == pytest.approx(expected[name], rel=1e-5)
    assert heat["state"][place].as_py() == 1


def test_colours_of_what_does_not_exist_are_refused(ask: Ask) -> None:
    assert "There are seconds, bytes" in ask("trace/heat", 400, statistic="nix")["error"]


def test_patterns_select_and_wrong_ones_are_explained(ask: Ask) -> None:
    found = ask("trace/select", pattern="type:tanh")
    assert found == {
        "labels": ["tanh_1_2:1", "tanh_1_2:2", "tanh_1_2:3"], "sentence": "3 nodes are selected."
    }  # fmt: skip
    assert "Nearest: type:tanh" in ask("trace/select", pattern="type:tan")["sentence"]
    assert "cannot be read" in ask("trace/select", pattern="type:tanh & (")["sentence"]


def test_everything_on_paths_in_either_direction(ask: Ask, trace: Trace) -> None:
    out = trace["out"].label
    down = ask("trace/path", **{"from": "tanh_1_2:3", "to": out})
    assert down["labels"][0] == "tanh_1_2:3" and down["labels"][-1] == out
    assert down["sentence"].startswith("1 path from tanh_1_2:3 down to")
    assert ask("trace/path", **{"from": out, "to": "tanh_1_2:3"})["labels"] == down["labels"]
    both = ask("trace/path", **{"from": "out.weight", "to": "input_1_0"})
    assert both["labels"] == [] and "neither depends on the other" in both["sentence"]


def test_what_the_page_begins_with_comes_together(trace: Trace) -> None:
    client = client_of(trace)
    assert b'"address":"trace/picture","status":200' in client.get("/api/start").content
    both = client.get("/api/together", params={"ask": ["trace", "trace/op?label=nix"]}).content
    assert b'"status":200' in both and b'"status":404' in both


def test_without_the_token_nothing_of_a_trace_is_told(trace: Trace) -> None:
    client = client_of(trace, Access("127.0.0.1", "right"))
    for address in ("catalog", "trace", "trace/code?label=add_1_3:1", "start", "trace/tensor?label=input_1_0"):
        assert client.get(f"/api/{address}").status_code == 401
    assert client.get("/api/trace", headers={"authorization": "Bearer right"}).status_code == 200
