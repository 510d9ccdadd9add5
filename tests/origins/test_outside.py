"""What code outside of modules makes is named, or it is said that it is not known."""

from pathlib import Path

import pytest

import endoscope
from tests.origins.outside import OUTSIDE, Outside


@pytest.mark.parametrize("case", OUTSIDE, ids=lambda case: case.name)
def test_no_wrong_line_is_called_certain(case: Outside, tmp_path: Path) -> None:
    found = endoscope.origin(case.recorded(tmp_path))
    assert found and (case.is_named(found) or not found[0].exact), [str(one) for one in found]


@pytest.mark.parametrize("case", [case for case in OUTSIDE if case.watched], ids=lambda case: case.name)
def test_where_every_operation_is_recorded_it_is_named(case: Outside, tmp_path: Path) -> None:
    found = endoscope.origin(case.recorded(tmp_path, "*"))
    assert case.is_named(found), [str(one) for one in found]
