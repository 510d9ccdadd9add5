"""Metrics: groups, a legend that highlights and hides, axes without outliers, one cursor over all plots."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import endoscope
from tests.browser.conftest import Serve, Visit, settle
from tests.browser.helpers import go_to_tab, look, press, state_of

NAMES = ("train/loss", "val/loss", "train/accuracy", "val/accuracy")
TRIALS = ("calm", "wild")
SPIKE = 30
HIGHEST = 1e6


@pytest.fixture(scope="module")
def metric_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trials of sixty steps; the training loss of the second leaps once, and its run is shorter."""
    folder = tmp_path_factory.mktemp("metrics") / "runs"
    for name, steps in zip(TRIALS, (60, 50), strict=True):
        with endoscope.Run(folder, trial=name, when=endoscope.policies.every(1)) as run:
            for step in range(steps):
                with run.step():
                    leaps = name == "wild" and step == SPIKE
                    for metric in NAMES:
                        value = HIGHEST if leaps and metric == "train/loss" else 1 + step / 100
                        run.metric(metric, value)
    return folder


@pytest.fixture
def metrics(metric_runs: Path, serve: Serve, visit: Visit) -> Page:
    """Both trials, as the tab opens."""
    page = visit(look(serve(metric_runs).address, tab="metrics", trials=",".join(TRIALS)))
    return loaded(page)


def loaded(page: Page) -> Page:
    """The server has just started: its first answers may take longer than an empty page to settle."""
    for metric in NAMES:
        for trial in TRIALS:
            expect(plot(page, metric).get_by_role("status")).to_contain_text(trial)
    settle(page)
    return page


def panel_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Metrics", exact=True)


def plot(page: Page, metric: str) -> Locator:
    return page.get_by_role("group", name=f"{metric} over steps", exact=True)


def card(page: Page, metric: str) -> Locator:
    return page.get_by_role("region", name=f"Metric {metric}", exact=True)


def legend(page: Page, trial: str) -> Locator:
    return panel_of(page).get_by_role("group", name="Legend", exact=True).get_by_role("button", name=trial, exact=True)


def groups(page: Page) -> dict[str, list[str]]:
    """Below each heading the metrics, in their order."""
    found = panel_of(page).get_by_role("region", name=re.compile("^Group "))
    return {
        group.get_by_role("heading", level=2).inner_text().lower(): group.get_by_role(
            "heading", level=3
        ).all_inner_texts()
        for group in found.all()
    }


def line(page: Page, metric: str) -> float | None:
    """Where the vertical line of a plot is, as a share of its width; None if there is none."""
    share: float = plot(page, metric).evaluate("""plot => {
        const line = plot.querySelector('.u-cursor-x').getBoundingClientRect();
        const over = plot.querySelector('.u-over').getBoundingClientRect();
        return (line.right - over.left) / over.width;
    }""")
    return share if share >= 0 else None


def rows_of_colour(page: Page, metric: str, trial: str) -> list[int]:
    """Of each pixel of a plot that has the full colour of a trial, its row."""
    colour = legend(page, trial).locator("i").evaluate("line => getComputedStyle(line).borderTopColor")
    rows: list[int] = (
        plot(page, metric)
        .locator("canvas")
        .evaluate(
            """(canvas, colour) => {
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
            copy.drawImage(canvas, 0, 0);
            const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
            const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
            const rows = [];
            for (let i = 0; i < data.length; i += 4) {
                const far = Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b);
                if (far < 12 && data[i + 3] > 200) rows.push(Math.floor(i / 4 / canvas.width));
            }
            return rows;
        }""",
            colour,
        )
    )
    return rows


def colour_count(page: Page, metric: str, trial: str) -> int:
    return len(rows_of_colour(page, metric, trial))


def height_of(page: Page, metric: str, trial: str) -> int:
    """From the highest to the lowest pixel of a curve."""
    rows = rows_of_colour(page, metric, trial)
    return max(rows) - min(rows)


def test_groups_by_prefix_and_by_expression(metrics: Page, visit: Visit) -> None:
    assert groups(metrics) == {
        "train": ["train/loss", "train/accuracy"],
        "val": ["val/loss", "val/accuracy"],
    }
    field = panel_of(metrics).get_by_role("searchbox", name="Group metrics by a regular expression")
    field.fill("/(.*)")
    field.press("Enter")
    settle(metrics)
    wanted = {"loss": ["train/loss", "val/loss"], "accuracy": ["train/accuracy", "val/accuracy"]}
    assert groups(metrics) == wanted
    assert state_of(metrics)["metrics.group"] == "/(.*)"
    assert groups(loaded(visit(metrics.url))) == wanted


def test_an_expression_that_cannot_be_read_is_named(metrics: Page) -> None:
    field = panel_of(metrics).get_by_role("searchbox", name="Group metrics by a regular expression")
    for wrong, words in (("(", "no regular expression"), ("loss", "no group"), ("(x)", "No metric matches")):
        field.fill(wrong)
        settle(metrics)
        expect(panel_of(metrics)).to_contain_text(words)
        assert list(groups(metrics)) == ["train", "val"]


