"""The page about statistics says what is registered."""

import re
import sys

import pytest

from endoscope.schema.stats import HISTOGRAM_BINS, SAMPLE, UNIT, UNIT_CAP, WHOLE
from endoscope.stats.kernels import EXACT_UP_TO
from endoscope.stats.measuring import SAMPLE_CAP
from endoscope.stats.singular import ALL_UP_TO
from tests.house.tree import ROOT

sys.path.insert(0, str(ROOT / "docs"))
import make_statistics

PAGE = ROOT / "docs" / "reference" / "statistics.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_table_tells_every_statistic() -> None:
    assert make_statistics.written(TEXT) == TEXT, "run: make generated"
    told = re.findall(r"^\| `(\w+)` \|.*\| (yes|) \| (yes|) \|$", TEXT, re.MULTILINE)
    assert [name for name, _, _ in told] == list(WHOLE)
    assert {name for name, sample, _ in told if sample} == set(SAMPLE)
    assert {name for name, _, unit in told if unit} == set(UNIT)


@pytest.mark.parametrize("limit", [EXACT_UP_TO, UNIT_CAP, SAMPLE_CAP, ALL_UP_TO, HISTOGRAM_BINS])
def test_the_limits_are_those_of_the_code(limit: int) -> None:
    assert f"{limit:,}" in TEXT
