"""A check of somebody's own: one file. It runs with all others, in Python, on the command line, in page and report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import endoscope
from endoscope import errors
from endoscope.findings import registry
from endoscope.findings.check import Check, Evidence, Stage
from tests.contract.growth.plug_in import install, run, train

PLUG_IN = """
import numpy as np

from endoscope.findings.check import Check, Evidence, Seen, Stage
from endoscope.findings.registry import register


def run(facts, limits):
    largest = facts.values["abs_max"]
    for tensor in facts.values.tensors:
        small = facts.values.there[tensor.row] & (largest[tensor.row] < limits["size"])
        if small.any():
            yield Seen(
                severity="warning", title="very quiet", detail="All numbers are small.",
                value=float(np.nanmax(largest[tensor.row][small])), threshold=limits["size"], tensor=tensor,
                **facts.steps_where(small),
            )


register(Check(
    name="very_quiet", description="Activations of which no number is large.", stage=Stage.FORWARD, run=run,
    thresholds={"size": 0.01}, evidence=Evidence(("abs_max",)), causes=("Small weights.",),
    explained_by=("bad_initialisation",),
))
"""


@pytest.fixture
def _registered() -> Iterator[None]:
    exec(PLUG_IN, {})
    yield
    registry.forget("very_quiet")


@pytest.mark.usefixtures("_registered")
def test_it_runs_with_all_others(tmp_path: Path) -> None:
    path = train(tmp_path, weight=1e-4)
    found = [one for one in endoscope.diagnose(path) if one.check == "very_quiet"]
    assert found and found[0].title.endswith("`: very quiet") and found[0].causes == ("Small weights.",)
    assert "heat.statistic=abs_max" in found[0].link and 0 < found[0].value < 0.01
    assert not endoscope.diagnose(path, checks=["very_quiet"], thresholds={"very_quiet": {"size": 1e-9}})
    assert not endoscope.diagnose(train(tmp_path, "loud", weight=10.0), checks=["very_quiet"])


def test_what_is_installed_is_found_by_the_command_line_the_page_and_the_report(tmp_path: Path) -> None:
    site, path = install(tmp_path, PLUG_IN), train(tmp_path / "runs", weight=1e-4)
    command = run(site, "-m", "endoscope", "check", str(path), "--only", "very_quiet")
    assert command.returncode == 1 and "very quiet" in command.stdout
    page = run(site, "-m", "endoscope.server.findings_process", typed=json.dumps(str(path)))  # what the server asks
    assert "very_quiet" in {one["check"] for one in json.loads(page.stdout)["findings"]}
    report = run(site, "-m", "endoscope", "report", str(path), "-o", str(tmp_path / "report.html"))
    assert report.returncode in (0, 1), report.stderr
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "very quiet" in text and "abs max of" in text
    without = run(None, "-m", "endoscope", "check", str(path), "--only", "very_quiet")
    assert without.returncode == 3 and "There is no check 'very_quiet'" in without.stderr


def test_a_plug_in_that_is_broken_is_left_out_and_named(tmp_path: Path) -> None:
    site, path = install(tmp_path, "1 / 0"), train(tmp_path / "runs")
    done = run(site, "-m", "endoscope", "check", str(path))
    assert "plug-in 'mine' (my_plugin) is left out" in done.stderr and "ZeroDivisionError" in done.stderr
    assert done.returncode == run(None, "-m", "endoscope", "check", str(path)).returncode


def test_a_name_that_is_taken_is_refused() -> None:
    check = Check(
        name="dead_units", description="", stage=Stage.DATA, run=lambda facts, limits: [], evidence=Evidence()
    )
    with pytest.raises(errors.BadArgument, match="'dead_units' is a check of Endoscope"):
        registry.register(check)
    with pytest.raises(errors.BadArgument, match=r"register\(\) takes a Check"):
        registry.register("dead_units")  # type: ignore[arg-type]
