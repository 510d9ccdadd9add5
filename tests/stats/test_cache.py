"""The compiled kernels: compiled once, kept, loaded without numba, and done without if need be.

Each case is a fresh interpreter. Compiling takes long, so only the cases that are about compiling do it; the others
are handed what was compiled for this test run.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from endoscope.schema import folders
from endoscope.stats import cache, compiled, warm
from tests.house.tree import SRC

MEASURE = """
import json, sys
{before}
import torch
from endoscope import stats
origin = stats.warm()
measured = stats.measure([stats.Request(torch.arange(6.0).reshape(2, 3), 0)] * 2)
again = stats.warm()
stats.measure([stats.Request(torch.ones(2), 0)])
print(json.dumps({{
    "origin": origin, "again": again, "numba": "numba" in sys.modules, "llvmlite": "llvmlite" in sys.modules,
    "mean": measured.whole["mean"].tolist(), "samples": measured.samples["max"].tolist(),
}}))
"""

# In place of the compiler: hand out what was compiled before.
READY_MADE = """
import types, pathlib
fake = types.ModuleType("endoscope.stats.kernels.build")
fake.build = lambda machine: ({symbol!r}, pathlib.Path({code!r}).read_bytes())
sys.modules[fake.__name__] = fake
"""


def start(folder: Path, before: str = "", **variables: str) -> "subprocess.Popen[str]":
    environment: Mapping[str, str] = {
        **os.environ, "XDG_CACHE_HOME": str(folder), "PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1", **variables,
    }  # fmt: skip
    command = [sys.executable, "-c", MEASURE.format(before=before)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: "subprocess.Popen[str]") -> tuple[dict[str, Any], str]:
    """What the process found, and what it said on the way."""
    out, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    found = json.loads(out)
    assert found["mean"] == [2.5, 2.5] and found["samples"] == [2.0, 5.0, 2.0, 5.0]
    return found, said


def run(folder: Path, before: str = "", **variables: str) -> tuple[dict[str, Any], str]:
    return finish(start(folder, before, **variables))


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The symbol and a file with the machine code of this machine."""
    if warm() not in ("cache", "compiled"):
        pytest.fail("there are no compiled kernels on this machine")
    kept = cache.read(compiled.key())
    assert kept is not None
    path = tmp_path_factory.mktemp("code") / "code"
    path.write_bytes(kept[1])
    return kept[0], path


@pytest.fixture
def ready_made(code: tuple[str, Path]) -> str:
    return READY_MADE.format(symbol=code[0], code=str(code[1]))


@pytest.fixture
def warm_folder(code: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.write(compiled.key(), code[0], code[1].read_bytes())
    return tmp_path


@pytest.mark.slow
def test_two_processes_compile_at_once_and_a_third_finds_it(tmp_path: Path) -> None:
    processes = [start(tmp_path) for _ in range(2)]
    for found, said in map(finish, processes):
        assert found["origin"] == found["again"] == "compiled"
        assert said.count("\n") == 1 and said.startswith("endoscope: compiling the kernels for statistics; once")
    assert len(list((tmp_path / "endoscope").iterdir())) == 1  # nothing half-written is left
    found, said = run(tmp_path)
    assert found["origin"] == "cache" and said == ""


def test_a_warm_start_is_silent_and_without_numba(warm_folder: Path) -> None:
    found, said = run(warm_folder)
    assert (found["origin"], found["numba"], said) == ("cache", False, "")


@pytest.mark.skipif(not sys.platform.startswith("linux") or platform.machine() != "x86_64", reason="needs LLVM there")
def test_a_warm_start_needs_no_compiler_at_all(warm_folder: Path) -> None:
    found, said = run(warm_folder, "sys.modules['numba'] = sys.modules['llvmlite'] = None")
    assert found["origin"] == "cache" and said == ""


def test_where_the_code_cannot_be_loaded_otherwise_the_compiler_does_it(warm_folder: Path) -> None:
    refuse = """
from endoscope.stats import machine_code
def load(code, function):
    raise machine_code.Unsupported("tried")
machine_code.load = load
"""
    found, said = run(warm_folder, refuse)
    assert (found["origin"], found["llvmlite"], said) == ("cache", True, "")


@pytest.mark.parametrize("damage", ["empty", "cut", "one byte", "other text", "a folder"])
def test_a_damaged_file_is_replaced(warm_folder: Path, ready_made: str, damage: str) -> None:
    (path,) = (warm_folder / "endoscope").iterdir()
    good = path.read_bytes()
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    else:
        flipped = good[:-100] + bytes([good[-100] ^ 1]) + good[-99:]
        path.write_bytes({"empty": b"", "cut": good[:-50], "one byte": flipped, "other text": b"\n\n\n\n"}[damage])
    found, said = run(warm_folder, ready_made)
    assert said.startswith("endoscope: compiling")
    if damage == "a folder":  # that is in the way for good, and said
        assert found["origin"] == "compiled, not kept" and "cannot be kept" in said
    else:
        assert found["origin"] == "compiled" and said.count("\n") == 1
        assert path.read_bytes() == good


def test_a_folder_that_cannot_be_written(tmp_path: Path, ready_made: str) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    found, said = run(file, ready_made)
    assert found["origin"] == found["again"] == "compiled, not kept"
    assert [line.split()[1] for line in said.splitlines()] == ["compiling", "they"]
    assert "cannot be kept" in said and "XDG_CACHE_HOME may help" in said


@pytest.mark.parametrize("missing", ["numba", "llvmlite"])
def test_without_a_compiler_torch_is_used(tmp_path: Path, missing: str) -> None:
    found, said = run(tmp_path, f"sys.modules[{missing!r}] = None")
    assert found["origin"] == found["again"] == "plain torch"
    assert said.count("plain torch calls, which is many times slower") == 1  # once, not once per call
    assert f"{missing} is not installed" in said and "compiling" not in said
    assert 'pip install "endoscope[torch]"' in said


def test_a_compiler_that_fails(tmp_path: Path) -> None:
    broken = READY_MADE.format(symbol="", code="no such file")
    found, said = run(tmp_path, broken)
    assert found["origin"] == "plain torch" and "FileNotFoundError" in said


def test_the_key_depends_on_the_machine_and_on_the_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key = cache.source_key(("a", "b"))
    assert key == cache.source_key(("a", "b")) != cache.source_key(("a", "c"))
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"other source")
    assert cache.source_key(("a", "b")) != key


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "chosen"}, Path("chosen", "endoscope")),
        ("linux", {"HOME": "home"}, Path("home", ".cache", "endoscope")),
        ("darwin", {"HOME": "home"}, Path("home", "Library", "Caches", "endoscope")),
        ("win32", {"LOCALAPPDATA": "local"}, Path("local", "endoscope")),
    ],
)
def test_where_caches_are(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: Path
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert folders.user_cache() == folder
