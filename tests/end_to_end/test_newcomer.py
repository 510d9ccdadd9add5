"""A student's loop with a planted bug, and nothing typed but what README says: the cause is on the first screen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import SRC

SCREEN = 24  # lines
LOOP = """
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.body(x))


model, optimizer = Net(), None
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
"""
# What is exchanged, for what, and what the first screen must name.
BUGS = {
    "gradients that are never cleared": ("        optimizer.zero_grad()\n", "", "optimizer.zero_grad()"),
    "a head that is detached": ("self.head(self.body(x))", "self.head(self.body(x).detach())", "detach"),
    "data that are not shuffled": (
        "torch.randperm(len(x)).split(64)", "torch.argsort(y).split(64)", "shuffle",
    ),
    "the optimizer of another model": ("SGD(model.parameters()", "SGD(Net().parameters()", "given to the optimizer"),
}  # fmt: skip


def endoscope(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "endoscope", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)


def first_screen(folder: Path, code: str, how: str) -> tuple[int, str]:
    (folder / "train.py").write_text(code)
    if how == "try":
        endoscope(folder, "try", "--no-show", "train.py")
    else:
        subprocess.run([sys.executable, "train.py"], cwd=folder, env=os.environ | {"PYTHONPATH": str(SRC)}, check=True)
    checked = endoscope(folder, "check", "runs")
    return checked.returncode, "\n".join(checked.stdout.splitlines()[:SCREEN])


def with_run(code: str) -> str:
    """The lines that README adds."""
    lines = "import endoscope\nrun = endoscope.Run('runs')\nrun.watch(model, optimizer)\n"
    return code.replace("for epoch in", f"{lines}for epoch in")


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_the_cause_is_on_the_first_screen(bug: str, tmp_path: Path) -> None:
    right, wrong, named = BUGS[bug]
    assert LOOP.count(right) == 1
    code, screen = first_screen(tmp_path, with_run(LOOP.replace(right, wrong)), "python")
    assert code in (1, 2) and named in screen, screen


@pytest.mark.slow
def test_also_where_nothing_was_added_to_the_script(tmp_path: Path) -> None:
    right, wrong, named = BUGS["a head that is detached"]
    code, screen = first_screen(tmp_path, LOOP.replace(right, wrong), "try")
    assert code in (1, 2) and named in screen, screen


@pytest.mark.slow
def test_the_loop_without_a_bug_has_no_error(tmp_path: Path) -> None:
    code, screen = first_screen(tmp_path, with_run(LOOP), "python")
    assert code in (0, 1), screen
