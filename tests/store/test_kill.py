"""kill -9 at random moments, while somebody reads: no finished step is lost, nobody sees half a step."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from endoscope.errors import LookupFailed
from endoscope.query.recording import Recording
from tests.store.made_up import check_steps, measured

WRITER = Path(__file__).with_name("endless_writer.py")


def start(root: Path, *options: str) -> tuple["subprocess.Popen[str]", Path]:
    process = subprocess.Popen([sys.executable, str(WRITER), str(root), *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, root / process.stdout.readline().strip()


def kill(process: "subprocess.Popen[str]") -> int:
    """Kill it; returns the last step that it said was finished."""
    process.send_signal(signal.SIGKILL)
    said, _ = process.communicate()
    return int(said.split()[-1]) if said.split() else -1


def poll(recording: Recording) -> None:
    """What a reader sees at any moment is complete."""
    recording.refresh()
    steps = recording.steps
    assert [step.number for step in steps] == list(range(len(steps)))
    if steps:
        last = steps[-1].number
        numbers = measured(3, seed=last)
        assert recording.statistics("layer.0", last)["mean"] == numbers.whole["mean"][0]
        assert recording.samples("layer.0", last)["mean"].tolist() == numbers.samples["mean"][:4].tolist()
        assert recording.tensor("layer.0", last)[0, 0] == last
        assert len(recording.series("layer.1", "std")) == len(steps)
        # Small files of metrics are merged from time to time. Who looks at that moment is led to a newer journal.
        assert recording.metrics["loss"].steps[-1] == recording.steps[-1].number >= last
    assert recording.problems == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
@pytest.mark.slow
def test_killed_twenty_times_at_random_moments(tmp_path: Path) -> None:
    chance = random.Random(0)
    for number in range(20):
        process, trial = start(tmp_path)
        try:
            recording = Recording(trial)
            end = time.monotonic() + chance.uniform(0.0, 0.3)
            while time.monotonic() < end:
                poll(recording)
        finally:
            last = kill(process)
        assert trial.name == ("trial" if number == 0 else f"trial-{number + 1}")
        poll(recording)
        again = Recording(trial)
        finished = len(again.steps)
        assert finished - 1 in (last, last + 1)  # at most the last step had no time to say so
        check_steps(again, range(finished))
        assert again.verify() and not again.closed


def poll_newest(recording: Recording) -> None:
    """A step may be thinned between two questions, and then this is said; otherwise all of it is there."""
    for step in recording.steps[-2:]:
        try:
            found = recording.statistics("layer.0", step.number)
        except LookupFailed as error:
            assert "removed to stay within max_bytes" in str(error)  # noqa: PT017
        else:
            assert found["mean"] == measured(3, seed=step.number).whole["mean"][0]
    assert recording.problems == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_killed_while_thinning(tmp_path: Path) -> None:
    """With a small budget most of the time goes into thinning; the reader copes with files that vanish."""
    chance = random.Random(1)
    for _ in range(4):
        process, trial = start(tmp_path, "300000")
        try:
            recording = Recording(trial)
            end = time.monotonic() + chance.uniform(0.4, 1.0)
            while time.monotonic() < end or (not recording.steps and process.poll() is None):  # the machine may be busy
                recording.refresh()
                poll_newest(recording)
        finally:
            last = kill(process)
        again = Recording(trial)
        assert again.verify()
        assert again.steps[0].number == 0 and again.steps[-1].number in (last, last + 1)
        for step in again.steps:
            assert again.statistics("layer.1", step.number)["std"] == measured(3, seed=step.number).whole["std"][1]
