"""Parameters and buffers are known from the beginning of a step; the graph says where they were read, if they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import endoscope


class Partly(nn.Module):
    """Reads one of two layers, hands out a parameter as it is, and ties another."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4, bias=False)
        self.tied.weight = self.used.weight
        self.table = Table()
        self.register_buffer("scale", torch.full((4,), 2.0))
        self.register_buffer("never", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.tied(self.used(x) * self.scale) + self.table()


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.ones(4))

    def forward(self) -> Tensor:
        return self.values


def recorded(folder: Path, model: nn.Module, steps: int, between: Any = None) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(folder, trial="trial", when=1, keep=0, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(steps):
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if between is not None:
                between(number)
    return endoscope.open(run.path)


def edges_of(graph: dict[str, Any]) -> set[tuple[str, str]]:
    names = [node["node"] for node in graph["nodes"]]
    return {(names[a], names[b]) for a, b, _ in graph["edges"]}


def test_only_what_was_read_has_a_place(tmp_path: Path) -> None:
    graph = recorded(tmp_path, Partly(), 1).graph(0)
    nodes = {node["node"]: node for node in graph["nodes"]}
    edges = edges_of(graph)
    assert {("used.weight", "used"), ("used.weight", "tied"), ("used.bias", "used")} <= edges
    assert ("table.values", "table") in edges and ("table", "output") in edges
    assert ("scale", "tied") in edges
    assert nodes["used.weight"]["modules"] == ["used"] and nodes["used.weight"]["type"] == "parameter"
    assert nodes["scale"]["modules"] == []
    for name in ("unused.weight", "unused.bias", "never"):
        assert not any(name in edge for edge in edges)
        assert "modules" not in nodes[name] and nodes[name]["shape"]


def test_a_parameter_that_is_exchanged_between_steps(tmp_path: Path) -> None:
    model = Partly()

    def exchange(number: int) -> None:
        if number == 0:
            model.used = nn.Linear(4, 4)
            nn.init.constant_(model.used.weight, 7.0)

    recording = recorded(tmp_path, model, 3, exchange)
    assert recording.series("used.weight", "mean").values[1] == 7.0
    for step in recording.steps:
        assert ("used.weight", "used") in edges_of(recording.graph(step.number))
    assert ("used.weight", "tied") not in edges_of(recording.graph(1))


def test_a_lazy_parameter_is_known_when_it_is_there(tmp_path: Path) -> None:
    model = nn.Sequential(nn.LazyLinear(5), nn.LazyLinear(2))
    recording = recorded(tmp_path, model, 2)
    assert {("0.weight", "0"), ("1.weight", "1")} <= edges_of(recording.graph(1))
