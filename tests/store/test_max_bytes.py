"""max_bytes is kept to the byte, whatever is written; what does not fit is left out in an order, and it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endoscope.errors import BadArgument, ValueNotKept
from endoscope.query.recording import Recording
from endoscope.schema.recording import GapRecord, Key
from endoscope.store.writer import TrialWriter
from tests.store.made_up import measured, step_record


def bytes_of(writer: TrialWriter) -> int:
    return sum(path.stat().st_size for path in writer.path.rglob("*") if path.is_file())


def reasons(recording: Recording) -> list[str]:
    return [gap.reason for gap in recording.gaps]


def wide_step(writer: TrialWriter, number: int, rows: int, **others: Any) -> Any:
    return step_record(writer, number, rows, raw=[], **others)


@pytest.mark.parametrize("max_bytes", [1, 5_000, 8_000])
def test_a_limit_below_what_every_trial_takes(tmp_path: Path, max_bytes: int) -> None:
    with pytest.raises(BadArgument, match=rf"max_bytes={max_bytes} is too small.* takes 8\d\d\d b"):
        TrialWriter.create(tmp_path, "trial", max_bytes=max_bytes)
    assert not (tmp_path / "trial").exists()


def test_a_configuration_that_is_larger_than_the_limit(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="an empty trial takes 1"):
        TrialWriter.create(tmp_path, "trial", max_bytes=50_000, config={"text": "x" * 100_000})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), max_bytes=st.integers(9_000, 120_000))
def test_every_byte_counts(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, max_bytes: int) -> None:
    """Whatever is written in whatever order: at no moment is there too much, and what is left can be read."""
    writer = TrialWriter.create(tmp_path_factory.mktemp("runs"), "trial", max_bytes=max_bytes)
    kinds = st.sampled_from(["step", "raw", "wide", "metrics", "note", "gap", "modules", "config", "keys"])
    for number, kind in enumerate(data.draw(st.lists(kinds, min_size=5, max_size=60))):
        if kind == "step":
            writer.write_step(step_record(writer, number, raw=[]))
        elif kind == "raw":
            writer.write_step(step_record(writer, number, type_=str(number % 3)))
        elif kind == "wide":
            writer.write_step(wide_step(writer, number, 30))
        elif kind == "metrics":
            for step in range(number, number + 50):
                writer.write_metrics(step, "train", 0.0, {"loss": 1.0})
        elif kind == "note":
            writer.write_note(number, 0.0, "x" * 700)
        elif kind == "gap":
            writer.write_gap(number, 0.0, GapRecord("node", "value", "y" * 300))
        elif kind == "modules":
            writer.write_modules({str(n): {"type": "Linear"} for n in range(20 * number)})
        elif kind == "config":
            writer.update_config({str(number): "z" * 400})
        elif kind == "keys":
            writer.key_id(Key("n" * 900 + str(number)))
        writer.commit()
        assert bytes_of(writer) <= max_bytes, (kind, number)
    writer.close()
    assert bytes_of(writer) <= max_bytes
    recording = Recording(writer.path)
    assert recording.closed and recording.verify()
    for step in recording.steps:
        assert recording.statistics("layer.0", step.number)["count"] >= 0


def test_what_is_left_out_of_a_step_that_is_too_large(tmp_path: Path) -> None:
    """First raw values, then what is known per sample and per unit, then the step; its metrics stay."""
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=40_000)
    size = 0
    for rows, expected in ((10, "everything"), (24, "no parts"), (90, "nothing")):
        writer.write_step(wide_step(writer, size, rows))
        recording = Recording(writer.path)
        there = [step.number for step in recording.steps]
        assert (size in there) == (expected != "nothing")
        if expected == "nothing":
            continue
        assert recording.statistics("layer.3", size)["mean"] == measured(rows, seed=size).whole["mean"][3]
        if expected == "everything":
            assert recording.samples("layer.3", size)
        else:
            with pytest.raises(ValueNotKept):
                recording.samples("layer.3", size)
        size += 1
    writer.close()
    recording = Recording(writer.path)
    assert recording.metrics["loss"].steps.tolist() == [0, 1, 2]
    said = [(gap.step, gap.reason) for gap in recording.gaps if "too little room" in gap.reason]
    assert said == [
        (1, "too little room for statistics per sample and per unit within max_bytes=40000; this gap is listed once"),
        (2, "too little room for what was recorded of the step within max_bytes=40000; this gap is listed once"),
    ]
    assert recording.verify() and bytes_of(writer) <= 40_000


def test_a_step_that_never_fits_pushes_nothing_out(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=100_000)
    for number in range(6):
        writer.write_step(step_record(writer, number))
    for number in range(6, 20):
        writer.write_step(wide_step(writer, number, 400))
    writer.close()
    recording = Recording(writer.path)
    assert [step.number for step in recording.steps] == list(range(6))
    assert recording.metrics["loss"].steps.tolist() == list(range(20))
    assert len(recording.gaps) == 1


def test_metrics_outlive_all_steps_but_the_first(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=60_000)
    for number in range(0, 6000, 100):
        writer.write_step(step_record(writer, number, metrics={}))
        for step in range(number, number + 100):
            writer.write_metrics(step, "train", 0.0, {"loss": step / 2})
        writer.commit()
        assert bytes_of(writer) <= 60_000
    writer.close()
    recording = Recording(writer.path)
    assert recording.steps[0].number == 0
    steps = recording.metrics["loss"].steps
    assert steps[0] == 0 and steps[-1] == 5999
    assert recording.metrics["loss"].values.tolist() == (steps / 2).tolist()
    every = max(
        int(reason.split("every ")[1].split()[0]) for reason in reasons(recording) if "are kept every" in reason
    )
    assert set(range(0, 5900, every)) <= set(steps.tolist())
    assert len(recording.gaps) < 30 and recording.verify()


def test_a_reader_keeps_up_with_metrics_that_are_thinned(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=20_000)
    recording = Recording(writer.path)
    for number in range(3000):
        writer.write_metrics(number, "train", 0.0, {"loss": number})
        if number % 20 == 0:
            writer.commit()
            recording.refresh()
            steps = recording.metrics["loss"].steps
            assert steps[0] == 0 and steps[-1] == number
            assert recording.metrics["loss"].values.tolist() == steps.tolist()
    writer.close()
    assert recording.problems == []


def test_what_was_lost_is_said_a_bounded_number_of_times(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=120_000)
    for number in range(1500):
        writer.write_step(step_record(writer, number, metrics={}))
    writer.close()
    recording = Recording(writer.path)
    assert recording.steps[0].number == 0 and recording.steps[-1].number == 1499 and len(recording.steps) > 4
    assert 2 <= len(recording.gaps) <= 30


def test_graphs_go_with_their_steps_and_come_back(tmp_path: Path) -> None:
    """Every step has another graph, except for one that comes again and again."""
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=110_000)
    recording = Recording(writer.path)
    for number in range(200):
        name = "often" if number % 7 == 3 else f"h{number}"
        graph = {"nodes": [name] * 200}
        writer.write_step(step_record(writer, number, raw=[], graph_hash=name, graph=graph))
        assert bytes_of(writer) <= 110_000
        recording.refresh()
        assert recording.graph(number) == graph
    writer.close()
    again = Recording(writer.path)
    assert len(again.steps) > 4 and again.verify()
    for step in again.steps:
        assert again.graph(step.number)["nodes"][0] == step.graph
    there = {path.stem for path in writer.path.rglob("graphs/*.json")}
    assert there == {step.graph for step in again.steps}
