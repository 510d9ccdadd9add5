"""The thread that writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from endoscope.recording.output import worker as module
from endoscope.recording.output.worker import Worker


class Watched:
    """A worker, what it ran, and what it said."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.failures: list[str] = []
        self.worker = Worker(
            lambda where, error: self.failures.append(f"{where}: {error}"), lambda: self.ran.append("idle"), "test"
        )

    def put(self, name: str, size: int = 0) -> None:
        self.worker.put(lambda: self.ran.append(name), size)

    def block(self) -> threading.Event:
        """Keeps the thread busy until the event is set."""
        begun, go_on = threading.Event(), threading.Event()
        self.worker.put(lambda: (begun.set(), go_on.wait(10), None)[-1])
        assert begun.wait(10)
        return go_on


@pytest.fixture
def watched() -> Iterator[Watched]:
    found = Watched()
    yield found
    found.worker.stop(10)


def test_jobs_run_in_order_and_idle_comes_when_there_are_no_more(watched: Watched) -> None:
    go_on = watched.block()
    for name in "abc":
        watched.put(name)
    go_on.set()
    assert watched.worker.drain(10)
    assert watched.ran == ["a", "b", "c", "idle"]


def test_a_job_that_fails_is_told_and_the_next_one_is_tried(watched: Watched) -> None:
    def fail() -> None:
        raise OSError("disk full")

    watched.worker.put(fail)
    watched.put("after")
    assert watched.worker.drain(10)
    assert watched.failures == ["writing: disk full"]
    assert "after" in watched.ran


def test_waiting_has_an_end(watched: Watched) -> None:
    go_on = watched.block()
    assert not watched.worker.drain(0.01)
    go_on.set()
    assert watched.worker.drain(10)


def test_there_is_no_room_for_too_many_jobs_or_bytes(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_JOBS", 3)
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    go_on = watched.block()
    watched.put("a")
    assert watched.worker.has_room()
    watched.put("b")
    assert not watched.worker.has_room()
    go_on.set()
    assert watched.worker.drain(10)
    assert watched.worker.has_room()
    go_on = watched.block()
    watched.put("large", 100)
    assert not watched.worker.has_room()
    go_on.set()
    assert watched.worker.drain(10)
    assert watched.worker.has_room()


def test_there_is_no_room_behind_an_old_job(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that stalls: what waits is lost if the process is killed, so nothing more is added to it."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    go_on = watched.block()
    now[0] += module.MOST_AGE_SECS - 1
    watched.put("a")
    assert watched.worker.has_room()
    now[0] += 1
    assert not watched.worker.has_room()
    monkeypatch.undo()
    go_on.set()
    assert watched.worker.drain(10)
    assert watched.worker.has_room()


def test_catching_up_waits_for_all_but_the_newest_job(watched: Watched) -> None:
    go_on = watched.block()
    watched.put("a")
    threading.Timer(0.02, go_on.set).start()
    watched.worker.let_catch_up()
    assert go_on.is_set()


def test_a_slow_disk_is_waited_for_once_and_then_hardly(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CATCH_UP_SECS", 0.05)
    monkeypatch.setattr(module, "CATCH_UP_AT_MOST_SECS", 0.0)
    go_on = watched.block()
    watched.put("a")
    started = time.monotonic()
    watched.worker.let_catch_up()
    assert time.monotonic() - started >= 0.05
    watched.worker.let_catch_up()
    assert not go_on.is_set()
    go_on.set()


def test_everything_is_done_before_the_end_and_nothing_afterwards() -> None:
    watched = Watched()
    go_on = watched.block()
    watched.put("a")
    go_on.set()
    assert watched.worker.stop(10)
    assert watched.ran == ["a", "idle"]
    assert not watched.worker.alive
    watched.put("late")
    assert watched.worker.drain(1)
    assert watched.ran == ["a", "idle"]


def test_what_comes_while_it_stops_is_not_waited_for() -> None:
    watched = Watched()
    go_on = watched.block()
    stopping = threading.Thread(target=watched.worker.stop, args=(10,))
    assert not watched.worker.stop(0.01)
    watched.put("late")
    go_on.set()
    stopping.start()
    stopping.join(10)
    assert watched.worker.drain(1)
    assert "late" not in watched.ran
