"""Somebody who has never seen the page finds what is wrong: the cause, the layer, the step.

Every click is counted. With findings two are enough; by pictures alone, four.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import endoscope
from endoscope.demo.training import TRIALS, Settings, begin_run, train
from tests.browser import six_trials
from tests.browser.conftest import PATIENCE_MS, Serve, Visit, _serve, _stop, settle
from tests.browser.helpers import look, state_of

LONG_MS = 6 * PATIENCE_MS
FAULT_AT = six_trials.FAULT_AT


@pytest.fixture(scope="module")
def six(six_folder: Path) -> Iterator[str]:
    served = _serve(six_folder)
    yield served.address
    _stop(served.process)


class Newcomer:
    """Clicks what a sentence of the page names, and counts."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, role: str, name: str, inside: str = "main") -> None:
        self.page.get_by_role(inside).get_by_role(role, name=name).first.click()  # type: ignore[arg-type]
        self.clicks += 1
        settle(self.page)


def checked(page: Page) -> Page:
    expect(page.locator(".overview-name")).not_to_have_count(0)
    expect(page.get_by_text("not checked yet")).to_have_count(0, timeout=LONG_MS)
    settle(page)
    return page


@pytest.mark.parametrize(
    ("trial", "node", "step"),
    [
        ("dead-block", six_trials.DEAD, FAULT_AT),
        ("own-log-softmax", "output", FAULT_AT),
        ("stop-gradient", "blocks.0", 0),
        ("high-lr", "", 0),
    ],
)
def test_with_findings_two_clicks_are_enough(six: str, visit: Visit, trial: str, node: str, step: int) -> None:
    newcomer = Newcomer(checked(visit(six, view=None)))
    newcomer.click("button", trial)
    state = state_of(newcomer.page)
    assert newcomer.clicks <= 2
    assert state["trial"] == trial and state["node"].startswith(node) and int(state["step"]) <= step + six_trials.EVERY
    side = newcomer.page.get_by_role("complementary", name="Selected layer")
    expect(side).to_contain_text("Try:")  # the cause, and what to do about it


@pytest.mark.parametrize("trial", ["baseline", "gelu"])
def test_who_is_well_is_said_to_be(six: str, visit: Visit, trial: str) -> None:
    page = checked(visit(six, view=None))
    expect(page.get_by_role("row", name=trial)).to_contain_text("nothing found")


def test_by_pictures_alone_the_dead_layer_and_its_step(six: str, visit: Visit) -> None:
    """No finding is read: the row that changes, its column, and the histogram of the tensor."""
    newcomer = Newcomer(visit(look(six, tab="overview", trials="dead-block", trial="dead-block")))
    page = newcomer.page
    newcomer.click("button", "Layers", inside="banner")
    page.get_by_role("radio", name="vs. other blocks").locator("xpath=..").click()
    newcomer.clicks += 1
    settle(page)
    row, column = bluest(page)
    box = page.locator(".layers-cells").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + column, box["y"] + row)
    newcomer.clicks += 1
    settle(page)
    state = state_of(page)
    assert state["node"] == six_trials.DEAD and abs(int(state["step"]) - FAULT_AT) <= six_trials.EVERY
    newcomer.click("button", "Look at the tensor")
    expect(page.get_by_role("region", name="Selected tensor")).to_contain_text("zero")
    assert newcomer.clicks <= 4


def bluest(page: Page) -> tuple[float, float]:
    """Where the darkest blue begins: what an eye is drawn to. Pixels of the page, from the corner of the heat."""
    script = """(c) => {
        const copy = new OffscreenCanvas(c.width, c.height).getContext("2d", { willReadFrequently: true });
        copy.drawImage(c, 0, 0);
        const { data, width } = copy.getImageData(0, 0, c.width, c.height);
        const ratio = c.height / c.clientHeight;
        let best = null;
        for (let at = 0; at < data.length; at += 4) {
            if (data[at + 3] === 0 || data[at + 2] < data[at] + 60) continue;
            const [x, y] = [(at / 4) % width, Math.floor(at / 4 / width)];
            const place = { dark: data[at] + data[at + 1] + data[at + 2], x, y };
            if (!best || place.dark < best.dark || (place.dark === best.dark && place.x < best.x)) best = place;
        }
        return [best.y / ratio + 4, best.x / ratio + 2];
    }"""
    row, column = page.locator(".layers-cells").first.evaluate(script)
    return row, column


def test_the_demo(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    """The bug that the tutorial hunts: an activation behind the last layer of `suspect`, before the sigmoid."""
    for trial, is_suspect in TRIALS.items():
        settings = Settings()
        run = begin_run(tmp_path / "runs", trial, settings)
        train(run, settings, activate_last=is_suspect, say=lambda said: None)
        run.close()
    newcomer = Newcomer(checked(visit(serve(tmp_path / "runs").address, view=None)))
    newcomer.page.locator(".overview-go").first.click()
    newcomer.clicks += 1
    settle(newcomer.page)
    state = state_of(newcomer.page)
    assert state["trial"] == "suspect" and state["node"] and newcomer.clicks <= 2
    first = next(iter(endoscope.diagnose(tmp_path / "runs")))
    assert (state["node"], int(state["step"])) == (first.node, first.first_step)
