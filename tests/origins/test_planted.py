"""Every planted producer and outlier is named, in a trace; and producers in a recording, too."""

import warnings
from pathlib import Path

import pytest

import endoscope
from tests.origins.asking import BAD_STEP, names_outlier, names_producer, recorded, traced
from tests.origins.outliers import OUTLIERS, Outlier
from tests.origins.producers import CASES, Case

pytestmark = pytest.mark.filterwarnings("ignore:std\\(\\)")
#: Python numbers that depend on the data: the recording knows those of a traced step only, and says "around here".
AROUND = ("spread_of_one_element",)
SLOW = ("zero_by_zero", "nan_in_the_data", "root_at_zero")  # a thousand operations: one of them is recorded here


def test_there_are_thirty_of_each() -> None:
    assert len(CASES) == len(OUTLIERS) == 30
    assert len({case.name for case in CASES}) == len({case.name for case in OUTLIERS}) == 30


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_producer_is_named_in_a_trace(case: Case) -> None:
    found = endoscope.origin(traced(case))
    assert names_producer(case, found), [str(one) for one in found]


@pytest.mark.parametrize("case", OUTLIERS, ids=lambda case: case.name)
def test_the_outlier_is_named_in_a_trace(case: Outlier) -> None:
    found = endoscope.origin(traced(case), sample=case.sample)
    assert names_outlier(case, found), [str(one) for one in found]


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in SLOW], ids=lambda case: case.name)
def test_the_producer_is_named_in_a_recording(case: Case, tmp_path: Path) -> None:
    found = endoscope.origin(recorded(case, tmp_path, endoscope.policies.on_nonfinite()))
    if case.name in AROUND:
        assert found[0].step == BAD_STEP and not found[0].exact
    else:
        assert names_producer(case, found, BAD_STEP), [str(one) for one in found]


def test_what_is_measured_early_is_repeated_as_well(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "by_zero")
    found = endoscope.origin(recorded(case, tmp_path, when=1))
    assert names_producer(case, found, BAD_STEP)
    assert [operand.at for operand in found[0].inputs][1] == 0.0


@pytest.mark.parametrize("name", ["scaled, images", "one_unit, chain", "a loud word, words", "constant, chain"])
def test_the_outlier_is_named_in_a_recording(name: str, tmp_path: Path) -> None:
    case = next(case for case in OUTLIERS if case.name == name)
    path = recorded(case, tmp_path)
    assert names_outlier(case, endoscope.origin(path, step=BAD_STEP, sample=case.sample), case.node)
    assert endoscope.origin(path, step=BAD_STEP - 1, sample=case.sample) == []


def test_nothing_is_wrong_with_a_healthy_batch() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for case in OUTLIERS[::7]:
            model, (x, flaw, _) = case.make(), case.data(bad=False)
            if hasattr(model.plant, "on"):
                model.plant.on = False
            trace = endoscope.trace(model, (x, flaw))
            assert endoscope.origin(trace) == []
            assert endoscope.origin(trace, sample=case.sample) == []
