"""How findings are ranked, put together, silenced and changed by settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.errors import BadArgument, LookupFailed, NotARecording, StoreError
from endoscope.findings import silence
from endoscope.findings.check import Check, Stage
from endoscope.findings.diagnose import of_recording
from endoscope.findings.registry import all_checks
from tests.findings.planted import FAULTS, dying_relu, log_of_zero
from tests.findings.runs import blobs, classifier, curve, filled, train
from tests.house.pages import headings
from tests.house.tree import ROOT, run_python
from tests.store.forging import rewrite, without


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return dying_relu(tmp_path_factory.mktemp("dead"))


def test_the_origin_of_nan_is_named_with_step_sample_and_line(tmp_path: Path) -> None:
    first = endoscope.diagnose(log_of_zero(tmp_path))[0]
    assert (first.check, first.severity, first.node, first.first_step) == ("nonfinite", "error", "1", 6)
    assert first.samples == (5,)
    assert first.value == 8 and first.threshold == 0
    assert set(first.also) >= {"2", "output", "loss"}
    assert first.source.rpartition(":")[0].endswith("planted.py")


def test_nan_that_is_born_in_the_backward_pass(tmp_path: Path) -> None:
    class Root(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x * (x > 0)).sqrt()  # at zero the root is finite, and its slope is not

    model = classifier(Root())
    first = endoscope.diagnose(train(tmp_path, model, steps=4))[0]
    assert (first.check, first.severity, first.first_step) == ("nonfinite", "error", 0)
    assert first.node == "0" and first.of == "gradient:loss"


def test_nan_in_the_data_is_the_data(tmp_path: Path) -> None:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        inputs[3, 2] = float("nan") if step == 2 else 0.0
        return inputs, labels

    first = endoscope.diagnose(train(tmp_path, classifier(), batches=batches, steps=4))[0]
    assert (first.check, first.node, first.first_step, first.samples) == ("nonfinite", "input", 2, (3,))
    assert "came in from outside" in first.detail


def test_causes_stand_before_what_follows_from_them(dead: Path) -> None:
    found = endoscope.diagnose(dead)
    assert (found[0].check, found[0].follows) == ("dead_units", "")
    followers = {finding.check: finding.follows for finding in found[1:]}
    assert followers["zero_gradient"] == "dead_units at 1"
    assert [finding.rank for finding in found] == sorted(finding.rank for finding in found)


def test_one_cause_is_one_entry(tmp_path: Path) -> None:
    model = classifier(nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
    filled(model[0], bias=-30.0)
    filled(model[2], bias=-30.0)
    dead = [finding for finding in endoscope.diagnose(train(tmp_path, model)) if finding.check == "dead_units"]
    assert len(dead) == 1
    assert dead[0].node == "1" and "3" in dead[0].also


def test_steps_of_two_types_are_named(tmp_path: Path) -> None:
    model = classifier()
    filled(model[0], bias=-30.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(12):
            inputs, labels = blobs(number)
            with run.step(number, type="odd" if number % 2 else "even"):
                loss = nn.functional.cross_entropy(model(inputs), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    first = endoscope.diagnose(run.path, checks=["dead_units"])[0]
    assert set(first.types) == {"even", "odd"} and (first.first_step, first.last_step) == (0, 11)


def test_a_folder_of_trials_names_the_trial(dead: Path) -> None:
    found = endoscope.diagnose(dead.parent)
    assert {finding.trial for finding in found} == {"trial"}


def test_only_the_checks_that_are_named(dead: Path) -> None:
    assert {finding.check for finding in endoscope.diagnose(dead, checks=["dead_units"])} == {"dead_units"}
    with pytest.raises(LookupFailed, match=r"There is no check 'dead_unit'. Nearest: 'dead_units'"):
        endoscope.diagnose(dead, checks=["dead_unit"])


def test_thresholds_change_what_is_reported(dead: Path) -> None:
    only = ["dead_units"]
    assert endoscope.diagnose(dead, checks=only, thresholds={"dead_units": {"steps": 99}}) == []
    with pytest.raises(BadArgument, match=r"dead_units has no threshold 'shares'. It has: share = 0.7"):
        endoscope.diagnose(dead, thresholds={"dead_units": {"shares": 1}})
    with pytest.raises(BadArgument, match="a threshold is a number"):
        endoscope.diagnose(dead, thresholds={"dead_units": {"share": "much"}})  # type: ignore[dict-item]


def test_thresholds_from_a_file(dead: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "endoscope.toml").write_text("[checks.dead_units]\nsteps = 99\n")
    assert endoscope.diagnose(dead, checks=["dead_units"]) == []
    assert endoscope.diagnose(dead, checks=["dead_units"], thresholds={"dead_units": {"steps": 5}})
    (tmp_path / "endoscope.toml").write_text("[checks\n")
    with pytest.raises(BadArgument, match="cannot be read as TOML"):
        endoscope.diagnose(dead)


def test_silenced_findings_are_left_out(tmp_path: Path) -> None:
    path = dying_relu(tmp_path)
    silence.add(path, "dead_units", "1")
    silence.add(path, "dead_units", "1")
    assert json.loads((path / "findings.json").read_text()) == {"silenced": [{"check": "dead_units", "node": "1"}]}
    checks = {finding.check for finding in endoscope.diagnose(path)}
    assert "dead_units" not in checks and "zero_gradient" in checks
    silence.add(path, "zero_gradient")
    assert "zero_gradient" not in {finding.check for finding in endoscope.diagnose(path)}
    with pytest.raises(NotARecording):
        silence.add(tmp_path, "dead_units")
    (path / "findings.json").write_text("[]")
    with pytest.raises(StoreError, match="does not say what is silenced"):
        endoscope.diagnose(path)


def test_a_check_that_fails_does_not_hide_the_others(dead: Path) -> None:
    def fail(facts: object, limits: object) -> list[object]:
        raise ZeroDivisionError("planted")

    broken = Check(name="broken", description="", stage=Stage.DATA, run=fail, causes=(), remedies=())  # type: ignore[arg-type]
    recording = endoscope.open(dead)
    found = of_recording(recording, [broken, all_checks()["dead_units"]])  # type: ignore[arg-type]
    assert [finding.check for finding in found] == ["dead_units", "broken"]
    assert found[1].severity == "info" and "ZeroDivisionError: planted" in found[1].detail
    assert found[1].to_dict()["value"] is None


def test_what_a_check_reads_and_the_recording_lacks_is_said(dead: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(dead, old)
    rewrite(old / "rank-0", without("zeros"))
    unchecked = {
        found.check: found.detail for found in endoscope.diagnose(old) if found.title == "could not be checked"
    }
    assert "the statistic zeros" in unchecked["dead_units"]
    assert not any(found.title == "could not be checked" for found in endoscope.diagnose(dead))


def test_a_recording_without_anything_has_one_finding(tmp_path: Path) -> None:
    endoscope.Run(tmp_path, trial="trial").close()
    assert [finding.check for finding in endoscope.diagnose(tmp_path / "trial")] == ["no_steps"]


def test_no_torch_is_needed(dead: Path) -> None:
    code = f"import sys, endoscope; print(len(endoscope.diagnose({str(dead)!r}))); assert 'torch' not in sys.modules"
    result = run_python(code)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0


def test_one_loss_of_several_may_rise(tmp_path: Path) -> None:
    rising = [1.0 + 0.1 * number for number in range(40)]
    path = curve(tmp_path, rising, "generator loss", **{"discriminator loss": rising[::-1]})
    assert {finding.severity for finding in endoscope.diagnose(path)} <= {"info"}


@pytest.mark.parametrize("check", sorted(FAULTS))
def test_every_check_has_a_heading(check: str) -> None:
    assert f"`{check}`" in headings(ROOT / "docs/reference/findings.md")


@pytest.mark.parametrize("check", sorted(FAULTS))
def test_the_page_tells_the_thresholds_that_are_used(check: str) -> None:
    text = " ".join((ROOT / "docs/reference/findings.md").read_text(encoding="utf-8").split())
    part = text.partition(f"#### `{check}`")[2].partition("###")[0]
    told = all_checks()[check]
    assert told.description in part
    for name, value in told.thresholds.items():
        assert f"`{name} = {value:g}`" in part
