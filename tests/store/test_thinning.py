"""Under max_bytes old steps are thinned evenly, raw values first; first and newest stay; it is said."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.errors import LookupFailed, ValueNotKept
from endoscope.query.recording import Recording
from endoscope.schema.recording import RawValues
from endoscope.store.limit.thinning import Recorded, choose
from endoscope.store.writer import TrialWriter
from tests.store.made_up import measured, step_record


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def recorded(types: list[str], size: int = 1) -> list[Recorded]:
    return [Recorded(n, kind, types[:n].count(kind), size) for n, kind in enumerate(types)]


def test_every_second_step_goes_then_every_second_of_the_rest() -> None:
    steps = recorded(["a"] * 17)
    assert [step.ordinal for step in choose(steps, 1, 1).steps] == list(range(1, 17, 2))
    left = [step for step in steps if step.ordinal % 2 == 0]
    second = choose(left, 1, 1)
    assert second.level == 2 and [step.ordinal for step in second.steps] == [2, 6, 10, 14]


def test_types_are_thinned_separately_and_rare_ones_keep_their_first() -> None:
    steps = recorded(["a", "rare", "a", "a", "a", "rare", "a", "a"])
    gone = {step.ordinal for step in choose(steps, 2, 1).steps}
    assert gone == {2, 4} and choose(steps, 2, 1).level == 1
    assert {step.ordinal for step in choose(steps, 4, 1).steps} == {2, 3, 4, 6}


def test_nearly_as_many_types_as_steps() -> None:
    steps = recorded([f"type {n}" for n in range(9)])
    assert [step.ordinal for step in choose(steps, 4, 1).steps] == [1, 3, 5, 7]


@given(types=st.lists(st.sampled_from("abc"), min_size=1, max_size=40), to_free=st.integers(1, 60))
def test_the_first_and_the_newest_stay_and_enough_goes_if_possible(types: list[str], to_free: int) -> None:
    steps = recorded(types)
    gone = {step.ordinal for step in choose(steps, to_free, 1).steps}
    assert 0 not in gone and len(types) - 1 not in gone
    assert len(gone) >= min(to_free, len(types) - 2)


def write(tmp_path: Path, steps: int, max_bytes: int, raw: bool = True) -> Path:
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=max_bytes)
    for number in range(steps):
        values = [RawValues(0, np.full((2, 500), number, np.float32), [0, 2])] if raw else []
        writer.write_step(step_record(writer, number, raw=values))
        assert folder_bytes(writer.path) <= max_bytes
    writer.close()
    assert folder_bytes(writer.path) <= max_bytes
    return writer.path


def test_raw_values_go_first_and_evenly(tmp_path: Path) -> None:
    recording = Recording(write(tmp_path, steps=60, max_bytes=550_000))
    assert [step.number for step in recording.steps] == list(range(60))
    kept = []
    for number in range(60):
        try:
            assert recording.tensor("layer.0", number)[0, 0] == number
            kept.append(number)
        except ValueNotKept as error:
            assert "they were removed to stay within max_bytes" in str(error)  # noqa: PT017
    assert kept[0] == 0 and kept[-1] == 59 and 10 < len(kept) < 60
    distances = np.diff(kept).tolist()
    assert distances == sorted(distances, reverse=True) and distances.count(distances[0]) > 10
    assert recording.verify()
    said = [gap.reason for gap in recording.gaps]
    assert said and all(reason.startswith("raw values of ") for reason in said) and "max_bytes=550000" in said[0]


def test_then_statistics_go_evenly(tmp_path: Path) -> None:
    recording = Recording(write(tmp_path, steps=400, max_bytes=600_000, raw=False))
    assert recording.verify() and recording.closed
    kept = [step.number for step in recording.steps]
    assert kept[0] == 0 and kept[-1] == 399 and 20 < len(kept) < 400
    series = recording.series("layer.1", "std")
    assert series.steps.tolist() == kept
    assert series.values.tolist() == [measured(3, seed=number).whole["std"][1] for number in kept]
    assert recording.series("layer.1", "std", sample=2).steps.tolist() == kept
    assert recording.units("layer.0", kept[1])["mean"].tolist() == measured(3, seed=kept[1]).units["mean"][:3].tolist()
    assert recording.to_arrow().num_rows == 3 * len(kept)
    assert recording.sql("select count(*) from steps").rows == [(len(kept),)]
    distances = np.diff(kept).tolist()
    assert distances == sorted(distances, reverse=True)  # even in the past, every step since the last thinning
    assert distances.count(distances[0]) > 30
    assert recording.metrics["loss"].steps.tolist() == list(range(400))  # metrics are never thinned
    gone = next(number for number in range(400) if number not in kept)
    with pytest.raises(LookupFailed, match=rf"Step {gone} was .*removed to stay within max_bytes\. Nearest: 0, "):
        recording.statistics("layer.0", gone)
    assert any(gap.reason.startswith("all values of ") for gap in recording.gaps)


def test_a_reader_keeps_up_with_thinning(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=400_000)
    recording = Recording(writer.path)
    for number in range(300):
        writer.write_step(step_record(writer, number))
        if number % 7 == 0:
            recording.refresh()
            kept = [step.number for step in recording.steps]
            assert kept[0] == 0 and kept[-1] == number
            series = recording.series("layer.0", "mean")
            assert series.steps.tolist() == kept
            assert series.values.tolist() == [measured(3, seed=n).whole["mean"][0] for n in kept]
    assert recording.problems == []


def test_a_reader_that_learns_of_thinning_from_missing_files(tmp_path: Path) -> None:
    """It has read the journal before, and opens the segments after they were replaced."""
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=400_000)
    late = None
    for number in range(300):
        writer.write_step(step_record(writer, number))
        if number == 100:
            late = Recording(writer.path)
    assert late is not None
    kept = [step.number for step in Recording(writer.path).steps]
    assert late.series("layer.0", "mean").steps.tolist() == kept
    assert late.problems == []


def test_many_segments_do_not_pile_up(tmp_path: Path) -> None:
    trial = write(tmp_path, steps=900, max_bytes=900_000, raw=False)
    assert len(list((trial / "rank-0").glob("stats-*.arrow"))) < 20
