"""Recordings of other versions: a statistic that one lacks is a gap, on the page and in the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import endoscope
from endoscope.report.build import report
from endoscope.schema import stats
from endoscope.server.app import create
from endoscope.server.library import Library
from tests.contract.growth.plug_in import train
from tests.server.conftest import table

LACKING = ("neg_infs", "q05", "q50", "norm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One trial of a version that did not know some statistics, and one of today."""
    root = tmp_path_factory.mktemp("runs")
    known = dict(stats._known)
    for name in LACKING:
        stats._change(name, None)
    try:
        train(root, "older", weight=30.0)
    finally:
        stats._known.clear()
        stats._known.update(known)
        for empty in stats._caches:
            empty()
    train(root, "today", weight=30.0)
    return root


@pytest.mark.parametrize("where", ["alone", "in a folder"])
def test_the_page_gets_answers(folder: Path, where: str) -> None:
    client = TestClient(create(Library(folder / "older" if where == "alone" else folder)), base_url="http://127.0.0.1")
    offered = [one["name"] for one in client.get("/api/trials/older").json()["statistics"]]
    assert not set(LACKING) & set(offered) and {"mean", "q95"} <= set(offered)
    step = table(client, "/api/trials/older/steps/3")
    assert all(np.isnan(step[name].to_numpy().astype(float)).all() for name in ("q05", "norm"))
    series = table(client, "/api/trials/older/series", node="1", statistics="mean,q50")
    assert np.isnan(series["q50"]).all() and np.isfinite(series["mean"]).all() and len(series) == 6
    heat = table(client, "/api/trials/older/heat", statistic="norm")
    assert all(np.isnan(row).all() for row in heat["values"].to_pylist())
    for rest in ("samples?node=1&step=2", "units?node=1&step=2", "histograms?node=1", "steps/3/samples/1"):
        assert client.get(f"/api/trials/older/{rest}").status_code == 200, rest


@pytest.mark.filterwarnings("ignore:All-NaN")
def test_findings_and_reports_work(folder: Path) -> None:
    findings = endoscope.diagnose(folder)
    assert {one.trial for one in findings} == {"older", "today"}
    unchecked = [one for one in findings if one.title == "could not be checked"]
    assert {one.trial for one in unchecked} == {"older"} and all(one.severity == "info" for one in unchecked)
    assert all("which this recording does not have" in one.detail for one in unchecked)
    assert "older" in report(folder)


def test_in_python_and_in_sql(folder: Path) -> None:
    recording = endoscope.open(folder / "older")
    assert np.isnan(recording.series("1", "norm").values).all() and len(recording.series("1", "norm")) == 6
    assert np.isnan(recording.statistics("1", 2)["norm"]) and "neg_infs" not in recording.statistics("1", 2)
    both = endoscope.open(folder).sql(
        "select trial, count(*) filter (not isnan(norm)), count(*) from stats group by 1 order by 1"
    )
    (older, none, rows), (today, every, same) = both.rows
    assert (older, none, today) == ("older", 0, "today") and every == same == rows > 0
