"""A check says in which statistics its findings are seen; the page and the report show these."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs

import pytest

import endoscope
from endoscope.findings.check import Check
from endoscope.findings.registry import all_checks
from endoscope.schema import stats
from tests.findings.planted import dying_relu


@pytest.mark.parametrize("check", all_checks().values(), ids=lambda check: check.name)
def test_only_checks_and_statistics_that_there_are(check: Check) -> None:
    assert set(check.explained_by) <= set(all_checks()) - {check.name}
    if check.evidence is not None:
        assert {*check.evidence.statistics, check.page_statistic} <= set(stats.WHOLE)
        assert check.evidence.units in ("", *stats.UNIT) and check.evidence.of in ("own", "gradient", "update")


def test_the_link_names_it(tmp_path: Path) -> None:
    first = endoscope.diagnose(dying_relu(tmp_path))[0]
    words = parse_qs(first.link.removeprefix("#"))
    assert first.check == "dead_units"
    assert words["heat.statistic"] == words["series.statistic"] == ["zeros"] and words["node"] == [first.node]
