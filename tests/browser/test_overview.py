"""The overview: what is wrong in any trial, and all trials as a table."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import six_trials
from tests.browser.conftest import PATIENCE_MS, Serve, Visit, _serve, _stop, settle
from tests.browser.helpers import look, state_of

LONG_MS = 6 * PATIENCE_MS  # checks have the lowest priority of all


@pytest.fixture(scope="module")
def six(six_folder: Path) -> Iterator[str]:
    """Where they are served."""
    served = _serve(six_folder)
    yield served.address
    _stop(served.process)


@pytest.fixture
def overview(six: str, visit: Visit) -> Page:
    page = visit(six, view=None)
    expect(page.locator(".overview-name")).to_have_count(6)
    expect(page.get_by_text("not checked yet")).to_have_count(0, timeout=LONG_MS)
    settle(page)
    return page


def region(page: Page) -> Locator:
    return page.get_by_role("region", name="What needs attention")


def lines(page: Page) -> Locator:
    return region(page).locator(".overview-line")


def rows(page: Page) -> list[str]:
    return page.locator(".overview-name").all_inner_texts()


def test_it_opens_first_and_says_what_is_wrong_the_worst_first(overview: Page) -> None:
    assert "overview" not in overview.url  # nothing was chosen
    expect(overview.get_by_role("region", name="Overview", exact=True)).to_be_visible()
    first = lines(overview).first
    expect(first).to_contain_text(f"{six_trials.DEAD}: 100% of")
    expect(first).to_contain_text(f"since step {six_trials.FAULT_AT}")
    expect(region(overview)).to_contain_text("Nothing found in baseline, gelu")
    severities = [line.get_attribute("class") for line in lines(overview).all()]
    assert ["error" in (name or "") for name in severities] == sorted(
        ["error" in (name or "") for name in severities], reverse=True
    )
    region(overview).get_by_role("button", name=re.compile(r"Show \d+ more")).click()
    settle(overview)
    assert lines(overview).count() > 5 and state_of(overview)["overview.all"] == "1"


def test_equal_findings_of_several_trials_are_one_line(
    six_folder: Path, tmp_path: Path, serve: Serve, visit: Visit
) -> None:
    for name in ("one", "two", "three"):
        shutil.copytree(six_folder / "dead-block", tmp_path / name)
    page = visit(serve(tmp_path).address, view=None)
    first = lines(page).first
    expect(first).to_contain_text("and 2 other trials", timeout=LONG_MS)
    assert sum("units are zero for every sample" in line for line in lines(page).all_inner_texts()) == 1
    trial = first.locator("b").nth(1).inner_text()
    other = next(name for name in ("one", "two", "three") if name != trial)
    first.get_by_role("button", name=other, exact=True).click()
    settle(page)
    state = state_of(page)
    assert (state["trial"], state["node"]) == (other, six_trials.DEAD)


def test_the_table_says_what_differs(overview: Page) -> None:
    row = overview.get_by_role("row", name="high-lr")
    expect(row).to_contain_text("lr 0.3")
    expect(overview.get_by_role("row", name="baseline")).to_contain_text("as usual")
    expect(overview.get_by_role("row", name="own-log-softmax")).to_contain_text("NaN")
    expect(overview.get_by_role("row", name="stop-gradient")).to_contain_text(f"detach [{six_trials.CUT}]")


def test_it_is_sorted_and_filtered_by_text_and_by_expressions(overview: Page) -> None:
    assert rows(overview)[0] in ("dead-block", "own-log-softmax")  # the worst
    overview.get_by_role("button", name="Trial", exact=True).click()
    settle(overview)
    assert rows(overview) == sorted(rows(overview))
    box = overview.get_by_role("searchbox", name="Filter trials")
    box.fill("lr > 1e-3 and findings = 0")
    settle(overview)
    assert rows(overview) == ["baseline", "gelu"]
    expect(overview.get_by_text("2 of 6")).to_be_visible()
    box.fill("loss = nan or act = gelu")
    settle(overview)
    assert rows(overview) == ["gelu", "own-log-softmax"]
    box.fill("dead")
    settle(overview)
    assert rows(overview) == ["dead-block"]
    box.fill("nonsense > 3")
    settle(overview)
    expect(overview.get_by_text("There is no column nonsense")).to_be_visible()
    assert len(rows(overview)) == 6  # nothing is hidden by what was not understood
    box.fill("findings > 0")
    box.press("Tab")
    settle(overview)
    overview.reload()
    settle(overview)
    expect(overview.get_by_role("searchbox", name="Filter trials")).to_have_value("findings > 0")


def test_columns_are_chosen(overview: Page) -> None:
    overview.get_by_role("button", name="Columns").click()
    overview.get_by_role("checkbox", name="data.tokens").click()
    overview.get_by_role("checkbox", name="On disk").click()
    overview.keyboard.press("Escape")
    settle(overview)
    heads = overview.locator(".overview-table thead th").all_inner_texts()
    assert "data.tokens" in heads and "On disk" not in heads
    assert "config:data.tokens" in state_of(overview)["overview.columns"].replace("!", "")


def test_colours_stay_with_their_trials(overview: Page, six: str, visit: Visit) -> None:
    def color(page: Page) -> str | None:
        dot = page.get_by_role("row", name="gelu").locator(".name > .dot")
        return dot.get_attribute("style")

    before = color(overview)
    for name in ("gelu", "high-lr"):
        overview.get_by_role("checkbox", name=f"Choose {name}").click()
        settle(overview)
    assert color(overview) == before
    overview.get_by_role("checkbox", name="Choose dead-block").click()
    settle(overview)
    assert color(overview) == before == color(visit(look(six, tab="overview", trials="gelu")))


@pytest.mark.parametrize("kind", ["parallel", "scatter"])
def test_trials_are_drawn_against_each_other(six: str, visit: Visit, kind: str) -> None:
    page = visit(look(six, tab="overview", overview_chart=kind))
    picture = page.locator(".overview-picture")
    expect(picture).to_be_visible()
    pixels = "(c) => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]"
    assert picture.evaluate(f"(c) => ({pixels})(c).filter((v, i) => i % 4 === 3 && v).length") > 1000


def test_a_trial_without_findings_opens_against_its_other_blocks(overview: Page) -> None:
    region(overview).get_by_role("button", name="baseline", exact=True).click()
    settle(overview)
    state = state_of(overview)
    assert (state["tab"], state["trial"], state["heat.mode"]) == ("layers", "baseline", "blocks")


def test_with_the_keyboard_alone(overview: Page) -> None:
    overview.locator(".overview-go").first.focus()
    overview.keyboard.press("Enter")
    settle(overview)
    assert state_of(overview)["tab"] == "layers" and state_of(overview)["node"] == six_trials.DEAD
    overview.keyboard.press("1")
    settle(overview)
    overview.locator(".overview-name").first.focus()
    first = overview.evaluate("document.activeElement.textContent")
    overview.keyboard.press("ArrowDown")
    assert overview.evaluate("document.activeElement.textContent") != first
    overview.keyboard.press("Enter")
    settle(overview)
    assert state_of(overview)["tab"] == "layers"


def test_nothing_is_there_yet(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    page = visit(serve(tmp_path / "runs").address, view=None)
    expect(page.get_by_role("note")).to_contain_text("There is no recording in")
    six_trials.train(tmp_path / "runs", six_trials.TRIALS[0], steps=8)
    expect(page.get_by_role("row", name="baseline")).to_be_visible(timeout=PATIENCE_MS)
