"""Steps that may be decided against are only noted. What is recorded of those that are kept is the same."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.recording import hearing
from endoscope.recording.hearing import StepRecorder
from endoscope.recording.postponed import MOST, Notes
from tests.recording.held_steps import Loop, at_the_end, mlp, recorded
from tests.recording.scenarios import SCENARIOS

TABLES: dict[str, list[str]] = {"steps": ["time", "recording_seconds"], "stats": [], "samples": [], "metrics": ["time"]}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many notes were read, each time that some were."""
    counts: list[int] = []
    read = Notes.read

    def counted(self: Notes) -> None:
        counts.append(len(self.taken))
        read(self)

    monkeypatch.setattr(Notes, "read", counted)
    return counts


def told(path: str) -> dict[str, Any]:
    """Everything that a recording says, but for times."""
    recording = endoscope.open(path)
    tables = {name: recording.sql(f"select * from {name} order by all").to_arrow() for name in TABLES}
    for name, left_out in TABLES.items():
        tables[name] = tables[name].drop_columns(left_out)
    graphs = [recording.graph(step.number) for step in recording.steps]
    extras = [step.extra for step in recording.steps]
    gaps = [(gap.node, gap.of, gap.reason) for gap in recording.gaps]
    return {
        "graphs": graphs,
        "extras": extras,
        "gaps": gaps,
        **{name: repr(t.to_pylist()) for name, t in tables.items()},
    }


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_is_as_if_all_had_been_understood_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[int], name: str
) -> None:
    noted = recorded(tmp_path / "noted", SCENARIOS[name])
    assert reads
    reads.clear()
    monkeypatch.setattr(hearing, "passes_are_heard", lambda: False)
    understood = recorded(tmp_path / "understood", SCENARIOS[name])
    assert not reads
    found, expected = told(noted), told(understood)
    for what in expected:
        assert found[what] == expected[what]


def test_nothing_is_worked_out_for_a_step_that_is_decided_against(tmp_path: Path, reads: list[int]) -> None:
    loop = Loop(tmp_path, mlp())
    recorders: set[int] = set()
    for number in range(6):
        loop.step(lambda step: loop.model(torch.ones(5, 3)).square().mean(), keep=number == 5)
        recorders.add(id(loop.run._captures._blank))
    assert len(reads) == 1  # at the end of the last step
    assert len(recorders) <= 3  # none, one that was used again and again, none
    recording = loop.recording()
    assert [step.number for step in recording.steps] == [5]
    assert "gradient:loss" in {row[0] for row in recording.sql("select distinct of from stats where node = '1'").rows}


def test_everything_is_let_go_with_the_notes(tmp_path: Path) -> None:
    loop, inside = Loop(tmp_path, mlp()), list[weakref.ref[Tensor]]()

    def body(step: Any) -> Tensor:
        out = loop.model(torch.ones(5, 3))
        inside.append(weakref.ref(out))
        return out.square().mean()

    for _ in range(4):
        loop.step(body, keep=False)
        gc.collect()
        assert inside[-1]() is None
    assert not any(parameter._backward_hooks for parameter in loop.model.parameters())


def test_lists_are_read_before_the_user_can_change_them(tmp_path: Path) -> None:
    loop = Loop(tmp_path, mlp())

    def body(step: Any) -> Tensor:
        parts = [loop.model(torch.ones(5, 3))]
        joined = torch.cat(parts)
        parts.append(torch.zeros(1))
        step.tag("joined", joined)
        return joined.square().mean()

    for _ in range(3):
        loop.step(body, keep=True)
    graph = loop.recording().graph(2)
    names = [node["node"] for node in graph["nodes"]]
    above = {names[parent] for parent, child, _ in graph["edges"] if names[child] == "joined"}
    assert above == {"output"}


def test_a_value_is_what_it_was_before_it_was_overwritten(tmp_path: Path) -> None:
    loop = Loop(tmp_path, mlp(), keep=5)
    values: list[Tensor] = []

    def body(step: Any) -> Tensor:
        out = loop.model(torch.ones(5, 3))
        values.append(out.detach().clone())
        (out * 1).view(-1)[0:1].add_(0)
        return out.mul_(2).mean()

    for _ in range(3):
        loop.step(body, keep=True)
    recording = loop.recording()
    for number, value in enumerate(values):
        assert torch.equal(torch.from_numpy(recording.tensor("output", number).copy()), value)
        assert recording.series("output", "mean", of="gradient:loss").values[number] == pytest.approx(0.2)


