"""By keyboard alone, for screen readers, in light and in dark, on small and large screens."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit, settle
from tests.browser.helpers import go_to_tab, look, press, select_node, state_of, step_shown, tensor

TABS = ("Overview", "Layers", "Graph", "Compare", "Metrics", "Network", "Notes", "Views", "Run")
AXE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
SIZES = ({"width": 1280, "height": 800}, {"width": 1920, "height": 1080})


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
