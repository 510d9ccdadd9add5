"""Values on disk while a model is traced, and runs that end early on purpose."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.errors import BadArgument, CannotReplay, NotATrace, NothingMatches, ValueNotKept
from tests import models
from tests.property.samples import RULES_WITH_TURNS, program_for
from tests.trace_files.equality import differences, same


def test_values_in_a_folder_are_those_in_memory(tmp_path: Path) -> None:
    for seed in range(40):
        program, folder = program_for(seed, RULES_WITH_TURNS), tmp_path / str(seed)
        held = endoscope.trace(program, tuple(one.clone() for one in program.inputs), seed=0)
        given = tuple(one.clone() for one in program.inputs)
        trace = endoscope.trace(program, given, save=endoscope.to_folder(folder), seed=0)
        assert not trace.recorder.kept and [op.label for op in trace.ops] == [op.label for op in held.ops]
        for mine, theirs in zip(trace.everything(), held.everything(), strict=True):
            assert all(map(same, mine.outputs, theirs.outputs)), mine.label
        loaded = endoscope.load(trace.save(tmp_path / "x.trace"))
        assert not differences(trace, loaded)


def test_values_in_a_folder_do_not_change_later(tmp_path: Path) -> None:
    net = models.Mlp()
    trace = endoscope.trace(net, torch.rand(2, 5), save=endoscope.to_folder(tmp_path / "a"))
    before = net.first.weight.detach().clone()
    with torch.no_grad():
        net.first.weight.zero_()
    assert torch.equal(trace["first.weight"].value, before)
    with pytest.raises(CannotReplay, match=r"save=to_folder\('.*a'\)"):
        trace.validate()


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    kept = endoscope.to_folder(tmp_path / "a")
    trace = endoscope.trace(torch.sin, torch.rand(3), save=kept)
    with pytest.raises(BadArgument, match="values of another trace"):
        endoscope.trace(torch.sin, torch.rand(3), save=kept)
    with pytest.raises(BadArgument, match="to_folder"):
        endoscope.trace(torch.sin, torch.rand(3), save=endoscope.to_folder(tmp_path / "b"), gradients=True)
    assert not (tmp_path / "b").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(endoscope.errors.StoreError, match="cannot be written"):
        endoscope.trace(torch.sin, torch.rand(3), save=endoscope.to_folder(tmp_path / "file"))
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(NotATrace, match=r"values\.bin"):
        trace["sin_1"].value
    assert trace["sin_1"].shape == (3,)


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer1, self.layer2, self.layer3 = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.alias = self.layer2
        self.reached: list[str] = []

    def forward(self, x: Tensor) -> Tensor:
        try:
            x = self.layer2(self.layer1(x))
            self.reached.append("2")
        except Exception:
            self.reached.append("caught")
        x = self.layer2(x)
        self.reached.append("2 again")
        return x


@pytest.mark.parametrize(
    ("stop_after", "reached", "linears"),
    [("layer1", [], 1), ("layer2", [], 2), ("alias", [], 2), ("layer2:2", ["2"], 3)],
)
def test_a_run_ends_after_a_module(stop_after: str, reached: list[str], linears: int, tmp_path: Path) -> None:
    net, behind = Steps(), []
    with endoscope.tracing(net, stop_after=stop_after) as trace:
        net(torch.rand(2, 4))
        behind.append(1)
    assert net.reached == reached and not behind
    assert [op.type for op in trace.ops].count("linear") == linears
    assert trace.stopped_after == stop_after and not trace.finished and not trace.complete
    assert f"stopped after {stop_after}" in str(trace)
    assert torch.equal(trace["layer1"].value, nn.functional.linear(trace[0].value, net.layer1.weight, net.layer1.bias))
    assert not differences(trace, endoscope.load(trace.save(tmp_path / "x.trace")))
    assert endoscope.trace(net, torch.rand(2, 4)).complete  # nothing stayed behind


def test_stopping_with_values_that_were_chosen() -> None:
    net = Steps()
    with endoscope.tracing(net, save="layer1", stop_after="layer2") as trace:
        net(torch.rand(2, 4))
    assert [op.label for op in trace.kept] == ["linear_1_1"]
    with pytest.raises(ValueNotKept):
        trace["layer2"].value


def test_a_run_that_does_not_end_there() -> None:
    net = Steps()
    with (
        pytest.raises(NothingMatches, match=r"no such module\. Nearest: layer"),
        endoscope.tracing(net, stop_after="layer9"),
    ):
        raise AssertionError("the block does not begin")
    with pytest.raises(NothingMatches, match="layer3 was never called"), endoscope.tracing(net, stop_after="layer3"):
        net(torch.rand(2, 4))
    with (
        pytest.raises(NothingMatches, match="layer1 was called 1 time in it"),
        endoscope.tracing(net, stop_after="layer1:2"),
    ):
        net(torch.rand(2, 4))
    with pytest.raises(BadArgument, match="address of a module"), endoscope.tracing(stop_after="layer1"):
        pass
    with pytest.raises(ZeroDivisionError), endoscope.tracing(net, stop_after="layer3"):
        raise ZeroDivisionError
