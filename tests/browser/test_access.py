"""By keyboard alone, for screen readers, in light and in dark, on small and large screens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import six_trials
from tests.browser.conftest import PATIENCE_MS, Visit, _serve, _stop, settle
from tests.browser.helpers import go_to_tab, look, press, press_radio, select_node, state_of, step_shown, tensor

TABS = ("Overview", "Layers", "Graph", "Compare", "Metrics", "Network", "Notes", "Views", "Run")
AXE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
SIZES = ({"width": 1280, "height": 800}, {"width": 1920, "height": 1080})


@pytest.fixture(scope="module")
def six(six_folder: Path) -> Iterator[str]:
    served = _serve(six_folder)
    yield served.address
    _stop(served.process)


def checked(page: Page) -> None:
    expect(page.locator(".overview-name")).to_have_count(6)
    expect(page.get_by_text("not checked yet")).to_have_count(0, timeout=6 * PATIENCE_MS)
    settle(page)


def faults(page: Page) -> list[str]:
    """What axe-core calls serious or critical: rule and place."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Visit, address: str, scheme: str) -> None:
    page = visit(address, color_scheme=scheme)
    select_node(page, "cell")
    for name in TABS:
        go_to_tab(page, name)
        assert faults(page) == [], name
    page.keyboard.press("?")
    assert faults(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_where_something_was_found(visit: Visit, six: str, scheme: str) -> None:
    """Overview with findings and each of its charts, and layers with a finding, folded rows and each reference."""
    page = visit(six, view=None, color_scheme=scheme)
    checked(page)
    for chart in ("none", "parallel", "scatter"):
        press_radio(page, "chart", chart)
        assert faults(page) == [], chart
    page.locator(".overview-go").first.click()
    settle(page)
    expect(page.get_by_role("complementary", name="Selected layer")).to_contain_text("Try:")
    for reference in ("as it is", "vs. own past", "vs. other blocks", "vs. baseline"):
        press_radio(page, "colour", reference)
        assert faults(page) == [], reference


def test_overview_and_layers_by_keyboard(visit: Visit, six: str) -> None:
    """From the first page to the finding, through layers and steps, into the graph and back, without a pointer."""
    page = visit(six, view=None)
    checked(page)
    reached = ""
    for _ in range(40):
        page.keyboard.press("Tab")
        reached = page.evaluate("() => document.activeElement.innerText")
        if "units are zero" in reached:
            break
    assert "units are zero" in reached and six_trials.DEAD in reached
    press(page, "Enter")
    state = state_of(page)
    assert (state["tab"], state["node"], state["step"]) == ("layers", six_trials.DEAD, str(six_trials.FAULT_AT))
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.getAttribute('role')") == "application":
            break
    press(page, "ArrowRight", "ArrowUp")
    state = state_of(page)
    assert state["node"] == six_trials.DEAD.replace("act", "up")
    assert int(state["step"]) == six_trials.FAULT_AT + six_trials.EVERY
    press(page, "Enter")
    assert state_of(page)["tab"] == "graph"
    expect(tensor(page).get_by_role("heading", level=2)).to_have_text(state["node"])
    press(page, "1")
    assert state_of(page).get("tab", "overview") == "overview"


def test_light_and_dark_differ_and_follow_the_system(visit: Visit, address: str) -> None:
    page = visit(address, color_scheme="light")
    color = "() => getComputedStyle(document.body).backgroundColor"
    light, picture = page.evaluate(color), page.get_by_role("application").first.screenshot()
    page.emulate_media(color_scheme="dark")
    settle(page)
    assert page.evaluate(color) != light
    assert page.get_by_role("application").first.screenshot() != picture  # what is drawn changes, too


@pytest.mark.parametrize("size", SIZES, ids=["1280x800", "1920x1080"])
def test_nothing_is_cut_off(visit: Visit, address: str, size: dict[str, int]) -> None:
    page = visit(address, viewport=size)
    for name in TABS:
        go_to_tab(page, name)
        width, height = page.evaluate("() => [document.documentElement.scrollWidth, document.body.scrollHeight]")
        assert width <= size["width"] and height <= size["height"], name


def test_everything_by_keyboard(page: Page) -> None:
    press(page, "/")
    page.keyboard.type("cell")
    press(page, "Enter")
    assert state_of(page)["node"] == "cell"
    last = step_shown(page)
    press(page, "[", "[")
    assert step_shown(page) < last
    press(page, "]")
    press(page, "g")
    assert state_of(page)["of"].startswith("gradient:")
    press(page, "s")
    assert "sample" in state_of(page)
    press(page, "y")
    assert "type" in state_of(page)
    press(page, "p")
    assert state_of(page)["pass"] == "2"
    press(page, "b")
    assert state_of(page)["aggregate"] == "std"
    for place, name in enumerate(TABS, start=1):
        press(page, str(place))
        assert state_of(page).get("tab", "overview") == name.lower()
    press(page, "3", "c")
    assert state_of(page)["tab"] == "compare"
    press(page, "c")
    assert state_of(page)["tab"] == "graph"


def test_help_and_trials_by_keyboard(page: Page) -> None:
    press(page, "?")
    dialog = page.get_by_role("dialog", name="Keys and help")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("step before of the same type")
    press(page, "Escape")
    expect(dialog).to_be_hidden()
    press(page, "t")
    expect(page.get_by_role("radio", name="Look at plain")).to_be_visible()
    press(page, "ArrowDown")
    press(page, "Escape")
    assert state_of(page)["trial"] == "plain"


def test_every_control_can_be_reached_by_tabulator(visit: Visit, address: str) -> None:
    page = visit(look(address, side="outline"))
    names = set()
    for _ in range(100):
        page.keyboard.press("Tab")
        names.add(page.evaluate(
            "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.labels?.[0]?.innerText"
            " ?? document.activeElement.innerText"
        ))  # fmt: skip
    for expected in ("Search nodes and modules", "Training step", "Outline", "Fold outline", "arrange"):
        assert expected in names, names


def test_the_outline_by_keyboard(visit: Visit, address: str) -> None:
    page = visit(look(address, side="outline"))
    outline = page.get_by_role("tree", name="Outline")
    outline.focus()
    press(page, "Home", "ArrowDown", "Enter")
    chosen = outline.get_by_role("treeitem", selected=True)
    expect(chosen).to_have_count(1)
    expect(tensor(page).get_by_role("heading", level=2)).to_have_text(state_of(page)["node"])
