"""A plug-in as somebody else would write it: one file, installed beside Endoscope; and a training to try it on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

import endoscope
from tests.house.tree import SRC


def install(folder: Path, source: str) -> Path:
    """What `pip install` leaves behind for a package of one module that names itself a plug-in; returns its folder."""
    site = folder / "site-packages"
    about = site / "my_plugin-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "my_plugin.py").write_text(source, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[endoscope.plugins]\nmine = my_plugin\n", encoding="utf-8")
    return site


def run(
    site: Path | None, *arguments: str, folder: Path | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Python with some arguments, where the plug-in is installed, or where none is."""
    paths = [str(SRC), *([str(site)] if site else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, input=typed, capture_output=True, text=True)


def train(root: Path, trial: str = "first", steps: int = 6, weight: float = 1.0) -> Path:
    """Record a training of two layers."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    with torch.no_grad():
        model[0].weight *= weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with endoscope.Run(root, trial=trial, when=1, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(32, 8)).square().mean().backward()
            optimizer.step()
    return Path(run.path)


TRAIN = """
import sys
from pathlib import Path
from tests.contract.growth.plug_in import train
train(Path(sys.argv[1]))
"""
