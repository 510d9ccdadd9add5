"""A tab of somebody's own: one file with the panel, one word in the list of tabs; then the page is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ADDRESS, Visit, settle
from tests.contract.growth.plug_in import TRAIN, install, run
from tests.contract.growth.test_statistic import PLUG_IN
from tests.house.tree import ROOT, SRC

PANEL = """
import { useStatistics } from "../../state/data";
import { useShown } from "../../state/page";
import { TabPanel } from "../tab_panel";

export function Panel() {
  const { trial } = useShown("a");
  const labels = useStatistics(trial).map(({ label }) => label);
  return <TabPanel label="Vocabulary"><p id="vocabulary">{labels.join(", ")}</p></TabPanel>;
}
"""

SERVE = """
import runpy, sys
from pathlib import Path
from endoscope.server import page_files
page_files.STATIC = Path(sys.argv[1])
sys.argv = ["endoscope", "show", sys.argv[2], "--port", "0"]
runpy.run_module("endoscope", run_name="__main__")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page with one tab more."""
    folder = tmp_path_factory.mktemp("sources")
    frontend = folder / "frontend"
    shutil.copytree(ROOT / "frontend", frontend, ignore=shutil.ignore_patterns("node_modules"))
    (frontend / "node_modules").symlink_to((ROOT / "frontend" / "node_modules").resolve())
    panel = frontend / "src" / "panels" / "vocabulary" / "panel.tsx"
    panel.parent.mkdir()
    panel.write_text(PANEL, encoding="utf-8")
    look = frontend / "src" / "state" / "look.ts"
    text = look.read_text(encoding="utf-8")
    look.write_text(text.replace('"findings",\n] as const', '"findings", "vocabulary",\n] as const'), encoding="utf-8")
    assert "vocabulary" in look.read_text(encoding="utf-8")
    for tool in ("types", "build"):
        command = [sys.executable, str(frontend / "bundle.py"), tool]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "src" / "endoscope" / "server" / "static"


@pytest.fixture
def address(built: Path, tmp_path: Path) -> Iterator[str]:
    """That page, and a recording with a statistic of somebody's own, served by a process that does not know it."""
    assert run(install(tmp_path, PLUG_IN), "-c", TRAIN, str(tmp_path / "runs")).returncode == 0
    command = [sys.executable, "-u", "-c", SERVE, str(built), str(tmp_path / "runs")]
    process = subprocess.Popen(command, env={"PYTHONPATH": str(SRC), "PATH": ""}, text=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    found = ADDRESS.search(process.stdout.readline())
    assert found is not None
    yield found[0]
    process.terminate()
    process.communicate(timeout=30)


def test_it_has_a_place_in_the_bar_and_in_the_address(address: str, visit: Visit) -> None:
    page = visit(address)
    page.get_by_role("navigation", name="Tabs").get_by_role("button", name="More").click()
    page.get_by_role("navigation", name="Tabs").get_by_role("button", name="Vocabulary").click()
    expect(page.locator("#vocabulary")).to_contain_text("std, abs mean, min")
    expect(page.locator("#vocabulary")).to_contain_text("heavy tails")
    settle(page)  # the address is written when all is drawn
    assert "tab=vocabulary" in page.url


def test_a_registered_statistic_is_in_the_menus_and_drawn(address: str, visit: Visit) -> None:
    page = visit(
        f"{address}#v=1&tab=graph&trial=first&of=value&node=1&heat.statistic=tailedness&series.statistic=tailedness"
    )
    menu = page.get_by_label("show", exact=True)
    expect(menu.locator("option:checked")).to_have_text("heavy tails")
    expect(page.get_by_label("Statistic over training").locator("option:checked")).to_have_text("heavy tails")
    expect(page.get_by_label("heavy tails of 1 over steps")).to_be_visible()
