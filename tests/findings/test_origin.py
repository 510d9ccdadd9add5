"""`endoscope.origin` and `endoscope.changes` on recordings, `endoscope origin`, and what they say to bad questions."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.cli import main
from endoscope.errors import BadArgument, CannotReplay, LookupFailed
from endoscope.schema.origin import Operand, Origin
from tests.findings.runs import blobs, classifier, curve, train


class LogOfInput(nn.Module):
    """Two recorded layers with a logarithm between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        h = h + torch.log(x[:, :1].abs())
        return self.second(h)


def with_zero(step: int) -> tuple[Tensor, Tensor]:
    inputs, labels = blobs(step)
    if step == 9:
        inputs[11, 0] = 0.0
    return inputs, labels


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return train(tmp_path_factory.mktemp("broken"), LogOfInput(), batches=with_zero, steps=12)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return train(tmp_path_factory.mktemp("healthy"), classifier(), steps=40)


# ---- non-finite -----------------------------------------------------------------------------------


def test_the_operation_between_two_nodes_is_named(broken: Path) -> None:
    found = endoscope.origin(broken)[0]
    assert (found.operation, found.step, found.samples, found.node) == ("log", 9, (11,), "second")
    assert found.exact and found.value == -math.inf and found.inputs[0].at == 0.0
    assert found == endoscope.origin(endoscope.open(broken), step=9)[0]


def test_the_check_says_the_same(broken: Path) -> None:
    finding = endoscope.diagnose(broken, checks=["nonfinite"])[0]
    assert finding.node == "second" and finding.samples == (11,)
    assert "log made -inf of sample 11" in finding.detail
    assert finding.source == endoscope.origin(broken)[0].source


def test_later_steps_have_it_from_the_parameters(broken: Path) -> None:
    found = endoscope.origin(broken, step=10)
    assert {one.of for one in found} == {"parameter"}


def test_nothing_is_wrong(healthy: Path) -> None:
    assert endoscope.origin(healthy) == []
    assert endoscope.origin(healthy, step=30, sample=3) == []
    assert endoscope.changes(healthy) == []


def test_an_origin_survives_json() -> None:
    one = Origin(
        "nonfinite", "value", "a", "log", samples=(3,), value=-math.inf, path=("a", "b"),
        inputs=(Operand("x", "0", (2, 3), 0.0, 1.5, 0, 0.0), Operand("y", "1", (), math.nan, math.nan, 2, math.nan)),
    )  # fmt: skip
    again = Origin.from_dict(json.loads(json.dumps(one.to_dict(), allow_nan=False)))
    assert str(again) == str(one) and again.inputs[0] == one.inputs[0] and again.value == one.value
    assert Origin.from_dict({**one.to_dict(), "of tomorrow": 1}).node == "a"


# ---- outliers and shifts --------------------------------------------------------------------------


def test_an_unusual_sample_and_an_unusual_step(tmp_path: Path) -> None:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        if step == 20:
            inputs[5] *= 40
        return inputs, labels

    path = train(tmp_path, classifier(), batches=batches)
    sample = endoscope.origin(path, "output", step=20, sample=5)
    assert [(one.sort, one.node, one.samples, one.step) for one in sample] == [("outlier", "input", (5,), 20)]
    assert sample[0].path[0] == "input" and sample[0].path[-1] == "output"
    assert endoscope.origin(path, step=20, sample=6) == []
    whole = endoscope.origin(path, "output")
    assert [(one.node, one.step, one.samples) for one in whole] == [("input", 20, ())]


def test_a_shift_begins_where_it_begins(tmp_path: Path) -> None:
    model = classifier(nn.Tanh())

    def before(step: int) -> None:
        if step == 25:
            with torch.no_grad():
                model[2].weight *= 6

    path = train(tmp_path, model, steps=50, before=before, optimizer=torch.optim.SGD(model.parameters(), lr=1e-4))
    shift = endoscope.changes(path)[0]
    assert shift.step == 25 and shift.nodes[0] == "2" and "0" not in shift.nodes
    assert shift.first.ratio == pytest.approx(6, rel=0.2)
    weights = endoscope.changes(path, of="parameter", statistic="norm")
    assert [one.first.node for one in weights] == ["2.weight"]
    assert endoscope.changes(path, "0") == []
    assert json.loads(json.dumps(shift.to_dict()))["step"] == 25
    assert "went from" in str(shift)


