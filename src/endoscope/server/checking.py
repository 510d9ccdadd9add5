"""Findings of the trials that somebody looks at. No request waits for them.

    look(trial), look_at_all() ─► what is known now; orders, if that is old
    orders ─► one thread ─► a process with low priority (findings_process.py) ─► kept ─► Live tells the pages

While a training runs its trial is checked again and again, with pauses so long that checking takes a small part of one
core, and only as long as somebody asks for the result. The process stays while there are orders: to begin takes it
longer than to check a small trial.

The checks themselves are imported where they are needed: the page must not wait for them before it begins.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from endoscope.errors import EndoscopeError
from endoscope.query import places
from endoscope.server.library import Library
from endoscope.server.stamps import stamp

if TYPE_CHECKING:
    from endoscope.server.findings_process import Checked

PAUSE_SECS = 3.0  # between two checks of one trial, at least
PAUSE_SHARE = 6.0  # and this many times what the last one took of a core
_SOURCES = Path(__file__).resolve().parents[2]  # the process must find the same package
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Compute = Callable[[Path], "Checked"]


@dataclass(slots=True)
class _Entry:
    """What is known about one trial."""

    result: Checked | None = None
    about: Hashable = None  # how much was recorded, and which thresholds held
    ended: float = 0.0
    is_ordered: bool = False
    is_asked: bool = False  # since the last result
    told: Hashable = None  # what the pages know: the result, and what is silenced


class Checker:
    """The process that checks, one trial after the other; it is started when it is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._is_over = False

    def checked(self, trial: Path) -> Checked:
        """Wait for the result of one trial."""
        try:
            process = self._process = self._process or self._started()
        except OSError:  # there is no Python to start, as in some programs that contain one
            from endoscope.server.findings_process import checked

            return checked(trial)
        if self._is_over:
            process.kill()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            process.stdin.write(json.dumps(str(trial)) + "\n")
            process.stdin.flush()
            answer: Checked = json.loads(process.stdout.readline())
            return answer
        self._process = None  # it has ended, and the next trial gets another
        _, said = process.communicate()
        return _failed((said.strip().splitlines() or ["the process ended without an answer"])[-1])

    def rest(self) -> None:
        """Nothing is wanted at the moment: the process ends, and gives its memory back."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def stop(self) -> None:
        """For good, and at once."""
        self._is_over = True
        process = self._process
        if process is not None:
            process.kill()

    def _started(self) -> subprocess.Popen[str]:
        known = [str(_SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(known)}
        # -P: a file of the user's in the current folder must not stand in for a library.
        command = [sys.executable, "-P", "-m", "endoscope.server.findings_process"]
        return subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip


class Checking:
    """May be shared by threads. `compute` is exchanged in tests."""

    def __init__(self, library: Library, compute: Compute | None = None) -> None:
        self._library = library
        self._checker = Checker()
        self._compute = compute or self._checker.checked
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._orders: list[str] = []
        self._is_working = False
        self._is_over = False
        self.writing = threading.Lock()  # held by who changes what is silenced

    def look(self, name: str) -> tuple[Checked | None, bool]:
        """The newest result, and whether a newer one is on its way; it goes before those of other trials."""
        path = self._library.folder_of(name)
        with self._lock:
            entry = self._ask(name, path)
            if name in self._orders:
                self._orders.remove(name)
                self._orders.insert(0, name)
            return entry.result, entry.is_ordered

    def look_at_all(self) -> dict[str, tuple[Checked | None, bool]]:
        """The same of all trials, in the order in which they stand in the folder."""
        found = {}
        for name, path in self._library.paths().items():
            with self._lock:
                entry = self._ask(name, path)
                found[name] = (entry.result, entry.is_ordered)
        return found

    def _ask(self, name: str, path: Path) -> _Entry:
        entry = self._entries.setdefault(name, _Entry(told=_silenced_stamp(path)))
        entry.is_asked = True
        self._order_if_old(name, entry, path)
        return entry

    def news(self) -> list[str]:
        """Trials of which the pages know less than there is; called again and again while somebody listens."""
        changed = []
        for name, entry in list(self._entries.items()):
            try:
                path = self._library.folder_of(name)
            except EndoscopeError:  # it has gone
                self._entries.pop(name, None)
                continue
            with self._lock:
                if entry.is_asked:
                    self._order_if_old(name, entry, path)
                silenced = _silenced_stamp(path)
                stamp = (entry.about, silenced) if entry.result else silenced
                if stamp != entry.told:
                    entry.told = stamp
                    changed.append(name)
        return changed

    def stop(self) -> None:
        """Nothing is computed from now on."""
        with self._lock:
            self._is_over = True
            self._orders.clear()
        self._checker.stop()

    def _order_if_old(self, name: str, entry: _Entry, path: Path) -> None:
        if self._is_over or entry.is_ordered or entry.about == _about(path):
            return
        took = entry.result["seconds"] if entry.result else 0.0
        rested = time.monotonic() - entry.ended >= max(PAUSE_SECS, PAUSE_SHARE * took)
        if entry.result is not None and not rested and not places.has_ended(path):
            return
        entry.is_ordered = True
        self._orders.append(name)
        if not self._is_working:
            self._is_working = True
            threading.Thread(target=self._work, name="endoscope-check", daemon=True).start()

    def _work(self) -> None:
        """One trial after the other, until nothing is ordered."""
        while True:
            with self._lock:
                if not self._orders:
                    self._is_working = False
                    self._checker.rest()
                    return
                name = self._orders.pop(0)
            self._check(name)

    def _check(self, name: str) -> None:
        about: Hashable = None
        try:
            path = self._library.folder_of(name)
            about = _about(path)
            result = self._compute(path)
        except Exception as error:  # a page that waits for ever helps nobody
            result = _failed(f"{type(error).__name__}: {error}")
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None and not self._is_over:
                entry.result, entry.about, entry.ended = result, about, time.monotonic()
                entry.is_ordered = entry.is_asked = False


def _failed(why: str) -> Checked:
    sentence = f"The checks could not be run: {why}. `endoscope check` in a terminal says more."
    return {"findings": [], "checks": 0, "steps": 0, "lastStep": None, "seconds": 0.0, "problem": sentence}


def _about(trial: Path) -> Hashable:
    from endoscope.findings import settings

    files = [folder / settings.FILE for folder in (trial.parent, trial, Path())]
    return tuple(map(stamp, [*places.signs(trial), *files]))


def _silenced_stamp(trial: Path) -> Hashable:
    from endoscope.findings import silence

    return stamp((trial if places.rank_in(trial) is None else trial.parent) / silence.FILE)
