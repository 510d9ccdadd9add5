"""Compare, Metrics, Network, Notes, Views, Run; and the values of the selected tensor."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import endoscope
from endoscope.query.recording import Recording
from tests.browser.conftest import Serve, Visit, settle
from tests.browser.helpers import (
    choose,
    go_to_tab,
    look,
    number,
    press,
    press_radio,
    select_node,
    state_of,
    step_shown,
    tensor,
)

VIEWS = '''
def words(selection, recording):
    """What is selected."""
    return f"{recording.name}: {selection.node} at step {selection.step}"

def picture(selection, recording):
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots()
    axes.plot(recording.series(selection.node, "std", **selection.which).values)
    return figure
'''


@pytest.fixture(scope="module")
def trials(runs: Path) -> dict[str, Recording]:
    found = {}
    for name in ("plain", "leaky"):
        recording = endoscope.open(runs / name)
        assert isinstance(recording, Recording)
        found[name] = recording
    return found


def test_raw_values_as_numbers(page: Page, trials: dict[str, Recording]) -> None:
    select_node(page, "cell")
    press_radio(page, "Values as", "numbers", tensor(page))
    raw = trials["leaky"].tensor("cell", step_shown(page))
    assert raw.shape[1:] == (16,)
    grid = tensor(page).get_by_label(re.compile("^Raw values as numbers"))
    expect(grid).to_be_visible()
    assert state_of(page)["values.show"] == "numbers"
    grid.focus()
    press(page, "ArrowRight")
    shown = tensor(page).get_by_role("status").filter(has_text="[").inner_text()
    assert np.float32(shown.split("] ")[1].replace("−", "-")) == raw[0, 0]


def test_over_training_and_its_statistics(page: Page) -> None:
    select_node(page, "cell")
    section = tensor(page).get_by_role("region", name="over training")
    choose(page, "Statistic over training", "norm", section)
    expect(section.get_by_role("group", name="norm of cell over steps")).to_be_visible()
    assert state_of(page)["series.statistic"] == "norm"


def test_compare_two_steps(page: Page, trials: dict[str, Recording]) -> None:
    select_node(page, "cell")
    last = step_shown(page)
    panel = go_to_tab(page, "Compare")
    panel.get_by_role("button", name="with the first step, 0").click()
    settle(page)
    recorded = [trials["leaky"].statistics("cell", step)["std"] for step in (last, 0)]
    shown = compared(panel, "std")
    assert shown == pytest.approx(recorded, rel=0.01)
    for chart in ("std of A and B over steps", "std, A ÷ B, over steps"):
        expect(panel.get_by_role("group", name=chart)).to_be_visible()
    expect(panel.get_by_role("img", name=re.compile("^Histogram of A: .* and B: "))).to_be_visible()
    expect(panel.get_by_role("img", name="A minus B in each bar of the histograms")).to_be_visible()
    panel.get_by_role("button", name="Swap A and B").click()
    settle(page)
    assert compared(panel, "std") == shown[::-1]
    panel.get_by_text("more that may differ").click()
    panel.get_by_role("button", name="link everything").click()
    settle(page)
    assert not [name for name in state_of(page) if name.startswith("b.")]


def compared(panel: Locator, name: str) -> list[float]:
    """What stands below A and below B in the table of statistics."""
    table = panel.get_by_role("region", name="statistics, A − B")
    cells = table.get_by_role("row").filter(has=panel.page.get_by_role("rowheader", name=name, exact=True))
    return [number(cells.get_by_role("cell").nth(place).inner_text()) for place in (0, 1)]


def test_where_two_trials_differ_most(page: Page, trials: dict[str, Recording]) -> None:
    select_node(page, "cell")
    step = step_shown(page)
    panel = go_to_tab(page, "Compare")
    choose(page, "trial of B", "plain", panel)
    rows = panel.get_by_role("region", name="Where A and B differ most at this step").get_by_role("row")
    first = rows.nth(1)
    name = first.get_by_role("button").inner_text().split(" · ")
    pass_ = next((int(word.split()[1]) for word in name if word.startswith("pass ")), 1)
    a, b = (
        trials[trial].statistics(
            name[0], step, role=name[1] if len(name) > 1 and "pass" not in name[1] else "", pass_=pass_
        )["std"]
        for trial in ("leaky", "plain")
    )
    assert number(first.get_by_role("cell").nth(0).inner_text()) == pytest.approx(a, rel=0.01)
    assert number(first.get_by_role("cell").nth(1).inner_text()) == pytest.approx(b, rel=0.01)
    assert number(first.get_by_role("cell").nth(2).inner_text().replace("×", "")) == pytest.approx(a / b, rel=0.06)
    last = rows.last.get_by_role("cell").nth(2).inner_text().replace("×", "")
    assert abs(math.log(a / b)) >= abs(math.log(number(last))) - 0.05
    first.get_by_role("button").click()
    settle(page)
    assert state_of(page)["node"] == name[0]


def test_compare_two_trials(page: Page, trials: dict[str, Recording]) -> None:
    select_node(page, "cell.weight_hh")
    step = step_shown(page)
    panel = go_to_tab(page, "Compare")
    choose(page, "trial of B", "plain", panel)
    recorded = [trials[name].statistics("cell.weight_hh", step)["norm"] for name in ("leaky", "plain")]
    assert compared(panel, "norm") == pytest.approx(recorded, rel=0.01)


def test_metrics(page: Page, trials: dict[str, Recording]) -> None:
    panel = go_to_tab(page, "Metrics")
    for name in trials["leaky"].metrics:
        expect(panel.get_by_role("region", name=f"Metric {name}", exact=True)).to_be_visible()
    press_radio(page, "values", "log", panel)
    press_radio(page, "over", "time", panel)
    panel.get_by_role("slider", name=re.compile("smoothing")).fill("40")
    settle(page)
    state = state_of(page)
    assert state["metrics.log"] == "1" and state["metrics.x"] == "time" and float(state["metrics.smoothing"]) > 0


def test_metrics_of_two_trials(visit: Visit, address: str) -> None:
    page = visit(look(address, tab="metrics", trials="leaky,plain"))
    panel = page.get_by_role("region", name="Metrics")
    for trial in ("leaky", "plain"):
        expect(panel.get_by_role("group", name="Legend")).to_contain_text(trial)


def test_network(page: Page) -> None:
    panel = go_to_tab(page, "Network")
    expect(panel).to_contain_text("1714 parameters")  # read 48, cell 1632, sums 34
    row = panel.get_by_role("row", name=re.compile("weight_ih"))
    expect(row).to_contain_text("768")
    row.get_by_role("gridcell").first.click()
    settle(page)
    assert state_of(page)["node"] == "cell.weight_ih"


def test_notes(page: Page) -> None:
    panel = go_to_tab(page, "Notes")
    expect(panel.get_by_role("listitem")).to_have_count(2)
    panel.get_by_role("searchbox", name="Filter notes").fill("the end")
    settle(page)
    expect(panel.get_by_role("listitem")).to_have_count(1)
    panel.get_by_role("listitem").get_by_role("button").click()
    settle(page)
    assert "step" in state_of(page)


def test_run(page: Page, trials: dict[str, Recording]) -> None:
    panel = go_to_tab(page, "Run")
    expect(panel.get_by_role("region", name="configuration")).to_contain_text("0.003")
    expect(panel.get_by_role("region", name="trial")).to_contain_text(str(len(trials["leaky"].steps)))
    expect(panel.get_by_role("region", name="versions")).to_contain_text("torch")


def test_views_follow_the_selection_and_the_file(runs: Path, tmp_path: Path, serve: Serve, visit: Visit) -> None:
    file = tmp_path / "views.py"
    file.write_text(VIEWS)
    page = visit(look(serve(runs, "--views", file).address, node="cell", step=0))
    panel = go_to_tab(page, "Views")
    choose_view(page, "What is selected")
    expect(panel).to_contain_text("leaky: cell at step 0")
    page.keyboard.press("]")
    settle(page)
    expect(panel).to_contain_text("leaky: cell at step 2")
    file.write_text(VIEWS.replace("at step", "in step"))
    expect(panel).to_contain_text("leaky: cell in step 2")
    choose_view(page, "picture")
    expect(panel.get_by_role("img").last).to_be_visible()


def test_markup_of_a_view_is_locked_in(
    runs: Path, tmp_path: Path, serve: Serve, visit: Visit, complaints: list[str]
) -> None:
    file = tmp_path / "views.py"
    file.write_text('def markup(selection, recording):\n    class Big:\n        def _repr_html_(self):\n'
                    '            return "<h1>big</h1><script>parent.document.title = \'stolen\'</script>"\n'
                    "    return Big()\n")  # fmt: skip
    page = visit(serve(runs, "--views", file).address)
    title = page.title()
    panel = go_to_tab(page, "Views")
    frame = panel.locator("iframe")
    expect(frame).to_be_visible()
    expect(frame.content_frame.get_by_role("heading", name="big")).to_be_visible()
    assert page.title() == title and "allow-same-origin" not in (frame.get_attribute("sandbox") or "")
    assert len(complaints) == 1 and "Blocked a frame" in complaints.pop()  # the attempt was made, and failed


def choose_view(page: Page, name: str) -> None:
    """By its title, which is the first line of its docstring, or its name."""
    page.get_by_role("region", name="Views").get_by_role("radiogroup", name="view").get_by_text(name).click()
    settle(page)


def test_names_in_a_recording_are_never_markup(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    from endoscope.schema.recording import Key, StepRecord
    from endoscope.store.writer import TrialWriter
    from tests.store.made_up import measured

    evil = '<img src=x onerror="document.title=1">'
    writer = TrialWriter.create(tmp_path / "runs", "trial", config={evil: evil})
    key = writer.key_id(Key(evil, shape=(4, 3), batch_dim=0, module=evil, source=evil))
    second = writer.key_id(Key("plain", of="parameter", kind="parameter", shape=(3,)))
    graph = {"hash": "a", "nodes": [{"node": evil, "kind": "computed", "module": evil}, {"node": "plain"}], "edges": []}
    writer.write_step(
        StepRecord(number=0, type=evil, time=0.0, graph_hash="a", graph=graph, keys=np.array([key, second], np.int32),
                   measured=measured(2), metrics={evil: 1.0}, why=evil)
    )  # fmt: skip
    writer.write_note(0, 0.0, evil)
    writer.close()
    page = visit(serve(tmp_path / "runs").address)
    title = page.title()
    for name in ("Graph", "Metrics", "Compare", "Network", "Notes", "Views", "Run"):
        go_to_tab(page, name)
        assert page.locator("img[src=x]").count() == 0
    assert page.title() == title
