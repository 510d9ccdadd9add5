"""A peer in a throw-away environment of its own, with the same torch: installed, measured, deleted.

A peer may patch torch for good and has its own dependencies, so it never enters our process or environment.
It runs the same models next to the same plain torch in its own process and hands back ratios as JSON.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TORCH = "torch==2.13.0"


@dataclass(frozen=True)
class Peer:
    """What to install, and which script of this folder measures it."""

    requirement: str
    script: str
    same_version: tuple[str, ...] = ()  # packages that it gets in the version that we have

    @property
    def name(self) -> str:
        return self.requirement.partition("==")[0]


# GPT-2's shape comes from transformers.
TORCHLENS = Peer("torchlens==2.36.1", "peer_torchlens.py", same_version=("transformers",))
COMGRA = Peer("comgra==0.11.5", "peer_comgra.py")


class PeerUnavailable(Exception):
    """The peer could not be installed or run; the message says which step failed and how."""


def run(peer: Peer, options: list[str], python: str | None = None) -> dict[str, Any]:
    """The peer's numbers; ``python`` names an interpreter that already has the peer."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peer-")))
        interpreter = python or stack.enter_context(_environment(peer, folder))
        result = folder / "result.json"
        script = Path(__file__).with_name(peer.script)
        _call([interpreter, str(script), str(result), *options], f"run {peer.name}", quiet=False)
        answer: dict[str, Any] = json.loads(result.read_text())
        return answer


@contextlib.contextmanager
def _environment(peer: Peer, folder: Path) -> Iterator[str]:
    print(f"installing {peer.requirement} with {TORCH} in a throw-away environment ...", file=sys.stderr, flush=True)
    venv.create(folder / "env", with_pip=True)
    python = str(folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python")
    constraint = folder / "constraint.txt"
    constraint.write_text(f"{TORCH}\n")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _call([*pip, TORCH, "numpy"], f"install {TORCH}")
    # The constraint keeps the peer from replacing torch.
    _call([*pip, peer.requirement, *_same_versions(peer), "-c", str(constraint)], f"install {peer.requirement}")
    yield python


def _same_versions(peer: Peer) -> list[str]:
    pinned = []
    for package in peer.same_version:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            pinned.append(f"{package}=={importlib.metadata.version(package)}")
    return pinned


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
