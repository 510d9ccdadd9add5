"""Every finding about a tensor leads to the statistic in which it is seen."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs

import endoscope
from endoscope.findings.evidence import STATISTICS
from endoscope.findings.registry import all_checks
from endoscope.schema import stats
from tests.findings.planted import dying_relu


def test_only_checks_and_statistics_that_there_are() -> None:
    assert set(STATISTICS) <= set(all_checks())
    assert set(STATISTICS.values()) <= set(stats.WHOLE)


def test_the_link_names_it(tmp_path: Path) -> None:
    first = endoscope.diagnose(dying_relu(tmp_path))[0]
    words = parse_qs(first.link.removeprefix("#"))
    assert first.check == "dead_units"
    assert words["heat.statistic"] == words["series.statistic"] == ["zeros"] and words["node"] == [first.node]
