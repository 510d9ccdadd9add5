"""`endoscope doctor`: what is there is said, what is wrong has a remedy."""

import importlib.metadata
import importlib.util
import socket
from pathlib import Path

import pytest

from endoscope.cli import doctor, main
from endoscope.server import launch, page_files
from endoscope.stats import kernels
from tests.house.tree import run_python


def shown(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert main(["doctor", *map(str, arguments)]) == code
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout may not have built it."""
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").touch()
    monkeypatch.setattr(page_files, "STATIC", tmp_path / "static")


def test_all_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, tmp_path)
    for name in doctor.LOOKS:
        assert f"  {name}  " in text
    assert f"ok     torch         torch {importlib.metadata.version('torch')}\n" in text
    assert f"ok     folder        {tmp_path} can be written\n" in text
    assert text.endswith("Everything that is needed is there.\n")
    assert not list(tmp_path.glob(".endoscope-doctor-*"))


def test_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    text = shown(capsys, tmp_path)
    assert "note   torch         PyTorch is not installed, so recordings can be shown, but not made\n" in text
    assert '→ pip install "endoscope[torch]"' in text


def test_no_look_imports_torch_where_there_is_none() -> None:
    result = run_python("sys.modules['torch'] = None\nfrom endoscope.cli import main; sys.exit(main(['doctor']))")
    assert "failed" not in result.stdout and "PyTorch is not installed" in result.stdout, result.stdout


def test_an_old_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.5.1+cpu")
    text = shown(capsys, tmp_path, code=1)
    assert "WRONG  torch         torch 2.5.1+cpu is too old\n" in text and 'pip install --upgrade "torch>=2.6"' in text
    assert text.endswith("1 of 10 tests found a problem.\n")


def test_without_kernels_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernels, "load", lambda: None)
    (tmp_path / "static" / "index.html").unlink()
    text = shown(capsys, tmp_path, code=1)
    assert "note   kernels       statistics are computed by torch, which is slower" in text
    assert "WRONG  page          the page is not part of this installation\n" in text


def test_a_port_that_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(launch, "FIRST_PORT", port)
        assert f"note   port          Port {port} is in use by another program" in shown(capsys, tmp_path)
    assert f"ok     port          port {port} is free" in shown(capsys, tmp_path)


def test_a_folder_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    text = shown(capsys, tmp_path / "file" / "runs", code=1)
    assert f"WRONG  folder        {tmp_path / 'file'} is a file, so no trial can be recorded in" in text


def test_a_disk_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_LEAST_FREE_BYTES", 10**18)
    assert "WRONG  disk          only " in shown(capsys, tmp_path, code=1)


def test_a_look_that_fails_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr(kernels, "load", fail)
    text = shown(capsys, tmp_path, code=1)
    assert "WRONG  kernels       this test failed with an error: RuntimeError: odd\n" in text and "ok     page" in text