def test_a_module_that_raises_is_over(tmp_path: Path) -> None:
    model = mlp()
    loop, raises = Loop(tmp_path, model), [False]

    class Failing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if raises[0]:
                raise ValueError("as told")
            return x * 1

    model.append(Failing())
    for number in range(4):
        raises[0] = number == 2

        def body(step: Any) -> Tensor:
            try:
                return model(torch.ones(5, 3)).sum()
            except ValueError:
                return model[:3](torch.ones(5, 3)).sum()

        loop.step(body, keep=True)
    recording = loop.recording()
    assert len(recording.steps) == 4 and not recording.gaps
    assert [node["pass"] for node in recording.graph(2)["nodes"] if node["node"] == "2"] == [1, 2]


def test_a_parameter_that_moves_is_found_where_it_is(tmp_path: Path) -> None:
    loop = Loop(tmp_path, mlp())
    for number in range(6):
        if number == 4:
            loop.model[0].weight.data = loop.model[0].weight.data.clone() * 0 + 3
        loop.step(lambda step: loop.model(torch.ones(5, 3)).sum(), keep=number >= 4)
    assert loop.recording().series("0.weight", "mean", of="parameter").values[0] == 3.0


def test_few_tensors_are_held_that_training_has_let_go_of(tmp_path: Path) -> None:
    loop, dead = Loop(tmp_path, mlp()), list[bool]()

    def body(step: Any) -> Tensor:
        out = loop.model(torch.ones(5, 3))
        first = out.detach() + 1
        gone, other = weakref.ref(first), first
        del first
        for _ in range(2 * MOST):
            other = other.detach() * 0.5
        dead.append(gone() is None)
        return out.sum() + other.sum() * 0

    for _ in range(3):
        loop.step(body, keep=False)
    assert dead == [True] * 3


def test_the_line_of_a_call_is_that_of_the_user(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 2))

        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            out: Tensor = self.b(x)
            return out

    loop = Loop(tmp_path, Net())
    for _ in range(3):
        loop.step(lambda step: loop.model(torch.ones(5, 3)).sum(), keep=True)
    recording = loop.recording()
    lines = [
        {n["node"]: n["source"] for n in recording.graph(s)["nodes"] if n["kind"] != "parameter"} for s in range(3)
    ]
    assert lines[0] == lines[1] == lines[2]
    assert lines[0]["b.0"] == lines[0]["b.1"] != lines[0]["a"]
    assert "test_postponed" in lines[0]["a"]


