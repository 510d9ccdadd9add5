"""A job of several ranks: all of them together, one of them, and where there is no whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import endoscope
from tests.browser.conftest import Serve, Visit, settle
from tests.browser.helpers import number, select_node, state_of, statistic, tensor
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
