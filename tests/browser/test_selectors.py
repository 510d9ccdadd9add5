"""Every selector: it shows what there is, changes what is on screen, and stands in the address."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import endoscope
from endoscope.query.recording import Recording
from tests.browser.conftest import Visit, settle
from tests.browser.helpers import (
    choose,
    go_to_step,
    look,
    number,
    press,
    press_radio,
    select_node,
    selectors,
    state_of,
    statistic,
    step_shown,
    tensor,
)


@pytest.fixture(scope="package")
def leaky(runs: Path) -> Recording:
    found = endoscope.open(runs / "leaky")
    assert isinstance(found, Recording)
    return found


def test_opens_on_the_newest_trial_and_the_last_step(page: Page, leaky: Recording) -> None:
    expect(page.get_by_role("button", name="trial leaky")).to_be_visible()
    assert step_shown(page) == max(step.number for step in leaky.steps)
    expect(tensor(page)).to_be_visible()


def test_the_number_on_screen_is_the_recorded_one(page: Page, leaky: Recording) -> None:
    select_node(page, "cell")
    recorded = leaky.statistics("cell", step_shown(page))
    for name, label in {"mean": "mean", "std": "std", "norm": "norm", "abs_max": "abs max"}.items():
        assert number(statistic(tensor(page), label)) == pytest.approx(recorded[name], rel=0.01)


def test_step_by_number_takes_the_nearest(page: Page, leaky: Recording) -> None:
    recorded = sorted(step.number for step in leaky.steps)
    go_to_step(page, recorded[3] + 1)
    assert step_shown(page) == recorded[3]
    assert state_of(page)["step"] == str(recorded[3])


def test_step_by_buttons_and_slider(page: Page, leaky: Recording) -> None:
    recorded = sorted(step.number for step in leaky.steps)
    selectors(page).get_by_role("button", name="Step before").click()
    settle(page)
    assert step_shown(page) == recorded[-2]
    slider = page.get_by_role("slider", name="Training step")
    slider.focus()
    press(page, "Home")
    assert step_shown(page) == recorded[0]
    press(page, "ArrowRight")
    assert step_shown(page) == recorded[1]
    box = slider.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    settle(page)
    assert recorded[0] < step_shown(page) < recorded[-1]


def test_dragging_leaves_one_entry_in_the_history(page: Page) -> None:
    before = page.evaluate("history.length")
    box = page.get_by_role("slider", name="Training step").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.8, middle)
    page.mouse.down()
    for share in (0.7, 0.6, 0.5, 0.4, 0.3):
        page.mouse.move(box["x"] + box["width"] * share, middle)
    page.mouse.up()
    settle(page)
    assert page.evaluate("history.length") == before + 1


def test_type_of_step(page: Page, leaky: Recording) -> None:
    types = {step.number: step.type for step in leaky.steps}
    for name in ("long", "short"):
        choose(page, "type", name)
        assert types[step_shown(page)] == name
        press(page, "[")
        assert types[step_shown(page)] == name
    choose(page, "type", "any type")
    assert "type" not in state_of(page)


def test_value_gradient_of_each_loss_and_update(page: Page, leaky: Recording) -> None:
    select_node(page, "read.weight")
    seen = {}
    for word, of in {"value": "value", "gradient · answer": "gradient:answer", "gradient · sums": "gradient:sums",
                     "update": "update"}.items():  # fmt: skip
        press_radio(page, "of the", word)
        seen[of] = number(statistic(tensor(page), "norm"))
        assert seen[of] == pytest.approx(leaky.statistics("read.weight", step_shown(page), of=of)["norm"], rel=0.01)
    assert len(set(seen.values())) == 4


def test_a_sample_and_its_category(page: Page, leaky: Recording) -> None:
    select_node(page, "cell")
    step = leaky.steps[-1] if leaky.steps[-1].number == step_shown(page) else next(
        step for step in leaky.steps if step.number == step_shown(page)
    )  # fmt: skip
    options = tensor(page).get_by_role("combobox", name="numbers of").locator("option").all_inner_texts()
    assert options[0] == "whole batch" and len(options) == 25
    assert options[1] == f"0 · {step.categories[0]}"
    choose(page, "numbers of", options[3], tensor(page))
    expect(tensor(page).get_by_role("heading", name="sample 2 against the batch")).to_be_visible()
    recorded = leaky.samples("cell", step.number)["mean"][2]
    assert number(statistic(tensor(page), "mean")) == pytest.approx(recorded, rel=0.01)
    choose(page, "numbers of", "whole batch", tensor(page))
    assert "sample" not in state_of(page)


def test_aggregate_over_the_batch(page: Page) -> None:
    select_node(page, "cell")
    press_radio(page, "Over the batch", "abs max", tensor(page))
    assert state_of(page)["aggregate"] == "abs_max"
    expect(tensor(page).get_by_role("application", name="abs max of every unit over the batch")).to_be_visible()


def test_role_and_pass(page: Page, leaky: Recording) -> None:
    select_node(page, "partial sum")
    seen = []
    for role in ("sequence 1", "sequence 2"):
        choose(page, "role", f"{role} · {role[-1]} of 2", tensor(page))
        for option in tensor(page).get_by_role("combobox", name="pass").locator("option").all_inner_texts()[:2]:
            choose(page, "pass", option, tensor(page))
            at = {"role": role, "pass_": int(option.split()[0])}
            seen.append(number(statistic(tensor(page), "mean")))
            assert seen[-1] == pytest.approx(leaky.statistics("partial sum", step_shown(page), **at)["mean"], rel=0.01)
    assert len(set(seen)) == 4


def test_trials(page: Page) -> None:
    page.get_by_role("button", name="trial leaky").click()
    page.get_by_role("radio", name="Look at plain").click()
    settle(page)
    assert state_of(page)["trial"] == "plain"
    page.get_by_role("checkbox", name="Show leaky").check()
    settle(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="trials plain leaky")).to_be_visible()


def test_what_is_impossible_gives_way_and_comes_back(page: Page, leaky: Recording) -> None:
    """A long step has six passes, a short one three."""
    select_node(page, "partial sum")
    choose(page, "type", "long")
    passes = tensor(page).get_by_role("combobox", name="pass")
    choose(page, "pass", passes.locator("option").all_inner_texts()[5], tensor(page))
    choose(page, "type", "short")
    expect(selectors(page).get_by_role("combobox", name="type")).to_have_value("short")  # the newest choice stays
    assert int(passes.input_value()) <= 3
    assert len(passes.locator("option").all_inner_texts()) == 3  # those of the shown step
    expect(tensor(page).get_by_text("You chose 6, which a newer choice leaves no room for.")).to_be_attached()
    choose(page, "type", "long")
    expect(passes).to_have_value("6")


def test_back_and_forward(page: Page) -> None:
    select_node(page, "cell")
    select_node(page, "bend")
    heading = tensor(page).get_by_role("heading", level=2)
    page.go_back()
    settle(page)
    expect(heading).to_have_text("cell")
    page.go_forward()
    settle(page)
    expect(heading).to_have_text("bend")


def test_a_link_reproduces_the_view(page: Page, visit: Visit, leaky: Recording) -> None:
    select_node(page, "partial sum")
    go_to_step(page, leaky.steps[2].number)
    choose(page, "role", "sequence 2 · 2 of 2", tensor(page))
    press_radio(page, "of the", "gradient · sums")
    choose(page, "show", "std")
    other = visit(page.url)
    for side in (selectors(page), tensor(page)):
        name = side.get_attribute("aria-label")
        assert other.get_by_role("region", name=name or "").aria_snapshot() == side.aria_snapshot()
    graph = "Boxes of the dependency graph"
    boxes, others = (each.get_by_role("tree", name=graph) for each in (page, other))
    for tree in (boxes, others):  # findings come when the page rests
        cut_short = tree.get_by_role("treeitem", name=re.compile("cuts negative numbers short"))
        expect(cut_short.first).to_be_attached(timeout=60_000)
    assert others.aria_snapshot() == boxes.aria_snapshot()


def test_an_address_that_makes_no_sense(visit: Visit, address: str) -> None:
    nonsense = {"node": "nobody", "step": "-7", "of": "love", "sample": "x", "aggregate": "%00"}
    page = visit(look(address, tab="graph", **nonsense))
    expect(tensor(page)).to_be_visible()
    expect(visit(look(address, tab="cinema")).get_by_role("region", name="Overview")).to_be_visible()


def test_a_second_tab_does_not_disturb_the_first(page: Page, address: str) -> None:
    select_node(page, "cell")
    url, shown = page.url, tensor(page).aria_snapshot()
    second = page.context.new_page()
    second.goto(address)
    settle(second)
    select_node(second, "bend")
    press_radio(second, "of the", "gradient · answer")
    page.bring_to_front()
    settle(page)
    assert page.url == url and tensor(page).aria_snapshot() == shown
