"""Layers × steps: which layer, since when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import endoscope
from endoscope.query.recording import Recording
from tests.browser import six_trials
from tests.browser.conftest import Visit, _serve, _stop, settle
from tests.browser.helpers import look, press_radio, state_of

DEAD, FAULT_AT = six_trials.DEAD, six_trials.FAULT_AT


@pytest.fixture(scope="module")
def six(six_folder: Path) -> Iterator[str]:
    served = _serve(six_folder)
    yield served.address
    _stop(served.process)


def open_layers(six: str, visit: Visit, trial: str = "dead-block", **state: object) -> Page:
    return drawn(visit(look(six, tab="layers", trial=trial, **state)))


def drawn(page: Page) -> Page:
    expect(page.locator(".layers-name").first).to_be_visible()
    settle(page)
    return page


def heat(page: Page) -> Locator:
    return page.get_by_role("application", name="Layers by steps")


def row_names(page: Page) -> list[str]:
    return [name or "" for name in page.locator(".layers-name").evaluate_all("(all) => all.map((e) => e.title)")]


def value_at(page: Page, node: str) -> str:
    """The number at the right of a row."""
    names = row_names(page)
    top = page.locator(".layers-name").nth(names.index(node)).evaluate("(e) => e.style.top")
    return page.locator(f'.layers-value[style*="top: {top}"]').inner_text()


def colour(page: Page, node: str, share: float) -> tuple[int, ...]:
    """Of a pixel in the middle of a row, so far along the steps."""
    names = row_names(page)
    top, height = (
        page.locator(".layers-name")
        .nth(names.index(node))
        .evaluate("(e) => [parseFloat(e.style.top), parseFloat(e.style.height)]")
    )
    script = """(c, [share, y]) => {
        const ratio = c.height / c.clientHeight;
        const copy = new OffscreenCanvas(c.width, c.height).getContext("2d", { willReadFrequently: true });
        copy.drawImage(c, 0, 0);
        return [...copy.getImageData(Math.floor(share * c.width), Math.round(y * ratio), 1, 1).data];
    }"""
    scrolled = heat(page).evaluate("(e) => e.scrollTop")
    return tuple(page.locator(".layers-cells").first.evaluate(script, [share, top + height / 2 - scrolled]))


def test_rows_stand_in_network_order_and_numbers_are_those_recorded(six: str, six_folder: Path, visit: Visit) -> None:
    page = open_layers(six, visit, step=120, heat_statistic="abs_mean", layers_open="blocks.0,blocks.0.mlp")
    names = row_names(page)
    wanted = ["input", "embed", "blocks.0", "blocks.0.norm1", "blocks.0.mlp.up", "blocks.0.mlp.act", "blocks.1", "head"]
    assert [name for name in names if name in wanted] == wanted
    recording = endoscope.open(six_folder / "dead-block")
    assert isinstance(recording, Recording)
    found = recording.series("blocks.0.mlp.up", "abs_mean")
    number = float(found.values[list(found.steps).index(120)])
    assert float(value_at(page, "blocks.0.mlp.up")) == pytest.approx(number, rel=0.01)


def test_a_dead_layer_is_seen_in_its_row_from_its_step_on(six: str, visit: Visit) -> None:
    page = open_layers(six, visit, node=DEAD, heat_statistic="zeros")
    assert colour(page, DEAD, 0.3) != colour(page, DEAD, 0.8)
    assert colour(page, DEAD, 0.8) == colour(page, DEAD, 0.95)
    press_radio(page, "colour", "vs. other blocks")
    assert value_at(page, DEAD).startswith("+")
    assert state_of(page)["heat.mode"] == "blocks"
    press_radio(page, "colour", "vs. own past")
    expect(page.get_by_text("than the layer's own past")).to_be_visible()
    press_radio(page, "colour", "vs. baseline")
    expect(page.get_by_text("Blue: smaller than in baseline")).to_be_visible()


def test_ratios_are_against_the_median_of_the_others(six: str, six_folder: Path, visit: Visit) -> None:
    page = open_layers(six, visit, trial="baseline", node="blocks.1.mlp.up", step=100, heat_mode="blocks")
    recording = endoscope.open(six_folder / "baseline")
    assert isinstance(recording, Recording)
    series = [recording.series(f"blocks.{n}.mlp.up", "abs_mean") for n in range(six_trials.BLOCKS)]
    at = [float(one.values[list(one.steps).index(100)]) for one in series]
    ratio = at[1] / float(np.median([at[0], at[2], at[3]]))
    assert float(value_at(page, "blocks.1.mlp.up").removeprefix("×")) == pytest.approx(ratio, rel=0.06)


def test_nan_is_striped_and_a_missing_gradient_hatched(six: str, visit: Visit) -> None:
    page = open_layers(six, visit, trial="own-log-softmax", heat_statistic="std", step=156)
    assert value_at(page, "head") == "NaN"
    pixels = {colour(page, "head", 0.8 + n / 400)[:3] for n in range(20)}
    assert (209, 0, 108) in pixels and (255, 255, 255) in pixels
    expect(page.get_by_role("slider", name="Step")).to_be_visible()
    page = open_layers(
        six, visit, trial="stop-gradient", node="blocks.0.mlp.down.bias", of="gradient:loss", heat_statistic="norm"
    )
    assert value_at(page, "blocks.0.mlp.down.bias") == "–"


def test_cells_rows_and_steps_are_chosen_by_pointer_and_keys(six: str, visit: Visit) -> None:
    page = open_layers(six, visit, node=DEAD, step=80)
    box = heat(page).bounding_box()
    canvas = page.locator(".layers-cells").first.bounding_box()
    assert box is not None and canvas is not None
    names = row_names(page)
    top = page.locator(".layers-name").nth(names.index("embed")).bounding_box()
    assert top is not None
    page.mouse.click(canvas["x"] + canvas["width"] * 0.25, top["y"] + top["height"] / 2)
    settle(page)
    state = state_of(page)
    assert state["node"] == "embed" and 36 <= int(state["step"]) <= 44
    heat(page).focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    assert int(state_of(page)["step"]) == int(state["step"]) + six_trials.EVERY
    page.keyboard.press("ArrowDown")
    settle(page)
    assert state_of(page)["node"] == "blocks.0"
    before = len(row_names(page))
    page.keyboard.press(" ")
    settle(page)
    assert len(row_names(page)) != before and "layers.open" in state_of(page)
    page.keyboard.press("Enter")
    settle(page)
    assert state_of(page)["tab"] == "graph" and state_of(page)["node"] == "blocks.0"
    page.go_back()
    settle(page)
    assert state_of(page)["tab"] == "layers"


def test_the_loss_above_chooses_the_step(six: str, visit: Visit) -> None:
    page = open_layers(six, visit, node=DEAD, step=80)
    slider = page.get_by_role("slider", name="Step")
    slider.focus()
    page.keyboard.press("Home")
    settle(page)
    assert state_of(page)["step"] == "0" and slider.get_attribute("aria-valuenow") == "0"
    assert "loss" in (slider.get_attribute("aria-valuetext") or "")


def test_statistics_that_are_made_of_others(six: str, visit: Visit) -> None:
    page = open_layers(six, visit, node=DEAD, step=120)
    show = page.get_by_role("combobox", name="show")
    show.select_option(label="dead units")
    settle(page)
    assert value_at(page, DEAD) == "100 %"
    show.select_option(label="update ÷ weight")
    settle(page)
    assert state_of(page)["of"] == "update"
    expect(page.get_by_role("radio", name="parameters")).to_be_checked()
    expect(page.get_by_role("radio", name="outputs")).to_be_disabled()


def test_rows_are_filtered_and_sorted_by_what_stands_out(six: str, visit: Visit) -> None:
    page = open_layers(six, visit, node=DEAD, heat_mode="blocks")
    page.get_by_role("searchbox", name="Filter rows").fill("act")
    settle(page)
    assert DEAD in row_names(page) and "embed" not in row_names(page)
    page.get_by_role("searchbox", name="Filter rows").fill("")
    settle(page)
    press_radio(page, "order", "stands out")
    assert row_names(page)[0] in (DEAD, DEAD.replace("act", "up"))


def test_the_address_says_all_of_it(six: str, visit: Visit) -> None:
    page = open_layers(six, visit, node=DEAD, step=80, heat_mode="past", layers_columns="equal", heat_statistic="std")
    again = drawn(visit(page.url))
    assert row_names(again) == row_names(page)
    expect(again.get_by_role("radio", name="equal")).to_be_checked()
    assert value_at(again, DEAD) == value_at(page, DEAD)


def test_a_trial_of_metrics_only_says_what_to_type(tmp_path: Path, visit: Visit) -> None:
    run = endoscope.Run(tmp_path / "runs", trial="curves")
    for number in range(3):
        with run.step(number) as step:
            step.metric("loss", 1.0 / (number + 1))
    run.close()
    served = _serve(tmp_path / "runs")
    page = visit(look(served.address, tab="layers"))
    expect(page.get_by_role("note")).to_contain_text("run.watch(model, optimizer)")
    page.close()
    _stop(served.process)


def test_a_cell_of_a_folded_row_leads_to_the_layer_whose_number_it_shows(six: str, visit: Visit) -> None:
    """Against other blocks a folded block shows its worst layer; that is where the click leads."""
    block = DEAD.removesuffix(".mlp.act")
    page = open_layers(six, visit, node="embed", heat_mode="blocks", heat_statistic="zeros", layers_open="blocks")
    names = row_names(page)
    assert block in names and DEAD not in names
    row = page.locator(".layers-name").nth(names.index(block))
    box, cells = row.bounding_box(), page.locator("canvas.layers-cells").first.bounding_box()
    assert box is not None and cells is not None
    page.mouse.click(cells["x"] + 0.95 * cells["width"], box["y"] + box["height"] / 2)
    settle(page)
    state = state_of(page)
    assert state["node"] == DEAD and int(state["step"]) > FAULT_AT


def test_the_graph_has_the_same_colours(six: str, visit: Visit) -> None:
    """Against other blocks, and against another trial."""
    view = {"trial": "dead-block", "node": DEAD, "step": 120, "open": "blocks,blocks.2,blocks.2.mlp"}
    page = visit(look(six, **view, heat_statistic="zeros", heat_mode="blocks"))
    settle(page)
    graph = page.get_by_role("region", name="Dependency graph")
    expect(graph.get_by_role("group", name="Legend")).to_contain_text("vs. other blocks")
    box = graph.get_by_role("treeitem", selected=True)
    points = re.search(r"[+−](\d+) points", box.get_attribute("aria-label") or "")
    assert points is not None and int(points[1]) > 30
    press_radio(page, "colour", "vs. baseline")
    assert state_of(page)["heat.mode"] == "trial"
    expect(graph.get_by_role("group", name="Legend")).to_contain_text("vs. baseline")
    assert "points" in (box.get_attribute("aria-label") or "")
