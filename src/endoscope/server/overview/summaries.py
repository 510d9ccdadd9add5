"""A few numbers of every trial, read beside: no request waits long for hundreds of them.

    look() ─► what is known by now; trials that are new, or have grown, are ordered
    orders ─► one thread, the newest trial first ─► kept ─► Live tells the pages

A trial is opened for as long as its numbers are read, and no longer: hundreds of open ones would fill the memory.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from endoscope.errors import EndoscopeError
from endoscope.query import places
from endoscope.query.liveness import is_written
from endoscope.query.summary import Summary, summarise
from endoscope.query.trial import of_folder
from endoscope.server.library import Library
from endoscope.server.stamps import stamp

_PATIENCE_SECS = 0.4  # of the first question: as many trials as are read in that time stand in its answer
_TELL_SECS = 0.5  # while many are read, the pages are told so often


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one trial."""

    path: Path
    created: float
    config: dict[str, Any]
    seen: Hashable = None  # stamp of the files that it was read from
    summary: Summary | None = None  # None: not read yet, or not readable
    problem: str = ""  # why it cannot be read

    @property
    def is_read(self) -> bool:
        return self.summary is not None or bool(self.problem)

    @property
    def live(self) -> bool:
        return any(is_written(*writer) for writer in (self.summary.writers if self.summary else ()))


class Summaries:
    """May be shared by threads."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._has_read = threading.Condition(self._lock)
        self._known: dict[str, Known] = {}
        self._orders: list[str] = []
        self._is_working = False
        self._is_over = False
        self._has_answered = False
        self._version = 0  # counts what was read
        self._told = (0, 0.0)  # version, and when

    def look(self) -> dict[str, Known]:
        """All trials, the newest first; what has not been read yet is on its way."""
        self._order()
        with self._has_read:
            patience = 0.0 if self._has_answered else _PATIENCE_SECS
            self._has_read.wait_for(lambda: not self._is_working, patience)
            self._has_answered = True
            return dict(self._known)

    def has_news(self) -> bool:
        """Whether the pages know less than there is; called again and again while somebody listens."""
        if self._has_answered:
            self._order()
        with self._lock:
            version, told_at = self._told
            is_due = not self._is_working or time.monotonic() - told_at > _TELL_SECS
            if self._version == version or not is_due:
                return False
            self._told = (self._version, time.monotonic())
            return True

    def stop(self) -> None:
        """Nothing is read from now on."""
        with self._lock:
            self._is_over = True
            self._orders.clear()

    def _order(self) -> None:
        found = self._library.paths()
        stamps = {name: _stamp(path) for name, path in found.items()}
        with self._lock:
            new = [name for name in found if name not in self._known]
        begun = {name: _begun(found[name]) for name in new}
        with self._lock:
            known = {**self._known, **begun}
            gone = known.keys() - found.keys()
            self._known = dict(
                sorted(((n, k) for n, k in known.items() if n not in gone), key=lambda one: (-one[1].created, one[0]))
            )
            self._version += 1 if gone or begun else 0
            self._orders = [name for name, one in self._known.items() if one.seen != stamps[name]]
            if self._orders and not self._is_working and not self._is_over:
                self._is_working = True
                threading.Thread(target=self._work, name="endoscope-overview", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._has_read:
                if not self._orders:
                    self._is_working = False
                    self._has_read.notify_all()
                    return
                name = self._orders.pop(0)
                path = self._known[name].path
            read = _read(path)
            with self._lock:
                if name in self._known:
                    self._known[name] = read
                    self._version += 1


def _begun(path: Path) -> Known:
    created, config = places.begun(path)
    return Known(path, created, config)


def _read(path: Path) -> Known:
    seen = _stamp(path)  # before it is read: what comes meanwhile is read again
    created, config = places.begun(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody would see them; `problems` keeps them
            return Known(path, created, config, seen, summarise(of_folder(path)))
    except (EndoscopeError, OSError) as error:
        return Known(path, created, config, seen, None, str(error))
    except Exception as error:  # one trial must not keep the others from being shown
        return Known(path, created, config, seen, None, f"{type(error).__name__}: {error}")


def _stamp(path: Path) -> Hashable:
    return tuple(map(stamp, places.signs(path)))
