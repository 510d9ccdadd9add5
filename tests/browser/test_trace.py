"""A trace in the page: folding, an operation with its code and its value, loops, branches, colours, search, paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from endoscope.capture.views.result import Trace
from endoscope.server.launch import Viewer
from tests.browser import traced_nets
from tests.browser.conftest import Visit, settle
from tests.browser.helpers import choose, number, press, press_radio, selected_in_graph, state_of, statistic
from tests.browser.test_access import faults


class Shown:
    """A trace, and the page that shows it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.viewer: Viewer = trace.show(port=0)

    def at(self, **state: object) -> str:
        words = "&".join(f"{name.replace('_', '.')}={value}" for name, value in state.items())
        return f"{self.viewer.address}#v=1&{words}"


def served(make: Callable[[], Trace]) -> Callable[[], Iterator[Shown]]:
    def fixture() -> Iterator[Shown]:
        shown = Shown(make())
        yield shown
        shown.viewer.close()

    return fixture


gated = pytest.fixture(scope="module")(served(traced_nets.gated))
resnet = pytest.fixture(scope="module")(served(traced_nets.resnet))
gpt2 = pytest.fixture(scope="module")(served(traced_nets.gpt2))
deep = pytest.fixture(scope="module")(served(traced_nets.deep))


def graph(page: Page) -> Locator:
    return page.get_by_role("region", name="Dependency graph")


def operation(page: Page) -> Locator:
    return page.get_by_role("region", name="Selected operation")


def box(page: Page, name: str) -> Locator:
    """A box of the graph, by the name it has in it."""
    return graph(page).get_by_role("treeitem", name=re.compile(f"^{re.escape(name)}(,|$)"))


def select(page: Page, name: str) -> None:
    box(page, name).first.evaluate("(item) => item.click()")
    settle(page)


def toggle(page: Page, name: str) -> None:
    """As one does by keyboard: to the box, and Enter."""
    if box(page, name).first.get_attribute("aria-expanded") == "true":
        select(page, name)
        return
    select(page, name)
    graph(page).get_by_role("application").focus()
    press(page, "Enter")


def test_modules_of_a_resnet_open_down_to_an_operation(resnet: Shown, visit: Visit) -> None:
    page = visit(resnet.at(open="layers,layers.2"))
    expect(box(page, "0 · BasicBlock")).to_have_attribute("aria-expanded", "false")
    toggle(page, "0 · BasicBlock")
    expect(box(page, "0 · BasicBlock")).to_have_attribute("aria-expanded", "true")
    assert "layers.2.0" in state_of(page)["open"]
    (op,) = resnet.trace.graph.select("type:add & in:layers.2.0")
    select(page, op.label)
    side = operation(page)
    expect(side.get_by_role("heading", level=2)).to_have_text(op.label)
    expect(side.get_by_text("in place", exact=True)).to_be_visible()
    line = side.locator(".trace-code [aria-current=true]")
    expect(line).to_contain_text("y += self.shortcut(x)")
    assert number(statistic(side, "mean")) == pytest.approx(float(op.value.detach().mean()), rel=0.01)
    toggle(page, "0 · BasicBlock")
    expect(box(page, op.label)).to_have_count(0)


def test_equal_blocks_of_gpt2_are_one_box(gpt2: Shown, visit: Visit) -> None:
    page = visit(gpt2.at(open="transformer,transformer.h"))
    expect(box(page, "0…5")).to_have_accessible_name(re.compile("6 equal modules"))
    toggle(page, "0…5")
    expect(box(page, "1…5")).to_have_accessible_name(re.compile("5 equal modules"))


def test_a_closed_module_shows_the_sum_of_its_costs(gpt2: Shown, visit: Visit) -> None:
    page = visit(gpt2.at(open="transformer", heat_statistic="bytes"))
    inside = {op.label: op.bytes for op in gpt2.trace.graph.select("in:transformer.ln_f")}
    expected = sum(inside.values()) / 1024
    name = box(page, "ln_f").get_attribute("aria-label") or ""
    assert number(name.rpartition(",")[2]) == pytest.approx(expected, rel=0.01)
    legend = graph(page).get_by_role("group", name="Legend")
    expect(legend).to_contain_text("memory")
    ends = legend.get_by_role("slider").all_inner_texts()
    assert [end[0] for end in ends] == ["≤", "≥"] and all("B" in end for end in ends)


def test_search_by_the_language_of_patterns(gpt2: Shown, visit: Visit) -> None:
    page = visit(gpt2.viewer.address, view=None)
    press(page, "/")
    page.keyboard.type("type:layer_norm & in:transformer.h.3")
    press(page, "Enter")
    found = page.get_by_role("region", name="found")
    labels = [op.label for op in gpt2.trace.graph.select("type:layer_norm & in:transformer.h.3")]
    assert found.locator(".trace-label").all_inner_texts() == labels
    found.get_by_role("button", name=labels[1]).click()
    settle(page)
    assert selected_in_graph(page) == labels[1] and "transformer.h.3" in state_of(page)["open"]
    press(page, "/")
    page.keyboard.press("Control+A")
    page.keyboard.type("type:layernorm")
    press(page, "Enter")
    expect(found).to_contain_text("matches no operation of GPT2LMHeadModel. Nearest: type:layer_norm")
    page.keyboard.press("Escape")
    settle(page)
    expect(found).to_have_count(0)


