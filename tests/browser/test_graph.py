"""The dependency graph: walking, folding, searching, heat, edges, an arrangement of one's own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import endoscope
from endoscope.query.recording import Recording
from tests.browser.conftest import Serve, Visit, settle
from tests.browser.helpers import (
    choose,
    go_to_step,
    look,
    number,
    press,
    press_radio,
    select_node,
    selected_in_graph,
    state_of,
    step_shown,
    tensor,
)


@pytest.fixture
def graph(page: Page) -> Locator:
    return page.get_by_role("region", name="Dependency graph")


def boxes(graph: Locator) -> list[str]:
    items = graph.get_by_role("tree").get_by_role("treeitem").all()
    return [item.get_attribute("aria-label") or "" for item in items]


def test_all_nodes_and_a_legend(graph: Locator) -> None:
    names = [box.split(",")[0] for box in boxes(graph)]
    assert {"numbers", "partial sum", "answer loss", "sums loss", "wanted", "cell"} <= set(names)
    for kind in ("input", "parameter", "computed", "target", "loss"):
        expect(graph.get_by_role("group", name="Legend")).to_contain_text(kind)


def test_walking_along_edges_by_arrow_keys(page: Page, graph: Locator) -> None:
    """From the loss upwards, every step leads to something that it was computed from."""
    select_node(page, "answer loss")
    expect(graph.get_by_role("application")).to_be_focused()  # searching hands it over
    for _ in range(4):
        sentence = graph.get_by_role("status").inner_text()
        above = re.search(r"Computed from ([^.]*)\.", sentence)
        if above is None or above[1] == "nothing":
            break
        press(page, "ArrowUp")
        assert selected_in_graph(page) in above[1]
        assert state_of(page)["node"]
    assert selected_in_graph(page) != "answer loss"
    press(page, "ArrowDown")
    expect(tensor(page)).to_be_visible()


def test_modules_fold(page: Page, graph: Locator) -> None:
    graph.get_by_role("button", name="close all").click()
    settle(page)
    closed = len(boxes(graph))
    graph.get_by_role("button", name="open all").click()
    settle(page)
    assert len(boxes(graph)) > closed
    assert any(box.startswith("weight_ih") for box in boxes(graph))


def test_searching_leads_into_closed_modules(page: Page, graph: Locator) -> None:
    graph.get_by_role("button", name="close all").click()
    settle(page)
    press(page, "/")
    page.keyboard.type("weight_hh")
    press(page, "Enter")
    assert selected_in_graph(page).endswith("weight_hh")
    expect(tensor(page).get_by_role("heading", level=2)).to_have_text("cell.weight_hh")


def test_a_click_on_the_canvas_selects(page: Page, graph: Locator) -> None:
    before = selected_in_graph(page)
    box = graph.get_by_role("application").bounding_box()
    assert box is not None
    for share in [(x / 12, y / 10) for y in range(2, 9) for x in range(1, 12)]:
        page.mouse.click(box["x"] + share[0] * box["width"], box["y"] + share[1] * box["height"])
        settle(page)
        if selected_in_graph(page) != before:
            break
    assert selected_in_graph(page) != before


def test_heat_colours_every_node_by_a_statistic(page: Page, graph: Locator, runs: Path) -> None:
    recording = endoscope.open(runs / "leaky")
    assert isinstance(recording, Recording)
    graph.get_by_role("button", name="open all").or_(graph.get_by_role("button", name="arrange")).first.focus()
    for statistic, label in {"std": "std", "norm": "norm"}.items():
        choose(page, "show", label)
        shown = {box.split(",")[0]: number(box.split(",")[-1]) for box in boxes(graph) if "weight_ih" in box}
        recorded = recording.statistics("cell.weight_ih", step_shown(page))[statistic]
        assert shown["weight_ih"] == pytest.approx(recorded, rel=0.01)
    choose(page, "show", "no colours")
    assert not any("weight_ih" in box and re.search(r"\d\.\d", box) for box in boxes(graph))


def test_heat_of_a_gradient_and_against_its_past(page: Page, graph: Locator, runs: Path) -> None:
    recording = endoscope.open(runs / "leaky")
    assert isinstance(recording, Recording)
    choose(page, "show", "norm")
    press_radio(page, "of the", "gradient · answer")
    expect(graph).to_contain_text("of gradient · answer")
    box = next(box for box in boxes(graph) if box.startswith("weight_hh"))
    recorded = recording.statistics("cell.weight_hh", step_shown(page), of="gradient:answer")["norm"]
    assert number(box.split(",")[-1]) == pytest.approx(recorded, rel=0.01)
    before = boxes(graph)
    press_radio(page, "colour", "vs. own past")
    assert state_of(page)["heat.mode"] == "past"
    assert boxes(graph) != before


def test_the_heat_of_a_step_is_of_that_step(page: Page, graph: Locator, runs: Path) -> None:
    recording = endoscope.open(runs / "leaky")
    assert isinstance(recording, Recording)
    choose(page, "show", "mean")
    for step in recording.steps[:3]:
        go_to_step(page, step.number)
        box = next(box for box in boxes(graph) if box.startswith("bias_hh"))
        recorded = recording.statistics("cell.bias_hh", step.number)["mean"]
        assert number(box.split(",")[-1]) == pytest.approx(recorded, rel=0.01)


def test_only_edges_of_the_selection_on_demand(page: Page, graph: Locator) -> None:
    canvas = graph.get_by_role("application")
    before = canvas.screenshot()
    press_radio(page, "edges", "selected", graph)
    assert state_of(page)["edges"] == "selected"
    assert canvas.screenshot() != before


def test_zoom_and_fit(page: Page, graph: Locator) -> None:
    canvas = graph.get_by_role("application")
    # Findings come later, and are marked in the picture.
    cut_short = graph.get_by_role("treeitem", name=re.compile("cuts negative numbers short"))
    expect(cut_short).to_have_count(1, timeout=60_000)
    canvas.focus()
    press(page, "f")
    page.wait_for_timeout(400)  # the camera glides
    fitted = canvas.screenshot()
    press(page, "+", "+", "+")
    page.wait_for_timeout(400)
    assert canvas.screenshot() != fitted
    press(page, "f")
    page.wait_for_timeout(400)
    assert canvas.screenshot() == fitted


def test_a_name_of_ones_own_is_kept_beside_the_recording(
    runs: Path, tmp_path: Path, serve: Serve, visit: Visit
) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs, folder)
    served = serve(folder)
    page = visit(look(served.address, node="bend"))
    graph = page.get_by_role("region", name="Dependency graph")
    graph.get_by_role("button", name="arrange").click()
    graph.get_by_role("textbox", name="rename").fill("the bug")
    graph.get_by_role("textbox", name="rename").press("Enter")
    settle(page)
    renamed = re.compile("^the bug,")
    expect(graph.get_by_role("treeitem", name=renamed)).to_have_count(1)
    again = visit(look(served.address, node="bend"))
    expect(again.get_by_role("region", name="Dependency graph").get_by_role("treeitem", name=renamed)).to_have_count(1)


def test_histograms_over_steps_as_ridges(page: Page) -> None:
    """One outline per step; the address keeps the choice, and a click chooses the step."""
    select_node(page, "bend")
    before = step_shown(page)
    press_radio(page, "as", "ridges", tensor(page))
    assert "series.ridges" in state_of(page)
    ridges = tensor(page).get_by_role("img", name="one outline per step")
    box = ridges.bounding_box()
    assert box is not None
    ridges.click(position={"x": box["width"] / 2, "y": 32})  # the first one
    settle(page)
    assert step_shown(page) < before
