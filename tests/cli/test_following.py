"""`endoscope check --follow`: each finding is told once, and a command is run for each error."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import endoscope
from endoscope.cli import following, main
from endoscope.findings.finding import ERROR, WARNING, Finding
from tests.house.tree import SRC


def finding(check: str, severity: str = ERROR) -> Finding:
    return Finding(
        check=check, severity=severity, title=check, detail="", trial="t", node="", first_step=0, last_step=1,
        value=float("nan"), threshold=0.0,
    )  # fmt: skip


def train(run: endoscope.Run, model: nn.Module, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(16, 4)), torch.randint(0, 3, (16,))).backward()
        optimizer.step()
    run.flush()


def script(folder: Path) -> tuple[str, Path]:
    """A command that appends what it gets to a file."""
    file, told = folder / "mail.py", folder / "told.jsonl"
    file.write_text(f"import sys\nopen({str(told)!r}, 'a').write(sys.stdin.read())\nsys.exit(4)\n")
    return f'"{sys.executable}" "{file}"', told


def test_it_looks_until_nobody_writes_and_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = [[finding("a", WARNING)], [finding("a"), finding("b", WARNING)], [finding("a"), finding("c")]]
    running, told, waits = iter([True, True, False]), [], []
    monkeypatch.setattr(following, "_is_any_running", lambda path: next(running))
    # Not `time` itself: threads that other tests have left behind may be asleep at any moment.
    monkeypatch.setattr(following, "time", SimpleNamespace(sleep=waits.append, monotonic=time.monotonic))
    command, file = script(tmp_path)
    left = iter(looks)
    found = following.follow(tmp_path, lambda: next(left), told.append, command, 7.0)
    assert found == looks[-1]
    assert [(one.check, one.severity) for one in told] == [("a", WARNING), ("a", ERROR), ("b", WARNING), ("c", ERROR)]
    said = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["check"] for one in said] == ["a", "c"] and said[0]["value"] is None
    assert len(waits) == 2 and min(waits) >= 7.0
    assert capsys.readouterr().err.count("ended with the exit status 4") == 2


def test_a_training_that_goes_wrong_while_it_is_followed(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    run = endoscope.Run(tmp_path / "runs", trial="mine", when=1)
    train(run, model, 12)
    command, told = script(tmp_path)
    check = [sys.executable, "-m", "endoscope", "check", str(tmp_path / "runs"), "--follow", "--every", "0.1"]
    check += ["--json", "--exec", command]
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    with subprocess.Popen(check, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        with torch.no_grad():
            model[2].weight.fill_(float("nan"))
        nn.functional.cross_entropy(model(torch.randn(16, 4)), torch.randint(0, 3, (16,))).backward()
        run.close()
        printed = [json.loads(line) for line in process.stdout]
    assert process.returncode == 2
    errors = [one["check"] for one in printed if one["severity"] == ERROR]
    assert "nonfinite" in errors and len(errors) == len(set(errors))
    assert [json.loads(line)["check"] for line in told.read_text().splitlines()] == errors


def test_a_training_that_has_ended_is_looked_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with endoscope.Run(tmp_path, when=1) as run:
        train(run, nn.Linear(4, 3), 5)
    code = main(["check", run.path])
    printed = capsys.readouterr().out
    assert main(["check", run.path, "--follow"]) == code
    assert capsys.readouterr().out == printed


def test_what_cannot_be_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path), "--exec", "true"]) == 3
    assert "Add --follow" in capsys.readouterr().err
    assert main(["check", str(tmp_path), "--follow", "--every", "0"]) == 3
    assert "--every is 0" in capsys.readouterr().err
