"""The dependency graph of a recorded step: operations contracted to the recorded tensors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.contract.recording.helpers import (
    batches,
    edges,
    kinds,
    mlp,
    plain_step,
    recorded,
    sgd,
    simple_loop,
    strict_run,
)


class Residual(nn.Module):
    def __init__(self, extra: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.block = nn.Sequential(nn.ReLU(), nn.Linear(6, 6))
        self.last = nn.Linear(6, 3)
        self.register_buffer("scale", torch.full((6,), 2.0))
        self.extra = extra

    def forward(self, x: Any) -> Any:
        hidden = self.first(x)
        hidden = hidden + self.block(hidden) * self.scale
        if self.extra:
            hidden = torch.sigmoid(torch.tanh(hidden))
        return self.last(hidden)


def graph_of(root: Any, model: nn.Module, steps: int = 1, **settings: Any) -> Any:
    optimizer = sgd(model)
    with strict_run(root, **settings) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, steps)
    return recorded(run)


def test_edges_kinds_and_positions(tmp_path: Any) -> None:
    recording = graph_of(tmp_path, Residual())
    found = edges(recording)
    assert found >= {
        ("input", "first"), ("first.weight", "first"), ("first.bias", "first"),
        ("first", "block.0"), ("block.0", "block.1"), ("first", "last"), ("scale", "last"), ("last", "output"),
        ("target", "loss"), ("output", "loss"),
    }  # fmt: skip
    assert ("block", "last") in found or ("block.1", "last") in found
    assert ("input", "last") not in found  # contracted, not closed transitively
    assert ("block.0", "last") not in found
    assert ("last", "first") not in found
    found_kinds = kinds(recording)
    expected = {
        "input": "input", "first.weight": "parameter", "scale": "buffer", "first": "computed", "block.1": "computed",
        "output": "output", "loss": "loss", "target": "target",
    }  # fmt: skip
    assert expected.items() <= found_kinds.items()
    graph = recording.graph(0)
    names = [node["node"] for node in graph["nodes"]]
    uses = {(names[a], names[b]): positions for a, b, positions in graph["edges"]}
    assert uses["input", "first"] == ["0"]
    assert uses["first.weight", "first"] == ["1"]
    assert uses["first.bias", "first"] == ["2"]


def test_nesting_shapes_and_source_lines(tmp_path: Any) -> None:
    nodes = {node["node"]: node for node in graph_of(tmp_path, Residual()).graph(0)["nodes"]}
    assert nodes["block.1"]["modules"] == ["block", "block.1"]
    assert nodes["block.1"]["shape"] == [5, 6]
    assert nodes["first.weight"]["shape"] == [6, 6]
    assert nodes["scale"]["shape"] == [6]
    lines = Path(__file__).read_text().splitlines()
    file, _, line = nodes["first"]["source"].rpartition(":")
    assert file.endswith("test_graph.py")
    assert "self.first(x)" in lines[int(line) - 1]


def test_steps_of_equal_structure_share_one_graph(tmp_path: Any) -> None:
    recording = graph_of(tmp_path, Residual(), steps=4)
    assert len({step.graph for step in recording.steps}) == 1
    assert len([file for file in Path(recording.path).rglob("*") if "graph" in str(file) and file.is_file()]) == 1


def test_the_simplified_graph_decides_about_the_hash(tmp_path: Any) -> None:
    """Operations between recorded tensors and sizes do not count, names and edges do."""
    plain = graph_of(tmp_path, Residual()).steps[0].graph
    assert graph_of(tmp_path, Residual(extra=True)).steps[0].graph == plain
    wide = Residual()
    wide.last = nn.Linear(6, 7)
    assert graph_of(tmp_path, wide).steps[0].graph == plain
    other = Residual()
    other.block = nn.Sequential(nn.ReLU(), nn.Linear(6, 6), nn.Dropout())
    assert graph_of(tmp_path, other).steps[0].graph != plain
    assert graph_of(tmp_path, mlp()).steps[0].graph != plain


def test_the_hash_does_not_depend_on_the_process(tmp_path: Any) -> None:
    """Trials are compared node by node, so it must come from the structure alone."""
    program = (
        "import sys, torch, endoscope\n"
        "sys.path[:0] = sys.argv[2:]\n"
        "from tests.contract.recording.test_graph import Residual, graph_of\n"
        "torch.set_num_threads(1)\n"
        "print(graph_of(sys.argv[1], Residual()).steps[0].graph)\n"
    )
    here = graph_of(tmp_path, Residual()).steps[0].graph
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), *sys.path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "5"},
    )  # fmt: skip
    assert done.stdout.strip() == here, done.stderr


def test_a_structure_that_changes_gives_another_graph(tmp_path: Any) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.last = nn.Linear(6, 6), nn.Linear(6, 3)
            self.times = 1

        def forward(self, x: Any) -> Any:
            for _ in range(self.times):
                x = self.layer(x)
            return self.last(x)

    model = Model()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for times in (1, 3, 1):
            model.times = times
            simple_loop(model, optimizer, 1)
    recording = recorded(run)
    graphs = [step.graph for step in recording.steps]
    assert graphs[0] == graphs[2] != graphs[1]
    assert edges(recording, 1) >= {("layer", "layer:2"), ("layer:2", "layer:3"), ("layer:3", "last")}
    assert edges(recording, 2) >= {("layer", "last")}


def test_integer_and_detached_tensors_have_edges(tmp_path: Any) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(9, 4)
            self.head = nn.Linear(4, 3)
            self.gate = nn.Identity()

        def forward(self, ids: Any) -> Any:
            hidden = self.embed(ids)
            return self.head(hidden) * self.gate(hidden.detach().mean(-1, keepdim=True) > 0)

    model = Model()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        model(torch.randint(0, 9, (5,))).sum().backward()
        optimizer.step()
    assert edges(recorded(run)) >= {("input", "embed"), ("embed", "head"), ("embed", "gate"), ("gate", "output")}


def test_data_and_targets_are_told_apart(tmp_path: Any) -> None:
    """What leads into the model is data, also if it is prepared first; what has a name is not listed twice."""
    model = mlp()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        with run.step() as step:
            step.tag("labels", y, kind="target")
            loss = nn.functional.cross_entropy(model(x * 2), y)
            loss.backward()
            optimizer.step()
        with run.step() as step:
            step.tag("pixels", x, kind="input")
            nn.functional.cross_entropy(model(x), y).backward()
    recording = recorded(run)
    first, second = kinds(recording, 0), kinds(recording, 1)
    assert (first["data"], first["labels"], first["input"]) == ("input", "target", "input")
    assert "target" not in first
    assert ("data", "input") in edges(recording, 0)
    assert ("labels", "loss") in edges(recording, 0)
    assert (second["pixels"], second["target"]) == ("input", "target")
    assert "data" not in second
    assert ("target", "loss") in edges(recording, 1)


def test_only_what_was_chosen_is_in_the_graph(tmp_path: Any) -> None:
    model = Residual()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer, what=["first", "last"])
        simple_loop(model, optimizer, 1)
    recording = recorded(run)
    assert ("first", "last") in edges(recording)
    assert "block.1" not in recording.nodes


def test_several_models_are_joined(tmp_path: Any) -> None:
    encoder, decoder = mlp(6, 4, 2), mlp(2, 4, 6)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    with strict_run(tmp_path) as run:
        run.watch(encoder, optimizer, name="encoder")
        run.watch(decoder, optimizer, name="decoder")
        for x, _ in batches(2):
            optimizer.zero_grad()
            (decoder(encoder(x)) - x).square().mean().backward()
            optimizer.step()
    found = edges(recorded(run), 1)
    into = {a for a, b in found if b in ("decoder.0", "decoder.input")}
    assert into & {"encoder", "encoder.2"}


def test_the_module_tree(tmp_path: Any) -> None:
    model = Residual()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        ((x, y),) = batches(1)
        plain_step(model, optimizer, x, y)
    modules = {entry["address"]: entry for entry in recorded(run).modules["modules"]}
    assert set(modules) == {"", "first", "block", "block.0", "block.1", "last"}
    assert modules["block.1"]["type"] == "Linear"
    assert modules["block.1"]["parameters"] == 42
    assert modules[""]["parameters"] == sum(p.numel() for p in model.parameters())
