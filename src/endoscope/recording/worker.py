"""The writer thread: takes finished steps from a bounded queue and gives them to the store.

    training thread ─► put(job) ─► queue, bounded in bytes ─► writer thread ─► store

Training never waits for the disk. When the queue is full, `has_room` says so and the caller thins. The one exception is
a short pause when the writer is behind: on a busy interpreter it might otherwise never be scheduled, and a kill would
cost more than the last step. A disk that needs longer is not waited for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

MOST_BYTES = 256 * 2**20
MOST_JOBS = 512
CATCH_UP_SECS = 0.1  # for a disk that is busy for a moment
CATCH_UP_AT_MOST_SECS = 0.002  # for one that was seen to be slower than that


class Worker:
    """Runs jobs in order in one thread; a job that fails is reported and the next one is tried."""

    def __init__(self, failed: Callable[[str, BaseException], None], idle: Callable[[], None], name: str) -> None:
        self._failed = failed
        self._idle = idle  # called whenever the queue has run empty: flush
        self._jobs: deque[tuple[Callable[[], None], int]] = deque()
        self._changed = threading.Condition()
        self._bytes = 0
        self._busy = False
        self._is_slow = False
        self._stopping = False
        self.seconds = 0.0  # processor time of the thread
        self._thread = threading.Thread(target=self._work, name=f"endoscope-{name}", daemon=True)
        self._thread.start()

    def has_room(self) -> bool:
        return self._bytes < MOST_BYTES and len(self._jobs) < MOST_JOBS

    def put(self, job: Callable[[], None], size: int = 0) -> None:
        """Nothing happens where the thread is not: after the end, and in a forked process, whose lock may be held."""
        if not self._thread.is_alive():
            return
        with self._changed:
            self._jobs.append((job, size))
            self._bytes += size
            self._changed.notify_all()

    def let_catch_up(self) -> None:
        """Wait a moment, at most, until no more than the newest job is unwritten."""
        if len(self._jobs) > 1:
            with self._changed:
                self._is_slow = not self._changed.wait_for(
                    lambda: len(self._jobs) <= 1, CATCH_UP_AT_MOST_SECS if self._is_slow else CATCH_UP_SECS
                )
        else:
            self._is_slow = False

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until everything is written."""
        if not self._thread.is_alive():
            return not self._jobs
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs and not self._busy, timeout)

    def stop(self, timeout: float | None = None) -> bool:
        done = self.drain(timeout)
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(timeout)
        return done

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._stopping:
                    self._changed.wait()
                if not self._jobs:
                    return
                job, size = self._jobs[0]
                self._busy = True
            self._run(job)
            if len(self._jobs) == 1:
                self._run(self._idle)
            with self._changed:
                self._jobs.popleft()
                self._bytes -= size
                self._busy = bool(self._jobs)
                self.seconds = time.thread_time()
                self._changed.notify_all()
            del job

    def _run(self, job: Callable[[], Any]) -> None:
        try:
            job()
        except Exception as error:
            self._failed("writing", error)