def test_a_click_in_the_legend_hides_a_trial_and_a_link_too(metrics: Page, visit: Visit) -> None:
    before = {trial: colour_count(metrics, "val/loss", trial) for trial in TRIALS}
    legend(metrics, "wild").click()
    settle(metrics)
    metrics.mouse.move(0, 0)
    settle(metrics)
    assert state_of(metrics)["metrics.hidden"] == "wild"
    expect(legend(metrics, "wild")).to_have_attribute("aria-pressed", "false")
    for page in (metrics, visit(metrics.url)):
        assert colour_count(page, "val/loss", "wild") == 0
        assert colour_count(page, "val/loss", "calm") >= before["calm"] > 0
    legend(metrics, "calm").click()
    settle(metrics)
    expect(card(metrics, "val/loss")).to_contain_text("Only hidden trials have values")
    panel_of(metrics).get_by_role("button", name="show all trials").click()
    metrics.mouse.move(0, 0)
    settle(metrics)
    assert "metrics.hidden" not in state_of(metrics)
    assert {trial: colour_count(metrics, "val/loss", trial) for trial in TRIALS} == before


def test_hover_and_focus_highlight_a_trial(metrics: Page) -> None:
    assert colour_count(metrics, "train/accuracy", "calm") > 0
    legend(metrics, "wild").hover()
    settle(metrics)
    assert colour_count(metrics, "train/accuracy", "calm") == 0
    assert colour_count(metrics, "train/accuracy", "wild") > 0
    metrics.mouse.move(0, 0)
    settle(metrics)
    assert colour_count(metrics, "train/accuracy", "calm") > 0
    legend(metrics, "calm").focus()
    settle(metrics)
    assert colour_count(metrics, "train/accuracy", "wild") == 0
    press(metrics, "Space")  # by keys alone: focus highlights, a press hides
    assert state_of(metrics)["metrics.hidden"] == "calm"
    assert colour_count(metrics, "train/accuracy", "wild") > 0


def test_outliers_are_ignored_and_said(metrics: Page, visit: Visit) -> None:
    note = re.compile(r"2nd to 98th percentile, [\d.]+ to [\d.]+: 1 value lies outside the axis")
    button = panel_of(metrics).get_by_role("button", name="ignore outliers")
    assert height_of(metrics, "train/loss", "calm") < 10  # the leap of the other makes it flat
    button.focus()
    press(metrics, "Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert state_of(metrics)["metrics.outliers"] == "0"
    for page in (metrics, visit(metrics.url)):
        expect(card(page, "train/loss")).to_contain_text(note)
        expect(card(page, "val/loss")).to_contain_text("no value lies outside the axis")
    assert height_of(metrics, "train/loss", "calm") > 100
    button.click()
    settle(metrics)
    expect(card(metrics, "train/loss")).not_to_contain_text("percentile")


def test_one_cursor_over_all_plots(metrics: Page) -> None:
    assert [line(metrics, name) for name in NAMES] == [None] * len(NAMES)
    over = plot(metrics, "val/loss").locator(".u-over")
    box = over.bounding_box()
    assert box is not None
    over.hover(position={"x": box["width"] / 4, "y": box["height"] / 2})
    settle(metrics)
    assert [line(metrics, name) for name in NAMES] == [pytest.approx(0.25, abs=0.02)] * len(NAMES)
    for name in NAMES:
        expect(card(metrics, name).locator("header")).to_contain_text("at step 15")
    metrics.mouse.move(0, 0)
    settle(metrics)
    assert [line(metrics, name) for name in NAMES] == [None] * len(NAMES)


def test_keys_move_the_cursor_of_all_plots(metrics: Page) -> None:
    plot(metrics, "train/loss").focus()
    press(metrics, "End", "ArrowLeft")
    for name in NAMES:
        expect(card(metrics, name).locator("header")).to_contain_text("at step 58")
        expect(card(metrics, name).locator("header")).to_contain_text("1.58")
    assert [line(metrics, name) for name in NAMES] == [pytest.approx(58 / 59, abs=0.02)] * len(NAMES)
    press(metrics, "Tab")
    expect(card(metrics, "val/loss").locator("header")).not_to_contain_text("at step")


def test_a_trial_has_the_colour_of_the_overview(metrics: Page) -> None:
    colours = {
        trial: legend(metrics, trial).locator("i").evaluate("line => getComputedStyle(line).borderTopColor")
        for trial in TRIALS
    }
    overview = go_to_tab(metrics, "Overview")
    for trial, colour in colours.items():
        row = overview.get_by_role("row", name=re.compile(trial))
        dot = row.locator("i.dot, .dot").first
        assert dot.evaluate("dot => getComputedStyle(dot).backgroundColor") == colour
