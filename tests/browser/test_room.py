"""There is room for everything: nothing pushes the workspace away, at any width, nor at twice the zoom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import endoscope
from tests.browser.conftest import Serve, Visit, settle
from tests.browser.helpers import go_to_tab, look, tensor

WIDTHS = [768, 1024, 1280, 1440, 1600, 1920]
VIEWS = ("Graph", "Compare", "Metrics", "Network", "Run")
NARROW = 900  # pixels: below that the page is one column, which the browser scrolls downwards

AWAY = """() => [
  document.documentElement.scrollLeft, document.body.scrollLeft,
  ...[...document.querySelectorAll('.page, .stage-of-page, .layer, .graph-tab')].flatMap(
    (element) => [element.scrollTop, element.scrollLeft]),
].filter((number) => number !== 0)"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = """() => [...document.querySelectorAll('.top-bar > *, .selectors *')].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) && !element.closest('[popover]');
}).map((element) => element.className)"""


def reach_everything(page: Page) -> None:
    """What moves a page against its will: focus that goes to the last control, and wheels over panels."""
    side = tensor(page)
    side.get_by_role("radio").last.focus()
    box = side.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, min(box["y"] + 200, (page.viewport_size or {})["height"] - 5))
    for _ in range(8):
        page.mouse.wheel(0, 900)
    settle(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_workspace_never_scrolls_away(visit: Visit, address: str, width: int) -> None:
    page = visit(look(address, node="cell", order="n", tab="graph"), viewport={"width": width, "height": 800})
    reach_everything(page)
    assert page.evaluate(AWAY) == [] and page.evaluate(WIDER) <= 0
    if width > NARROW:
        assert page.evaluate("scrollY") == 0
        expect(page.get_by_role("banner")).to_be_in_viewport(ratio=1)
    page.evaluate("scrollTo(0, 0)")
    for name in VIEWS:
        go_to_tab(page, name)
        assert page.evaluate(WIDER) <= 0, name
        assert page.evaluate(CUT) == [], name


@pytest.mark.parametrize("width", [1280, 1920])
def test_at_twice_the_zoom_everything_can_be_reached(visit: Visit, address: str, width: int) -> None:
    small = {"width": width // 2, "height": 400}  # what a browser at 200 % says
    page = visit(look(address, node="cell", order="n", tab="graph"), viewport=small, device_scale_factor=2)
    assert page.evaluate(WIDER) <= 0 and page.evaluate(CUT) == []
    heading = tensor(page).get_by_role("heading", level=2)
    heading.scroll_into_view_if_needed()
    expect(heading).to_be_in_viewport()
    last = tensor(page).get_by_role("radio").last
    last.scroll_into_view_if_needed()
    expect(last).to_be_attached()
    assert page.evaluate(WIDER) <= 0


@pytest.mark.parametrize("width", [1280, 1440, 1920])
def test_a_folded_side_frees_its_room(visit: Visit, address: str, width: int) -> None:
    page = visit(look(address, tab="graph"), viewport={"width": width, "height": 800})
    stage = page.get_by_role("application", name="Dependency graph")
    before = (stage.bounding_box() or {})["width"]
    page.get_by_role("button", name="Fold tensor").click()
    settle(page)
    after = (stage.bounding_box() or {})["width"]
    assert after > before + 250
    assert (page.get_by_role("complementary", name="Tensor").bounding_box() or {})["width"] < 40


@pytest.mark.parametrize("corner", [(1, 1), (0, 1), (1, 0)])
def test_a_tooltip_stays_in_the_window(visit: Visit, address: str, corner: tuple[int, int]) -> None:
    page = visit(look(address, tab="graph", open="*"), viewport={"width": 1024, "height": 700})
    place = page.evaluate(
        """([right, below]) => {
          const canvas = document.querySelector('.stage-canvas').getBoundingClientRect();
          return [right ? canvas.right - 3 : canvas.left + 3, below ? canvas.bottom - 3 : canvas.top + 3];
        }""",
        list(corner),
    )
    scrubber = page.get_by_role("slider", name="Training step").bounding_box()
    assert scrubber is not None
    for x, y in (place, (scrubber["x"] + scrubber["width"] - 2, scrubber["y"] + 5)):
        page.mouse.move(x, y)
        page.wait_for_timeout(100)
        note = page.locator(".tooltip")
        if not note.count():
            continue
        box = note.bounding_box()
        assert box is not None
        assert box["x"] >= 0 and box["y"] >= 0
        assert box["x"] + box["width"] <= 1024 and box["y"] + box["height"] <= 700


def test_one_metric_has_all_the_room(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    with endoscope.Run(tmp_path / "runs", trial="one") as run:
        for step in range(20):
            with run.step():
                run.metric("loss", 1 / (step + 1))
    page = visit(look(serve(tmp_path / "runs").address, tab="metrics"))
    box = page.get_by_role("region", name="Metric loss").bounding_box()
    assert box is not None and box["width"] > 1300


def test_camera_and_zoom_are_in_the_address(page: Page, visit: Visit) -> None:
    page.get_by_role("button", name="Zoom in").click()
    expect(page).to_have_url(re.compile("camera="))
    other = visit(page.url)
    camera = "() => new URLSearchParams(location.hash.slice(1)).get('camera')"
    assert other.evaluate(camera) == page.evaluate(camera)
    pictures = [each.get_by_role("application", name="Dependency graph").screenshot() for each in (page, other)]
    assert len(pictures[0]) == pytest.approx(len(pictures[1]), rel=0.05)
    page.get_by_role("button", name="Fit all (F)").click()
    expect(page).not_to_have_url(re.compile("camera="))
