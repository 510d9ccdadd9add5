"""The page is built when the package is: only if it must be, with any node that will do, saying what is missing."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.house.tree import ROOT

SOURCES = {"index.html": "page", "package.json": "{}", "package-lock.json": "{}", "src/main.tsx": "main"}

# A stand-in for node: says a version, or notes how it was called.
FAKE_NODE = """#!/bin/sh
if [ "$1" = "--version" ]; then echo v{version}; exit 0; fi
echo "$@" >> "{log}"
exit {status}
"""


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """frontend/bundle.py, at work in a folder of its own."""
    spec = importlib.util.spec_from_file_location("bundle", ROOT / "frontend" / "bundle.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    frontend, static = tmp_path / "frontend", tmp_path / "static"
    for name, text in SOURCES.items():
        (frontend / name).parent.mkdir(parents=True, exist_ok=True)
        (frontend / name).write_text(text)
    (frontend / "node_modules").mkdir()
    static.mkdir()
    monkeypatch.setattr(module, "FRONTEND", frontend)
    monkeypatch.setattr(module, "STATIC", static)
    monkeypatch.setattr(module, "STAMP", static / ".stamp")
    monkeypatch.delenv(module.SWITCH, raising=False)
    return module


def fake_node(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str = "22.1.0", status: int = 0) -> Path:
    """Put a node and an npm first, and alone, on the PATH; returns the file with their calls."""
    log, bin_folder = folder / "calls.txt", folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    for name in ("node", "npm"):
        program = bin_folder / name
        program.write_text(FAKE_NODE.format(version=version, log=log, status=status))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_folder))
    return log


needs_shell = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for node is a shell script")


@needs_shell
def test_it_is_built_once_and_again_after_a_change(
    bundle: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fake_node(tmp_path, monkeypatch)
    bundle.build()
    assert [line.split()[0] for line in log.read_text().splitlines()] == [
        "ci",
        str(bundle.FRONTEND / "node_modules/vite/bin/vite.js"),
    ]
    bundle.build()
    assert len(log.read_text().splitlines()) == 2
    (bundle.FRONTEND / "src" / "main.tsx").write_text("changed")
    bundle.build()
    assert len(log.read_text().splitlines()) == 3  # packages are installed once


def test_the_stamp_follows_contents_and_names_not_times(bundle: ModuleType) -> None:
    before, main = bundle.content_stamp(), bundle.FRONTEND / "src" / "main.tsx"
    os.utime(main, (1, 1))
    assert bundle.content_stamp() == before
    main.rename(main.with_name("other.tsx"))
    assert bundle.content_stamp() != before


def test_node_is_asked_for_only_if_something_must_be_built(
    bundle: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bundle.needed_packages() == [bundle.NODE_PACKAGE]
    bundle.STAMP.write_text(bundle.content_stamp())
    assert bundle.needed_packages() == []


@needs_shell
def test_a_node_on_the_path_must_be_new_enough(
    bundle: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "_node_from_package", lambda: None)
    fake_node(tmp_path, monkeypatch, version="18.20.1")
    assert bundle.needed_packages() == [bundle.NODE_PACKAGE]
    with pytest.raises(bundle.PageError, match=r"needs Node\.js 20\.19 or newer.*is 18\.20.*pip install"):
        bundle.build()
    fake_node(tmp_path, monkeypatch, version="20.19.0")
    assert bundle.needed_packages() == []


@needs_shell
def test_without_any_node_the_message_says_so(
    bundle: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "_node_from_package", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(bundle.PageError, match="there is no `node` on the PATH"):
        bundle.find_node()


@needs_shell
def test_packages_that_cannot_be_installed_leave_no_stamp(
    bundle: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_node(tmp_path, monkeypatch, status=1)
    with pytest.raises(bundle.PageError, match="`npm ci` in frontend/ failed"):
        bundle.build()
    assert not bundle.up_to_date()


def test_the_page_can_be_left_out(
    bundle: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(bundle.SWITCH, "0")
    bundle.build()
    assert bundle.needed_packages() == []
    assert "without the page" in capsys.readouterr().err


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (ROOT / "frontend" / "package-lock.json").read_text(encoding="utf-8")
