"""Whatever is wrong, a sentence says what it is and what to do."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Serve, Visit, ended, settle
from tests.browser.helpers import go_to_tab, look


def test_a_folder_that_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "holiday.txt").write_text("sun")
    code, said = ended(tmp_path)
    assert code != 0 and "is no recording" in said and "endoscope.Run" in said
    assert "Traceback" not in said


def test_a_port_in_use(runs: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = ended(runs, "--port", str(taken.getsockname()[1]))
    assert code != 0 and "is in use by another program" in said and "Leave --port out" in said
    assert "Traceback" not in said


def test_a_recording_of_a_newer_version(runs: Path, tmp_path: Path, serve: Serve, visit: Visit) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs / "plain", folder / "plain")
    for path, key in [(folder / "plain/trial.json", "format"), (folder / "plain/rank-0/journal.jsonl", "format")]:
        path.write_text(path.read_text().replace(f'"{key}":1', f'"{key}":99').replace(f'"{key}": 1', f'"{key}": 99'))
    page = visit(serve(folder).address)
    expect(page.get_by_role("note")).to_contain_text("plain")
    expect(page.get_by_role("note")).to_contain_text("newer")


@pytest.mark.parametrize("table", ["stats", "samples"])
def test_a_damaged_file(
    runs: Path, tmp_path: Path, serve: Serve, visit: Visit, table: str, complaints: list[str]
) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs / "leaky", folder / "leaky")
    file = folder / f"leaky/rank-0/{table}-0001.arrow"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    page = visit(look(serve(folder).address, side="outline"))
    expect(page.get_by_role("region", name="Selected tensor")).to_be_visible()  # the rest is shown
    for node in ("cell", "partial sum"):
        page.get_by_role("tree", name="Outline").get_by_role("treeitem", name=node).first.click()
    settle(page)
    page.reload()
    settle(page)
    if table == "stats":
        expect(page.get_by_text("Parts of leaky cannot be read")).to_be_visible()
    # The console lists requests that were answered by "it is damaged".
    complaints[:] = [line for line in complaints if "404" not in line]


def test_one_trial_of_two_cannot_be_read(runs: Path, tmp_path: Path, serve: Serve, visit: Visit) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs, folder)
    described = json.loads((folder / "leaky/trial.json").read_text())
    assert described  # it is a trial
    for file in (folder / "leaky/rank-0").glob("*.arrow"):
        file.write_bytes(b"")
    page = visit(look(serve(folder).address, trial="plain"))
    expect(page.get_by_role("region", name="Selected tensor")).to_be_visible()


def test_a_view_that_raises(runs: Path, tmp_path: Path, serve: Serve, visit: Visit) -> None:
    views = tmp_path / "views.py"
    views.write_text("def broken(selection, recording):\n    return 1 / 0\n")
    page = visit(serve(runs, "--views", views).address)
    panel = go_to_tab(page, "Views")
    expect(panel).to_contain_text("ZeroDivisionError")
    expect(panel).to_contain_text("line 2")


def test_a_file_of_views_that_cannot_be_read(runs: Path, tmp_path: Path, serve: Serve, visit: Visit) -> None:
    views = tmp_path / "views.py"
    views.write_text("def broken(selection, recording:\n")
    page = visit(serve(runs, "--views", views).address)
    expect(go_to_tab(page, "Views")).to_contain_text("SyntaxError")


def test_the_server_ends(runs: Path, serve: Serve, visit: Visit, complaints: list[str]) -> None:
    served = serve(runs)
    page = visit(served.address)
    served.process.terminate()
    served.process.wait(30)
    expect(page.get_by_role("alert")).to_contain_text("start it again with endoscope show")
    complaints.clear()  # that nobody answers is in the console, too