def test_an_unusual_gradient_begins_at_the_loss(tmp_path: Path) -> None:
    steps = iter(range(100))

    def loss(out: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(out, target) * (500 if next(steps) == 15 else 1)

    model = classifier()
    path = train(tmp_path, model, loss=loss, optimizer=torch.optim.SGD(model.parameters(), lr=1e-4))
    found = endoscope.origin(path, "0.weight", step=15, of="gradient:loss")
    assert [(one.node, one.of, one.path[-1]) for one in found] == [("output", "gradient:loss", "0.weight")]


def test_a_metric_changes(tmp_path: Path) -> None:
    path = curve(tmp_path, [(1 if step < 40 else 3) + 0.1 * math.sin(7 * step) for step in range(80)])
    shift = endoscope.changes(path, of="metric")[0]
    assert (shift.step, shift.nodes) == (40, ("loss",))
    assert endoscope.changes(path) == []


# ---- the command ----------------------------------------------------------------------------------


def test_the_command(broken: Path, healthy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["origin", str(broken)]) == 0
    assert "log made -inf of sample 11" in capsys.readouterr().out
    assert main(["origin", str(broken), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["operation"] == "log"
    assert main(["origin", str(healthy)]) == 0
    assert "finite" in capsys.readouterr().out
    assert main(["origin", str(healthy), "--step", "30", "--sample", "3"]) == 0
    assert "unusual" in capsys.readouterr().out


# ---- bad questions --------------------------------------------------------------------------------


def test_what_cannot_be_answered_is_said(healthy: Path) -> None:
    with pytest.raises(BadArgument, match="was given a int"):
        endoscope.origin(3)
    with pytest.raises(BadArgument, match="sample=-1"):
        endoscope.origin(healthy, sample=-1)
    with pytest.raises(BadArgument, match="step 30 has 32 samples"):
        endoscope.origin(healthy, step=30, sample=99)
    with pytest.raises(BadArgument, match=r"was not recorded\. Use one of: 'value', 'gradient:loss'"):
        endoscope.origin(healthy, of="gradient")
    with pytest.raises(LookupFailed, match=r"There is no node 'outpu'.*output"):
        endoscope.origin(healthy, "outpu")
    with pytest.raises(LookupFailed, match="Step 400 was not recorded"):
        endoscope.origin(healthy, step=400)
    with pytest.raises(BadArgument, match="Use one of norm, std"):
        endoscope.changes(healthy, statistic="mean")
    with pytest.raises(BadArgument, match="above 1"):
        endoscope.changes(healthy, least=0.5)
    with pytest.raises(BadArgument, match="was not recorded"):
        endoscope.changes(healthy, of="gradient")
    with pytest.raises(LookupFailed, match="no numbers of 'x'"):
        endoscope.changes(healthy, "x")
    with pytest.raises(LookupFailed, match="No step of type 'rare'"):
        endoscope.changes(healthy, type="rare")


def test_a_folder_of_several_trials(tmp_path: Path) -> None:
    train(tmp_path, classifier(), steps=6)
    assert endoscope.origin(tmp_path) == []
    train(tmp_path, classifier(), steps=6)
    with pytest.raises(BadArgument, match="folder of 2 trials"):
        endoscope.origin(tmp_path)
    with pytest.raises(BadArgument, match="folder of 2 trials"):
        endoscope.changes(tmp_path)


def test_traces_that_cannot_tell() -> None:
    model, x = nn.Linear(3, 3), torch.randn(8, 3)
    trace = endoscope.trace(model, x)
    with pytest.raises(BadArgument, match="neither step nor type"):
        endoscope.origin(trace, step=3)
    with pytest.raises(BadArgument, match="has no gradients"):
        endoscope.origin(trace, of="gradient")
    with pytest.raises(BadArgument, match="'value' or 'gradient'"):
        endoscope.origin(trace, of="gradient:loss")
    with pytest.raises(BadArgument, match="sample=8: the batch has 8 samples"):
        endoscope.origin(trace, sample=8)
    with pytest.raises(BadArgument, match="has 2 samples"):
        endoscope.origin(endoscope.trace(model, x[:2]), sample=1)
    with pytest.raises(CannotReplay, match="save='all'"):
        endoscope.origin(endoscope.trace(model, x, save="none"))


def test_unusual_gradients_of_a_trace() -> None:
    model, x = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1)), torch.randn(16, 6)
    weights = torch.ones(16, 1)
    weights[9] = 500.0
    with endoscope.tracing(model, gradients=True) as trace:
        (model(x) * weights).mean().backward()
    found = endoscope.origin(trace, sample=9, of="gradient")
    assert found and trace[found[0].node].type == "linear"  # the gradient of what the weights are multiplied with
