"""TorchLens in a throw-away environment of its own, with the same torch: installed, measured, deleted.

The peer patches torch for good and has its own dependencies, so it never enters our process or environment.
It runs the same models next to the same raw forward in its own process and hands back ratios as JSON.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PEER = "torchlens==2.36.1"
TORCH = "torch==2.13.0"
SCRIPT = Path(__file__).with_name("peer_torchlens.py")


class PeerUnavailable(Exception):
    """The peer could not be installed or run; the message says which step failed and how."""


def run_torchlens(options: list[str], python: str | None = None) -> dict[str, Any]:
    """The peer's numbers; ``python`` names an interpreter that already has the peer."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peer-")))
        interpreter = python or stack.enter_context(_environment(folder))
        result = folder / "result.json"
        _call([interpreter, str(SCRIPT), str(result), *options], "run the peer", quiet=False)
        answer: dict[str, Any] = json.loads(result.read_text())
        return answer


@contextlib.contextmanager
def _environment(folder: Path) -> Iterator[str]:
    print(f"installing {PEER} with {TORCH} in a throw-away environment ...", file=sys.stderr, flush=True)
    venv.create(folder / "env", with_pip=True)
    python = str(folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python")
    constraint = folder / "constraint.txt"
    constraint.write_text(f"{TORCH}\n")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _call([*pip, TORCH, "numpy"], f"install {TORCH}")
    # The constraint keeps the peer from replacing torch; GPT-2's shape comes from the same transformers.
    _call([*pip, PEER, *_same_transformers(), "-c", str(constraint)], f"install {PEER}")
    yield python


def _same_transformers() -> list[str]:
    try:
        return [f"transformers=={importlib.metadata.version('transformers')}"]
    except importlib.metadata.PackageNotFoundError:
        return []


def _call(command: list[str], what: str, quiet: bool = True) -> None:
    """Run a command without our own packages on its path; unless quiet, its messages go to the terminal."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if quiet else None,
        text=True,
    )
    if done.returncode:
        said = (done.stderr or f"exit code {done.returncode}, its message is above").strip().splitlines()
        raise PeerUnavailable(f"could not {what}: {said[-1]}")
