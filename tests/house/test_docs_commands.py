"""Docs are code: every command and every settings file in README and docs is tried, beside a trial recorded for it.

Programs that are not ours (mail, notify-send) are stand-ins that do nothing. Installation is what `make`, the job
*wheels* and `test_smoke.py` do; here its lines are only compared with the package.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn

import endoscope
from tests.house.tree import ROOT, SRC, project_files, relative

_BLOCK = re.compile(r"^```(sh|toml|json)\n(.*?)^```\s*?$", re.MULTILINE | re.DOTALL)
STAND_INS = ("mail", "jq", "notify-send")
TRAIN = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4 * parser.parse_args().epochs):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,))).backward()
    optimizer.step()
"""


class Typed(NamedTuple):
    """One line of a shell, or one settings file."""

    page: str
    language: str
    text: str


def typed(page: Path) -> list[Typed]:
    found = []
    for language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        pieces = text.strip().splitlines() if language == "sh" else [text]
        found += [Typed(relative(page), language, piece.strip()) for piece in pieces]
    return found


PAGES = [path for path in project_files() if re.fullmatch(r"README\.md|docs/.*\.md", relative(path))]
ALL = [one for page in PAGES for one in typed(page)]
COMMANDS = [one for one in ALL if one.language == "sh" and not one.text.startswith(("pip ", "make "))]
SETTINGS = [one for one in ALL if one.language != "sh"]


def record(root: Path, trial: str) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(root, trial=trial, when=1) as run:
        run.watch(model, optimizer)
        for number in range(40):
            with run.step(type="long" if number % 2 else "short") as step:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)))
                loss.backward()
                optimizer.step()
                step.metric("loss", loss)
                step.decide(categories=[0, 7] * 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What somebody has who reads the docs: a script, trials, and the programs on the path."""
    folder = tmp_path_factory.mktemp("reader")
    for trial in ("first", "suspect", "repaired"):
        record(folder / "runs", trial)
    shutil.copytree(folder / "runs" / "suspect", folder / "runs" / "demo" / "suspect")
    (folder / "train.py").write_text(TRAIN)
    (folder / ".config" / "fish" / "completions").mkdir(parents=True)
    programs = folder / "bin"
    programs.mkdir()
    ours = {"endoscope": "-m endoscope", "torchrun": "-m torch.distributed.run"}
    for name in (*STAND_INS, *ours):
        line = f'exec "{sys.executable}" {ours[name]} "$@"' if name in ours else "cat > /dev/null"
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    return folder


def environment(folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "HOME": str(folder), "PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}


def run(folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=300
    )


def test_there_are_commands_and_settings() -> None:
    assert {one.page for one in COMMANDS} >= {"README.md", "docs/reference/cli.md", "docs/tutorial.md"}
    assert {one.language for one in SETTINGS} == {"toml", "json"}


@pytest.mark.slow
@pytest.mark.parametrize("one", COMMANDS, ids=lambda one: f"{one.page}: {one.text[:60]}")
def test_a_command_does_what_it_says(one: Typed, folder: Path) -> None:
    if one.text.startswith("endoscope show"):
        shows_the_page(folder, one.text)
        return
    done = run(folder, f"sleep 600 & PID=$!; {one.text}\nstatus=$?; kill $PID; exit $status")
    allowed = (0, 1, 2) if one.text.startswith("endoscope check") else (0,)
    assert done.returncode in allowed and "usage:" not in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def heed_interrupts() -> None:
    """A shell that runs the tests in the background has them ignored, also in what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def shows_the_page(folder: Path, command: str) -> None:
    """It stays until Ctrl+C."""
    with subprocess.Popen(
        shlex.split(f"{command} --port 0"), cwd=folder, env=environment(folder), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, executable=folder / "bin" / "endoscope",
        preexec_fn=heed_interrupts,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "http://127.0.0.1" in line:
                break
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert "http://127.0.0.1" in said, said


@pytest.mark.parametrize("one", SETTINGS, ids=lambda one: f"{one.page}: {one.text[:40]}")
def test_settings_are_accepted(one: Typed, folder: Path) -> None:
    name = "endoscope.toml" if one.language == "toml" else "findings.json"
    file = folder / "runs" / "first" / name
    file.write_text(one.text)
    try:
        done = run(folder, "endoscope check runs/first")
    finally:
        file.unlink()
    assert done.returncode in (0, 1, 2), done.stderr + done.stdout
    assert name not in done.stdout + done.stderr, done.stdout  # a file that cannot be read is named


def test_what_can_be_installed_is_what_the_package_offers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for line in [one.text for one in ALL if one.text.startswith("pip install")]:
        (extra,) = re.findall(r"\[(\w+)\]", line)
        assert extra in project["optional-dependencies"], line
        assert "-py3-" not in line or f"endoscope-{endoscope.__version__}-py3-none-" in line


def test_what_make_is_asked_for_is_there() -> None:
    for line in [one.text for one in ALL if one.text.startswith("make ")]:
        verb = line.split()[1]
        done = subprocess.run(["make", "-n", verb], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
