"""A job of several ranks: all of them together, one of them, and where there is no whole."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import endoscope
from tests.browser.conftest import Serve, Visit, settle
from tests.browser.helpers import go_to_tab, number, select_node, state_of, statistic, tensor
from tests.findings import ranks


def _open(tmp_path: Path, serve: Serve, visit: Visit) -> Page:
    path = ranks.drifting(tmp_path)
    return visit(serve(path.parent).address)


def test_all_ranks_or_one(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    page = _open(tmp_path, serve, visit)
    chooser = page.get_by_role("combobox", name="ranks", exact=True)
    expect(chooser.locator("option")).to_have_text(["all", "rank 0", "rank 1", "rank 2", "rank 3"])
    recorded = endoscope.open(tmp_path / "trial")
    select_node(page, "input")
    last = recorded.steps[-1].number
    assert number(statistic(tensor(page), "norm")) == _near(recorded.statistics("input", last)["norm"])
    expect(page.get_by_text("2 not whole")).to_be_visible()  # the parameter that drifts, and a gradient of each rank

    chooser.select_option("rank 2")
    settle(page)
    assert state_of(page)["trial"] == "trial:rank-2"
    assert number(statistic(tensor(page), "norm")) == _near(recorded.rank(2).statistics("input", last)["norm"])
    expect(page.get_by_text("not whole")).to_have_count(0)


def test_one_process_has_no_choice(page: Page) -> None:
    expect(page.get_by_role("combobox", name="ranks", exact=True)).to_have_count(0)


def _near(value: float) -> object:
    return pytest.approx(value, rel=0.01)


def test_a_metric_is_the_mean_of_ranks_and_says_their_range(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    page = _open(tmp_path, serve, visit)
    go_to_tab(page, "Metrics")
    expect(page.get_by_role("group", name="loss over steps", exact=True).get_by_role("status")).to_contain_text("loss")
    loss = endoscope.open(tmp_path / "trial").metrics["loss"]
    shown = page.get_by_role("region", name="Metric loss").locator(".metric-last")
    mean, low, high = (float(found[-1]) for found in (loss.values, loss.low, loss.high))
    assert low < mean < high
    said = re.findall(r"\d+\.\d+", shown.inner_text())
    assert [float(one) for one in said] == [_near(one) for one in (mean, low, high)]
    expect(shown).to_contain_text("over ranks")


def test_quantiles_of_several_ranks_are_marked(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    page = _open(tmp_path, serve, visit)
    select_node(page, "input")
    expect(tensor(page).get_by_text("≈ median")).to_have_attribute("title", re.compile("put together from 4 ranks"))
    page.get_by_role("combobox", name="ranks", exact=True).select_option("rank 1")
    settle(page)
    expect(tensor(page).get_by_text("median 0", exact=False)).to_be_visible()
    expect(tensor(page).get_by_text("≈")).to_have_count(0)


def test_the_only_rank_that_has_recorded_is_shown(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    path = ranks.write(tmp_path)
    for rank in (0, 1, 3):
        shutil.rmtree(path / f"rank-{rank}")
    page = visit(serve(path.parent).address)
    expect(page.get_by_role("combobox", name="ranks", exact=True)).to_have_value("2")
    select_node(page, "input")
    own = endoscope.open(path).rank(2)
    assert number(statistic(tensor(page), "norm")) == _near(own.statistics("input", own.steps[-1].number)["norm"])
