"""The views of the demo draw what is selected, and something sensible if nothing is."""

import re
from pathlib import Path

import pytest

import endoscope
from endoscope.demo import views as module
from endoscope.demo.training import Settings, begin_run, train
from endoscope.query.recording import Recording
from endoscope.server.custom_views.selection import Selection
from endoscope.server.custom_views.views import Views


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    settings = Settings(steps=4)
    with begin_run(tmp_path_factory.mktemp("demo"), "suspect", settings) as run:
        train(run, settings, activate_last=True, say=lambda text: None)
    found = endoscope.open(run.path)
    assert isinstance(found, Recording)
    return found


@pytest.fixture(scope="module")
def views() -> Views:
    return Views(module.__file__)


def test_there_are_two(views: Views) -> None:
    described = views.describe()
    assert [view["name"] for view in described["views"]] == ["what_was_said", "answer_by_sum"]
    assert described["problem"] is None


@pytest.mark.parametrize("step", [None, 0, 3])
def test_both_can_be_shown(views: Views, recording: Recording, step: int | None) -> None:
    selection = Selection({"trials": ["suspect"], "step": step})
    assert views.run("what_was_said", selection, recording)["kind"] == "frame"
    assert views.run("answer_by_sum", selection, recording)["kind"] == "image"


def test_the_table_has_the_numbers_of_the_sample(recording: Recording) -> None:
    step = recording.steps[2]
    sample = step.raw_samples[-1]
    page = module.what_was_said(Selection({"step": step.number, "sample": sample}), recording)
    assert f"Step {step.number}, sample {sample} ({step.categories[sample]})" in page
    numbers = recording.tensor("input", step.number, sample=sample)
    shown = [float(number) for number in re.findall(r">([+-]\d+\.\d\d)<br>", page)]
    assert shown == pytest.approx(numbers.T.ravel().tolist(), abs=0.006)


def test_a_sample_that_was_not_kept_is_replaced(recording: Recording) -> None:
    step = recording.steps[0]
    page = module.what_was_said(Selection({"step": step.number, "sample": 10**6}), recording)
    assert f"sample {step.raw_samples[0]} " in page


def test_they_stand_where_the_command_looks_for_them() -> None:
    from endoscope.cli import demo

    assert demo._views() == Path(module.__file__)
