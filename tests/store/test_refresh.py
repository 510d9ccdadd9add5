"""Reading while writing: several readers, several threads, a trial that is recorded again."""

import contextlib
import shutil
import threading
from pathlib import Path

from endoscope.errors import LookupFailed
from endoscope.query.recording import Recording
from endoscope.store.writer import TrialWriter
from tests.store.made_up import check_steps, measured, step_record, write_trial


def test_a_reader_sees_each_step_after_refresh_and_not_before(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    recording = Recording(writer.path)
    assert recording.steps == [] and not recording.refresh() and not recording.closed
    for number in range(5):
        writer.write_step(step_record(writer, number))
        assert len(recording.steps) == number
        assert recording.refresh() and not recording.refresh()
        check_steps(recording, range(number + 1))
    writer.close()
    assert recording.refresh() and recording.closed


def test_a_trial_that_has_just_begun(tmp_path: Path) -> None:
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "trial.json").write_text('{"format": 1, "name": "trial"}')
    recording = Recording(tmp_path / "trial")
    assert recording.steps == [] and recording.nodes == [] and len(recording.metrics) == 0
    assert recording.notes == [] and recording.types == [] and recording.to_arrow().num_rows == 0


def test_a_trial_that_is_removed_and_recorded_again(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, steps=range(6))
    recording = Recording(trial)
    check_steps(recording, range(6))
    shutil.rmtree(trial)
    write_trial(tmp_path, steps=[10, 11])
    assert recording.refresh()
    check_steps(recording, [10, 11])


def test_threads_read_while_one_refreshes_and_one_writes(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=400_000)
    writer.write_step(step_record(writer, 0))
    recording = Recording(writer.path)
    failures: list[BaseException] = []
    done = threading.Event()

    def repeat(action: object) -> None:
        try:
            while not done.is_set():
                action()  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)

    def read_series() -> None:
        series = recording.series("layer.0", "mean")
        last = int(series.steps[-1])
        assert series.values[-1] == measured(3, seed=last).whole["mean"][0]

    def read_step() -> None:
        step = recording.steps[-1].number
        with contextlib.suppress(LookupFailed):  # another thread may have learned that it was thinned since
            assert recording.statistics("layer.1", step)["std"] == measured(3, seed=step).whole["std"][1]

    threads = [threading.Thread(target=repeat, args=[action]) for action in (recording.refresh, read_series, read_step)]
    for thread in threads:
        thread.start()
    for number in range(1, 150):
        writer.write_step(step_record(writer, number))
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    recording.refresh()
    assert recording.steps[-1].number == 149 and recording.problems == []