def test_a_failure_while_notes_are_read_does_not_reach_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(watch: Any, steps: int) -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watch(model, optimizer)
        for number in range(steps):
            if number == 2:
                monkeypatch.setattr(StepRecorder, "known_was_called", fail)
            model(torch.ones(5, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    def fail(*_: Any) -> None:
        raise ArithmeticError("deliberately broken")

    with pytest.warns(endoscope.errors.RecordingWarning, match="deliberately broken"):
        path = recorded(tmp_path, train, strict=False)
    assert endoscope.open(path).verify()


def test_an_error_of_a_known_module_is_raised_once(tmp_path: Path) -> None:
    loop = Loop(tmp_path, mlp())
    for _ in range(3):
        loop.step(lambda step: loop.model(torch.ones(5, 3)).sum(), keep=True)

    def body(step: Any) -> Tensor:
        with pytest.raises(TypeError):
            loop.model[0](object())
        with pytest.raises(RuntimeError):
            loop.model(torch.ones(5, 2))
        return loop.model(torch.ones(5, 3)).sum()

    loop.step(body, keep=True)
    recording = loop.recording()
    assert len(recording.steps) == 4 and not recording.gaps


def test_parts_without_gradients_are_no_hindrance(tmp_path: Path) -> None:
    loop = Loop(tmp_path, mlp())

    def body(step: Any) -> Tensor:
        with torch.no_grad():
            loop.model(torch.ones(5, 3))
        with torch.inference_mode():
            loop.model(torch.ones(5, 3))
        return loop.model(torch.ones(5, 3)).sum()

    for _ in range(4):
        loop.step(body, keep=True)
    recording = loop.recording()
    assert not recording.gaps
    counts = recording.sql("select pass, of, count(*) from stats where node = '1' group by all order by all").rows
    assert counts == [(1, "value", 4), (2, "value", 4), (3, "gradient:loss", 4), (3, "value", 4)]


def test_an_input_that_is_overwritten_unheard_is_a_gap(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.last(x + 1)
            return out

    loop, table = Loop(tmp_path, Net()), nn.Parameter(torch.zeros(5, 3))
    loop.optimizer.add_param_group({"params": [table]})
    for _ in range(3):
        loop.step(lambda step: loop.model(table.detach()).sum() + table.sum(), keep=True)
    recording = loop.recording()
    assert {gap.step for gap in recording.gaps if gap.node == "input"} == {0, 1, 2}


def test_a_pass_that_ends_in_evaluation_mode_is_one_of_training(tmp_path: Path) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="t", when=at_the_end, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            both = model(torch.ones(5, 3)) + model(torch.ones(5, 3))
            model.eval()
            both.sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            model.train()
    assert [step.passes for step in endoscope.open(run.path).steps] == [2, 2, 2]
    assert len({step.tensors for step in endoscope.open(run.path).steps}) == 1


def test_a_step_without_an_update_keeps_nothing_alive(tmp_path: Path) -> None:
    model, results = mlp(), list[weakref.ref[Tensor]]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="t", when=lambda info: info.metrics.get("loss", 0) > 0, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(8):
            optimizer.zero_grad()
            out = model(torch.ones(5, 3))
            results.append(weakref.ref(out))
            out.sum().backward()
            del out
            if number % 2:
                optimizer.step()
    gc.collect()
    assert not any(result() is not None for result in results)


@pytest.mark.parametrize("keep", [4, 0])  # noted, and heard at once
def test_edits_are_applied_inside_of_a_recorded_step(tmp_path: Path, keep: int) -> None:
    """Operations of modules that are known are not heard, but an edit has to find them."""
    loop = Loop(tmp_path, mlp(), keep=keep)
    seen = []

    def body(step: Any) -> Tensor:
        with endoscope.editing(loop.model, {"2": endoscope.edits.zero()} if step.number == 2 else {}):
            out: Tensor = loop.model(torch.ones(5, 3))
        seen.append(bool((out == 0).all()))
        return out.square().mean()

    for _ in range(4):
        loop.step(body, keep=True)
    recording = loop.recording()
    assert seen == [False, False, True, False]
    assert recording.series("2", "abs_mean", of="value").values[2] == 0
    plain, edited = recording.graph(1), recording.graph(2)
    assert [(node["node"], node["modules"]) for node in edited["nodes"]] == [
        (node["node"], node["modules"]) for node in plain["nodes"]
    ]
    assert [edge[:2] for edge in edited["edges"]] == [edge[:2] for edge in plain["edges"]]


def test_torchs_own_tracer_sees_the_modules_of_a_noted_step(tmp_path: Path) -> None:
    loop, calls = Loop(tmp_path, mlp()), []

    def body(step: Any) -> Tensor:
        graph = torch.jit.trace(loop.model, torch.ones(5, 3), check_trace=False).graph
        calls.append(str(graph).count("CallMethod"))
        out: Tensor = loop.model(torch.ones(5, 3))
        return out.square().mean()

    for _ in range(4):
        loop.step(body, keep=False)
    assert calls == [3] * 4


def test_a_model_that_is_watched_later(tmp_path: Path) -> None:
    loop, second = Loop(tmp_path, mlp()), nn.Linear(2, 2)

    def body(step: Any) -> Tensor:
        out: Tensor = second(loop.model(torch.ones(5, 3)))
        return out.square().mean()

    for number in range(5):
        if number == 2:
            loop.run.watch(second, name="second")
        loop.step(body, keep=True)
    steps = loop.recording().series("second.weight", "mean", of="parameter").steps
    assert steps.tolist() == [2, 3, 4]
