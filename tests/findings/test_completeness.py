"""A recording without steps, or one that lost most of what it should hold, is never called sound."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import endoscope
from endoscope.findings import silence
from endoscope.findings.completeness import count_lost, is_running, lost_steps, steps_seen
from endoscope.findings.diagnose import lacks
from endoscope.findings.finding import ERROR, INFO, WARNING, Finding
from endoscope.query.recording import Recording
from endoscope.schema.recording import GapRecord
from endoscope.store.writer import TrialWriter
from tests.findings import incomplete
from tests.findings.runs import classifier, curve, train
from tests.store.made_up import step_record


def only(path: Path) -> Finding:
    (finding,) = endoscope.diagnose(path)
    return finding


def metrics_only(folder: Path) -> Path:
    run = endoscope.Run(folder, trial="trial")
    for number in range(30):
        run.metric("loss", 1 / (1 + number))
    run.close()
    return Path(run.path)


def nothing(folder: Path) -> Path:
    endoscope.Run(folder, trial="trial").close()
    return folder / "trial"


# ---- no steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "severity", "says", "type_this"),
    [
        (incomplete.never_called, ERROR, "never called in training mode", "with run.step():"),
        (incomplete.in_evaluation_mode, ERROR, "evaluation mode", "with run.step():"),
        (incomplete.without_forward, ERROR, "no forward pass", "model(x)"),
        (incomplete.nobody_wanted, ERROR, "7 steps were seen, and none", "when=10"),
        (nothing, ERROR, "No model was watched", "run.watch(model, optimizer)"),
        (metrics_only, INFO, "Only metrics were recorded (loss)", "run.watch(model, optimizer)"),
    ],
)
def test_no_steps_says_why_and_what_to_type(
    make: Callable[[Path], Path], severity: str, says: str, type_this: str, tmp_path: Path
) -> None:
    found = only(make(tmp_path))
    assert (found.check, found.severity, found.title) == ("no_steps", severity, "no step was recorded")
    assert says in found.detail
    assert type_this in found.detail or any(type_this in remedy for remedy in found.remedies)
    assert found.remedies and found.value == 0


def test_all_steps_are_lost(tmp_path: Path) -> None:
    found = only(incomplete.full_disk(tmp_path, before=0, after=0))
    assert (found.check, found.severity) == ("no_steps", ERROR)
    assert "30 steps were to be recorded" in found.detail and "disk is full" in found.detail
    assert any("max_bytes" in remedy for remedy in found.remedies)


def test_steps_that_cannot_be_read(tmp_path: Path) -> None:
    path = train(tmp_path, classifier(), steps=3)
    for file in (path / "rank-0").glob("steps-*.arrow"):
        file.write_bytes(b"\0" * file.stat().st_size)
    with pytest.warns(endoscope.errors.DamageWarning):
        found = endoscope.diagnose(path)[0]
    assert (found.check, found.severity) == ("no_steps", ERROR)
    assert "can be read" in found.detail and any("verify()" in remedy for remedy in found.remedies)


def test_a_trial_that_has_just_begun_is_no_error(tmp_path: Path) -> None:
    run = endoscope.Run(tmp_path, trial="trial")
    run.watch(classifier())
    run.flush()
    found = only(Path(run.path))
    run.close()
    assert (found.severity, found.title) == (INFO, "no step was recorded yet") and "still running" in found.detail


def test_a_trial_that_runs_and_has_gaps_already_is_a_warning(tmp_path: Path) -> None:
    model = classifier().eval()
    with incomplete.quietly(tmp_path) as run:
        run.watch(model)
        incomplete.loop(model, 3)
        run.flush()
        found = only(Path(run.path))
    assert found.severity == WARNING and "still running" in found.detail and "run.step()" in found.detail


def test_a_trial_that_was_killed_before_its_first_step(tmp_path: Path) -> None:
    """Nobody holds the lock of a copy, as of a trial whose process was killed; its age does not matter."""
    run = endoscope.Run(tmp_path, trial="trial")
    run.watch(classifier())
    run.flush()
    killed = Path(shutil.copytree(run.path, tmp_path / "killed"))
    assert is_running(Recording(run.path)) and not is_running(Recording(killed))
    found = only(killed)
    run.close()
    assert not is_running(Recording(run.path))
    assert found.severity == ERROR and "ended early" in found.detail


# ---- lost steps ----------------------------------------------------------------------------------


def test_a_full_disk(tmp_path: Path) -> None:
    path = incomplete.full_disk(tmp_path, before=2, meanwhile=40, after=1)
    found = only(path)
    assert (found.check, found.severity, found.title) == ("lost_steps", ERROR, "most steps are missing")
    assert "40 of 43 steps" in found.detail and "disk is full" in found.detail
    assert (found.first_step, found.last_step) == (2, 41)
    assert found.value == 40 / 43 and found.threshold == 0.5
    assert sorted(lost_steps(Recording(path))) == [*range(2, 42)] and steps_seen(Recording(path)) == 43


def test_gaps_are_lost_too_and_the_recorders_report_is_there(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    for number in range(4):
        writer.write_step(step_record(writer, number))
    told = {"steps": {"train": {"seen": 30, "recorded": 24}}, "failed_writes": 35, "failed_writes_last": "disk is full"}
    writer.update_config({"endoscope": told})
    writer.close()
    recording = Recording(writer.path)
    assert lost_steps(recording) == {} and count_lost(recording, 0) == 20
    (found,) = [one for one in endoscope.diagnose(writer.path) if one.check == "lost_steps"]
    assert "20 of 24" in found.detail and "Disk is full." in found.detail


@pytest.mark.parametrize("told", [None, 3, {"steps": [1]}, {"steps": {"a": 1}, "failed_writes": "many"}])
def test_a_report_of_another_form(told: object, tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial", config={"endoscope": told})
    writer.write_step(step_record(writer, 0))
    writer.close()
    assert count_lost(Recording(writer.path), 0) == 0 and steps_seen(Recording(writer.path)) == 0


def test_a_full_queue(tmp_path: Path) -> None:
    found = only(incomplete.slow_disk(tmp_path))
    assert (found.check, found.severity) == ("lost_steps", ERROR)
    assert "30 of 33 steps" in found.detail and "the queue to the writer was full" in found.detail
    assert any("when=10" in remedy for remedy in found.remedies)


@pytest.mark.parametrize(("meanwhile", "severity"), [(10, None), (20, WARNING), (200, ERROR)])
def test_how_many_are_lost_decides(meanwhile: int, severity: str | None, tmp_path: Path) -> None:
    found = endoscope.diagnose(incomplete.slow_disk(tmp_path, before=15, meanwhile=meanwhile))
    assert [one.severity for one in found if one.check == "lost_steps"] == ([severity] if severity else [])


def test_steps_that_could_not_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from endoscope.recording.output import finishing

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no such kernel")

    model = classifier()
    with incomplete.quietly(tmp_path, when=1) as run:
        run.watch(model)
        incomplete.loop(model, 2)
        monkeypatch.setattr(finishing, "measure_step", fails)
        incomplete.loop(model, 10)
    found = only(Path(run.path))
    assert found.check == "lost_steps" and "10 of 12" in found.detail and "no such kernel" in found.detail


def test_steps_that_nobody_wanted_or_that_were_removed_are_not_lost(tmp_path: Path) -> None:
    model = classifier()
    with endoscope.Run(tmp_path, trial="trial", when=1, max_bytes=300_000) as run:
        run.watch(model)
        incomplete.loop(model, 150)
    with endoscope.Run(tmp_path, trial="seldom", when=20) as seldom:
        seldom.watch(model)
        incomplete.loop(model, 60)
    for path in (run.path, seldom.path):
        recording = Recording(path)
        assert 0 < len(recording.steps) < steps_seen(recording)
        assert lost_steps(recording) == {} and count_lost(recording, 0) == 0 and lacks(recording) == []


# ---- lost parts ----------------------------------------------------------------------------------


def test_a_watched_model_that_is_not_the_one_that_is_called(tmp_path: Path) -> None:
    found = only(incomplete.another_model(tmp_path))
    assert (found.check, found.severity, found.value) == ("lost_parts", WARNING, 1.0)
    assert "4 of 4 recorded steps have no values of the model" in found.detail


NO_GRAPH = GapRecord("", "", "the graph is not known: this step called other modules than those before")
NO_GRADIENTS = GapRecord("", "gradient", "gradients arrived, but no beginning of a backward pass was seen")


def parts(path: Path) -> list[str]:
    return [finding.detail for finding in endoscope.diagnose(path) if finding.check == "lost_parts"]


def test_steps_without_a_graph(tmp_path: Path) -> None:
    (detail,) = parts(incomplete.made_up(tmp_path, NO_GRAPH, first=2))
    assert detail.startswith("4 of 6 recorded steps have no graph. The graph is not known")
    assert parts(incomplete.made_up(tmp_path, NO_GRAPH, first=4, trial="few")) == []
    assert parts(incomplete.made_up(tmp_path, trial="no word of it")) == []


def test_steps_without_gradients(tmp_path: Path) -> None:
    (detail,) = parts(incomplete.made_up(tmp_path, NO_GRADIENTS, first=5))  # it is said once
    assert detail.startswith("6 of 6 recorded steps have no gradients. Gradients arrived")


def test_who_chose_to_record_little_is_not_told_off(tmp_path: Path) -> None:
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer, "0.weight")
        incomplete.loop(model, 4)
    assert lacks(Recording(run.path)) == []


# ---- sound recordings ----------------------------------------------------------------------------


def test_a_sound_recording_lacks_nothing(tmp_path: Path) -> None:
    assert lacks(Recording(train(tmp_path, classifier(), steps=4))) == []
    assert lacks(Recording(curve(tmp_path, [1.0, 0.5, 0.4]))) == []


def test_what_is_silenced_is_still_lacking(tmp_path: Path) -> None:
    path = incomplete.never_called(tmp_path)
    silence.add(path, "no_steps")
    assert endoscope.diagnose(path) == []
    assert [finding.check for finding in lacks(Recording(path))] == ["no_steps"]


def test_only_the_checks_that_are_named(tmp_path: Path) -> None:
    assert endoscope.diagnose(incomplete.never_called(tmp_path), checks=["dead_units"]) == []
