"""`endoscope demo` records two trials, never twice into one place, and serves them."""

import urllib.request
from pathlib import Path

import pytest

import endoscope
from endoscope.cli import demo, main
from endoscope.server.launch import Viewer


@pytest.fixture(autouse=True)
def _one_thread_more_or_less(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)  # it would stay set for all other tests


@pytest.fixture
def without_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_SERVE", "0")


@pytest.mark.usefixtures("without_page")
def test_it_records_once_and_keeps_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "runs" / "demo"
    assert main(["demo", str(root), "--steps", "4"]) == 0
    assert f"endoscope show {root} --views " in capsys.readouterr().out
    files = {path: path.stat().st_mtime_ns for path in root.rglob("*")}

    assert main(["demo", str(root), "--steps", "4"]) == 0
    assert f"{root / 'suspect'} was recorded earlier and is kept" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == files

    assert main(["demo", str(root), "--steps", "5"]) == 0  # another training: new trials beside the old ones
    assert list(endoscope.open(root)) == ["repaired", "repaired-2", "suspect", "suspect-2"]


@pytest.mark.usefixtures("without_page")
def test_a_trial_that_was_broken_off_is_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from endoscope.demo import training

    train_step, steps = training.train_step, []

    def stop(*arguments: object) -> float:
        if steps:
            raise KeyboardInterrupt
        steps.append(train_step(*arguments))  # type: ignore[arg-type]
        return steps[0]

    with monkeypatch.context() as patched:
        patched.setattr(training, "train_step", stop)
        assert main(["demo", str(tmp_path), "--steps", "4"]) == 130
    assert f"Stopped. What was recorded so far is in {tmp_path}." in capsys.readouterr().out
    assert main(["demo", str(tmp_path), "--steps", "4"]) == 0
    assert list(endoscope.open(tmp_path)) == ["repaired", "suspect", "suspect-2"]


def test_the_page_is_there_while_it_trains_and_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []

    def wait(viewer: Viewer) -> None:
        address = f"http://127.0.0.1:{viewer.port}/api/views"
        asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {viewer.token}"})
        with urllib.request.urlopen(asked) as answer:
            answers.append(answer.read().decode())
        viewer.close()

    monkeypatch.delenv("DEMO_SERVE", raising=False)
    monkeypatch.setattr(Viewer, "wait", wait)
    assert main(["demo", str(tmp_path), "--steps", "2", "--port", "0"]) == 0
    assert "answer_by_sum" in answers[0]
    shown = capsys.readouterr().out
    assert shown.index("The page is at  http://127.0.0.1:") < shown.index("Training")
    assert shown.endswith("Press Ctrl+C to stop.\n")


@pytest.mark.usefixtures("without_page")
def test_what_cannot_be_done_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", str(tmp_path), "--steps", "0"]) == 1
    assert "--steps is 0, but there must be at least one step" in capsys.readouterr().err
    endoscope.Run(tmp_path, trial="mine").close()
    assert main(["demo", str(tmp_path / "mine")]) == 1
    assert f"{tmp_path / 'mine'} is a trial itself" in capsys.readouterr().err


def test_the_default_is_that_of_the_settings() -> None:
    import argparse

    from endoscope.demo.training import Settings

    parser = argparse.ArgumentParser()
    demo.add_options(parser)
    assert parser.parse_args([]).steps == Settings().steps
