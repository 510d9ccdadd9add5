"""Every statistic has its place on the page."""

import re

import pytest

from endoscope.schema.stats import HISTOGRAM_BINS, SAMPLE, UNIT, UNIT_CAP, WHOLE
from endoscope.stats.kernels import EXACT_UP_TO
from endoscope.stats.measuring import SAMPLE_CAP
from endoscope.stats.singular import ALL_UP_TO
from tests.house.pages import headings
from tests.house.tree import ROOT

PAGE = ROOT / "docs" / "reference" / "statistics.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_statistic_has_a_heading() -> None:
    named = {name for title in headings(PAGE) for name in re.findall(r"`(\w+)`", title)}
    assert named == set(WHOLE)


@pytest.mark.parametrize(("heading", "names"), [("Of each sample", SAMPLE), ("Of each unit", UNIT)])
def test_samples_and_units(heading: str, names: tuple[str, ...]) -> None:
    section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert set(names) <= set(re.findall(r"`(\w+)`", section))


@pytest.mark.parametrize("limit", [EXACT_UP_TO, UNIT_CAP, SAMPLE_CAP, ALL_UP_TO, HISTOGRAM_BINS])
def test_the_limits_are_those_of_the_code(limit: int) -> None:
    assert f"{limit:,}" in TEXT
