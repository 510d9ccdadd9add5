"""Memory that a step frees stays with the process while a run records. Pages are counted, not timed."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import endoscope
from endoscope.recording.output import heap

PROGRAM = """
import ctypes, json, resource
import torch
from endoscope.recording.output.heap import Heap


def faults():  # of memory that is freed all at once, as by a step that lets go of what it held
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [torch.ones(2**18) for _ in range(150)]
    del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def fewest():
    return min(faults() for _ in range(5))


ctypes.CDLL(None).mallopt(-3, 131072)  # every tensor is asked of the system, and given back to it
found = {"before": fewest()}
Heap().keep()
found["kept"] = fewest()
print(json.dumps(found))
"""
PAGES = 150 * 2**20 // 4096
SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")

glibc = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"),
    reason="only glibc hands memory back like this",
)


def faults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **environment: str) -> dict[str, int]:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "program.py").write_text(PROGRAM)
    printed = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, check=True, timeout=300
    )
    found: dict[str, int] = json.loads(printed.stdout.splitlines()[-1])
    return found


@glibc
def test_freed_memory_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = faults(monkeypatch, tmp_path)
    assert found["before"] > PAGES / 4
    assert found["kept"] < PAGES / 50


@glibc
def test_what_the_user_has_set_stays_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = faults(monkeypatch, tmp_path, MALLOC_TRIM_THRESHOLD_="131072")
    assert found["kept"] > PAGES / 4


@pytest.mark.parametrize(
    ("environment", "decided"),
    [
        ({}, False),
        ({"GLIBC_TUNABLES": "glibc.cpu.x86_ibt=on"}, False),
        ({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1"}, True),
        ({"MALLOC_TOP_PAD_": "0"}, True),
    ],
)
def test_how_a_user_says_it(environment: dict[str, str], decided: bool) -> None:
    assert heap._user_decided(environment) is decided


def test_one_run_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[int] = []
    monkeypatch.setattr(heap, "_say", said.append)
    monkeypatch.setattr(heap, "_keeping", 0)
    one, other = heap.Heap(), heap.Heap()
    for run in (one, one, other):
        run.keep()
    for run in (one, one):
        run.let_go()
    assert said == [heap._KEPT_BYTES]
    other.let_go()
    assert said == [heap._KEPT_BYTES, heap._TRIMMED_FROM]


def test_a_run_asks_when_it_records_and_no_longer_than_it_is_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[int] = []
    monkeypatch.setattr(heap, "_say", said.append)
    monkeypatch.setattr(heap, "_keeping", 0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="late", when=endoscope.policies.at({1})) as run:
        run.watch(model, optimizer)
        for expected in ([], [heap._KEPT_BYTES], [heap._KEPT_BYTES]):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            assert said == expected
    assert said == [heap._KEPT_BYTES, heap._TRIMMED_FROM]
