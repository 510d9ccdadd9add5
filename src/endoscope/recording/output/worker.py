"""The writer thread: takes finished steps from a bounded queue and gives them to the store.

    training thread ─► put(job) ─► queue, bounded in bytes and age ─► writer thread ─► store

Training never waits for the disk. When the queue is full, or a job in it is old, `has_room` says so and the caller
thins: a kill costs what is in the queue. The one exception is a short pause when the writer is behind: on a busy
interpreter it might otherwise never be scheduled, and a kill would cost more than the last step. A disk that needs
longer is not waited for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

REGULARLY_SECS = 0.25  # so often small things that wait are written, also if no step is recorded
MOST_BYTES = 64 * 2**20
MOST_JOBS = 512
MOST_AGE_SECS = 5.0  # of the oldest job that is not done: then nothing more is taken, and a kill cannot cost more
CATCH_UP_SECS = 0.1  # for a disk that is busy for a moment
CATCH_UP_AT_MOST_SECS = 0.002  # for one that was seen to be slower than that


class Worker:
    """Runs jobs in order in one thread; a job that fails is reported and the next one is tried."""

    def __init__(self, failed: Callable[[str, BaseException], None], idle: Callable[[], None], name: str) -> None:
        self._failed = failed
        self._idle = idle  # called whenever the queue has run empty: flush
        self._queue: SimpleQueue[tuple[Callable[[], Any], int] | None] = SimpleQueue()  # None: stop
        self._progress = threading.Condition()
        self._waiting = 0  # threads that want to be told about progress
        self._jobs = 0  # that are not done, the running one included
        self._bytes = 0
        self._since: deque[float] = deque()  # when the jobs that are not done were put into the queue
        self._is_slow = False
        self._is_stopping = False
        self.seconds = 0.0  # processor time of the thread
        self.regularly: Callable[[], bool] = lambda: False  # writes what waits, and says whether there was anything
        self._thread = threading.Thread(target=self._work, name=f"endoscope-{name}", daemon=True)
        self._thread.start()

    def has_room(self) -> bool:
        since = next(iter(self._since), None)
        is_old = since is not None and time.monotonic() - since >= MOST_AGE_SECS
        return self._bytes < MOST_BYTES and self._jobs < MOST_JOBS and not is_old

    def put(self, job: Callable[[], Any], size: int = 0) -> None:
        """Nothing happens where the thread is not: after the end, and in a forked process, whose lock may be held."""
        if not self._thread.is_alive():
            return
        with self._progress:
            if not self._is_stopping:
                self._jobs += 1
                self._bytes += size
                self._since.append(time.monotonic())
                self._queue.put((job, size))

    def let_catch_up(self) -> None:
        """Wait a moment, at most, until no more than the newest job is unwritten."""
        if self._jobs > 1:
            patience = CATCH_UP_AT_MOST_SECS if self._is_slow else CATCH_UP_SECS
            self._is_slow = not self._wait(1, patience)
        else:
            self._is_slow = False

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until everything is written."""
        return self._wait(0, timeout) if self._thread.is_alive() else not self._jobs

    def _wait(self, most: int, timeout: float | None) -> bool:
        """Until at most so many jobs are not done; False if that takes too long."""
        with self._progress:
            self._waiting += 1
            try:
                return self._progress.wait_for(lambda: self._jobs <= most, timeout)
            finally:
                self._waiting -= 1

    def stop(self, timeout: float | None = None) -> bool:
        done = self.drain(timeout)
        with self._progress:
            self._is_stopping = True
            self._queue.put(None)
        self._thread.join(timeout)
        return done

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _work(self) -> None:
        while (found := self._next()) is not None:
            job, size = found
            self._run(job)
            if self._jobs == 1:
                self._run(self._idle)
            with self._progress:
                self._jobs -= 1
                self._bytes -= size
                self._since.popleft()
                self.seconds = time.thread_time()
                if self._waiting:
                    self._progress.notify_all()
            del job, found

    def _next(self) -> tuple[Callable[[], Any], int] | None:
        while True:
            try:
                return self._queue.get(timeout=REGULARLY_SECS)
            except Empty:
                self._run(self._write_what_waits)

    def _write_what_waits(self) -> None:
        if self.regularly():
            self._idle()
            self.seconds = time.thread_time()

    def _run(self, job: Callable[[], Any]) -> None:
        try:
            job()
        except Exception as error:
            self._failed("writing", error)