def test_a_loop_is_rolled_and_its_pass_is_chosen(gated: Shown, visit: Visit) -> None:
    page = visit(gated.viewer.address, view=None)
    layer = next(op.layer for op in gated.trace.ops if op.type == "relu")
    select(page, f"{layer}:2")
    press_radio(page, "loops", "rolled")
    assert state_of(page)["node"] == layer and state_of(page)["pass"] == "2"
    side = operation(page)
    for pass_ in (2, 5):
        choose(page, "pass", f"{pass_} of 6", side)
        expected = float(gated.trace[f"{layer}:{pass_}"].value.detach().mean())
        assert number(statistic(side, "mean")) == pytest.approx(expected, rel=0.01)
    press(page, "p")
    expect(side.get_by_role("heading", level=2)).to_have_text(f"{layer}:6")
    press_radio(page, "loops", "unrolled")
    assert state_of(page)["node"] == f"{layer}:6"


def test_branches_are_marked_and_their_operations_stand_out(gated: Shown, visit: Visit) -> None:
    page = visit(gated.viewer.address, view=None)
    decision = gated.trace.decisions[0]
    test, ran = decision.steering[0].label, decision.branch_ops[0].label
    expect(box(page, test)).to_have_accessible_name(re.compile(r"decides if h.abs\(\).mean\(\) > 0: then"))
    page.get_by_role("region", name="branches").get_by_role("button", name=re.compile("if h.abs")).click()
    settle(page)
    assert state_of(page)["trace.branch"] == "0" and selected_in_graph(page) == test
    expect(operation(page).get_by_role("region", name="decides")).to_contain_text("True → then")
    assert ran == next(op.label for op in gated.trace.ops if op.type == "mul")


def test_what_the_capture_could_not_see_is_said(gated: Shown, visit: Visit) -> None:
    page = visit(gated.viewer.address, view=None)
    expect(page.get_by_role("region", name="capture")).to_contain_text("a value was converted to Python by item()")


def test_gradients_and_several_outputs(gated: Shown, visit: Visit) -> None:
    page = visit(gated.viewer.address, view=None)
    label = gated.trace["out"].label
    select(page, "out")
    side = operation(page)
    expect(side.get_by_role("heading", level=2)).to_have_text(label)
    press_radio(page, "What is shown", "gradient", side)
    expected = float(gated.trace["out"].gradient.abs().max())
    assert number(statistic(side, "abs max")) == pytest.approx(expected, rel=0.01)
    select(page, next(op.label for op in gated.trace.ops if op.type == "max" and len(op.metas) == 2))
    press_radio(page, "What is shown", "value", side)
    choose(page, "output", "1: [5]", side)
    assert state_of(page)["trace.output"] == "1"
    assert number(statistic(side, "max")) == float(gated.trace.result[1].max())


def test_a_path_between_two_operations(gated: Shown, visit: Visit) -> None:
    page = visit(gated.viewer.address, view=None)
    first, last = gated.trace["input_1"].label, gated.trace["out"].label
    select(page, first)
    operation(page).get_by_role("button", name="path from here").click()
    settle(page)
    path = page.get_by_role("region", name="path", exact=True)
    expect(path).to_contain_text("choose where it ends")
    select(page, "out")
    operation(page).get_by_role("button", name="path to here").click()
    settle(page)
    count = gated.trace.graph.path_count(first, last)
    expect(path).to_contain_text(f"{count} paths from {first} down to {last}")
    expect(path).to_contain_text("lie on them")


def test_the_address_shows_the_same_again(gated: Shown, visit: Visit) -> None:
    page = visit(gated.at(heat_statistic="std", trace_rolled=1, trace_pattern="type:relu", side="outline"))
    choose(page, "colour", "mean", graph(page))
    select(page, next(op.layer for op in gated.trace.ops if op.type == "gru_cell"))
    again = visit(page.url)
    assert selected_in_graph(again) == selected_in_graph(page)
    expect(graph(again).get_by_role("combobox", name="colour")).to_have_value("mean")
    expect(again.get_by_role("textbox", name="Select operations by a pattern")).to_have_value("type:relu")
    expect(again.get_by_role("tab", name="Modules")).to_have_attribute("aria-selected", "true")
    assert graph(again).get_by_role("treeitem").count() == graph(page).get_by_role("treeitem").count()


def test_a_name_that_no_box_has_is_said(gated: Shown, visit: Visit) -> None:
    page = visit(gated.at(node="nix"))
    expect(operation(page)).to_contain_text("No box is called nix")


def test_ten_thousand_operations(deep: Shown, visit: Visit) -> None:
    assert len(deep.trace) > 10_000
    page = visit(deep.viewer.address, view=None)
    expect(box(page, "steps")).to_have_attribute("aria-expanded", "true")
    expect(box(page, "0…909")).to_have_accessible_name(re.compile("910 equal modules"))
    graph(page).get_by_role("button", name="open all").click()
    settle(page)
    last = [op for op in deep.trace.ops if op.type == "add"][-1]
    page.goto(f"{page.url}&node={last.label}")
    settle(page)
    assert selected_in_graph(page) == last.label
    expect(operation(page).locator(".trace-code [aria-current=true]")).to_contain_text("return x + (h - h.mean())")
    graph(page).get_by_role("button", name="close all").click()
    settle(page)
    expect(graph(page).get_by_role("treeitem")).to_have_count(3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(gated: Shown, visit: Visit, scheme: str) -> None:
    label = next(op.label for op in gated.trace.ops if op.type == "gru_cell")
    state = {"node": label, "heat_statistic": "std", "trace_from": "input_1_0", "trace_to": label}
    page = visit(gated.at(**state, trace_pattern="type:nix"), color_scheme=scheme)
    assert faults(page) == []
    page.get_by_role("tab", name="Modules").click()
    settle(page)
    assert faults(page) == []
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next pass")
    assert faults(page) == []
