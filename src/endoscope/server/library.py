"""The trials that are served: opened when first asked for, kept up to date, looked up by name and never by path."""

from __future__ import annotations

import contextlib
import difflib
import mmap
import re
import threading
import time
import warnings
from collections import OrderedDict
from os import PathLike
from pathlib import Path
from weakref import WeakSet

from endoscope.errors import DamageWarning, EndoscopeError, LookupFailed, NotARecording
from endoscope.query import bulk, places
from endoscope.query.catalog import Recordings
from endoscope.query.open import look
from endoscope.query.recording import Recording
from endoscope.query.trial import of_folder

_OF_RANK = re.compile(r"(.+):rank-(\d{1,9})")
_MOST_OPEN = 24  # trials; each takes about a megabyte
_MOST_MAPPED = 110 << 20  # bytes in memory, libraries included; above, mapped files are let go of
_STALE_SECS = 2.0  # longer than a page that listens lets pass, so that no news is taken away from it
_FIRST_LOOK_SECS = 1.5  # what a page begins with is read meanwhile; two who read would only wait for each other


class Library:
    """One trial, or a folder of trials. May be shared by threads.

    A name from an address is only ever a key of a mapping that was filled by looking into the folder, so no address
    can lead out of it. Of hundreds of trials only those that were looked at last are open.
    """

    def __init__(self, path: str | PathLike[str], *, waits: bool = False) -> None:
        """`waits`: the folder may be empty, or not there yet."""
        self.path = Path(path).expanduser()
        self._lock = threading.RLock()
        self._states: dict[str, tuple[int, int, int, bool]] = {}
        self._open: OrderedDict[str, Recording] = OrderedDict()  # the last one asked for at the end
        self._warmed: WeakSet[Recording] = WeakSet()
        self._asked_ranks: set[str] = set()  # names of single ranks that a page shows
        self._folder: Recordings | None = None  # None if one trial is served, or if nothing is there yet
        self._waits = waits and places.is_to_come(self.path)
        self._looked = time.monotonic()
        if not self._waits:
            self._begin()

    def _begin(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            found = look(self.path)
        self._folder = found if isinstance(found, Recordings) else None
        if isinstance(found, Recording):
            self._open[found.path.resolve().name] = found

    @property
    def names(self) -> list[str]:
        with self._lock:
            return list(self._open if self._folder is None else self._folder)

    def paths(self) -> dict[str, Path]:
        """Name -> folder of each trial; none of them is opened."""
        with self._lock:
            if self._folder is None:
                return {name: recording.path for name, recording in self._open.items()}
            return {name: self._folder.path / name for name in self._folder}

    def opened(self) -> dict[str, Recording]:
        """Those that somebody looks at."""
        with self._lock:
            return dict(self._open)

    def get(self, name: str) -> Recording:
        """A trial by name, or one rank of it (`NAME:rank-1`); raises an error that says why it cannot be read."""
        with self._lock:
            trial, rank = self._split(name)
            if rank is not None:
                self._asked_ranks.add(name)
                return self.get(trial).rank(rank)
            if name not in self._open:
                self._open[name] = self._opened(name)
                while len(self._open) > _MOST_OPEN:
                    self._states.pop(self._open.popitem(last=False)[0], None)
            self._open.move_to_end(name)
            found = self._open[name]
            found.tables.silence()
            if _mapped_bytes() > _MOST_MAPPED:
                for recording in self._open.values():
                    recording.tables.release()
            return found

    def folder_of(self, name: str) -> Path:
        """Where a trial lies; of one rank, where that has written."""
        trial, rank = self._split(name)
        folder = self.paths().get(trial) or self.get(trial).path
        return folder if rank is None else places.of_rank(folder, rank)

    def _split(self, name: str) -> tuple[str, int | None]:
        found = _OF_RANK.fullmatch(name)
        names = self.names
        return (found[1], int(found[2])) if found and name not in names and found[1] in names else (name, None)

    def warm(self, recording: Recording) -> None:
        """Somebody looks at this trial: check its statistics beside, once, before they are asked for."""
        with self._lock:
            if recording in self._warmed:
                return
            self._warmed.add(recording)
        threading.Thread(target=_warm, args=(recording,), name="endoscope-warm", daemon=True).start()

    def prepare(self) -> None:
        """Open all trials beside, and read what the newest begins with: the page will ask for it in a moment."""
        threading.Thread(target=self._prepare, name="endoscope-prepare", daemon=True).start()

    def _prepare(self) -> None:
        with contextlib.suppress(EndoscopeError, OSError):  # whoever asks for it is told
            newest = self.newest()
            bulk.prepare(newest)
            self.warm(newest)

    def _opened(self, name: str) -> Recording:
        if self._folder is None or name not in self.names:  # `in self._folder` would open it, and check all of it
            near = ", ".join(difflib.get_close_matches(name, self.names, n=3, cutoff=0.0))
            raise LookupFailed(f"There is no trial {name[:200]!r} in {self.path}. Nearest: {near}.")
        # Opening is a moment at which a damaged file warns; nobody would see it. `problems` keeps it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            return of_folder(self._folder.path / name)

    def newest_first(self) -> list[str]:
        """Names of all trials, by when they began, without opening any."""
        created = {name: places.begun(path)[0] for name, path in self.paths().items()}
        return sorted(created, key=lambda name: (-created[name], name))

    def newest(self) -> Recording:
        """The trial that began last, of those that can be read."""
        for name in self.newest_first():
            with contextlib.suppress(EndoscopeError):
                return self.get(name)
        raise LookupFailed(f"None of the trials in {self.path} can be read.")

    def look_again(self) -> None:
        """For a page that begins: while no page listens, nobody looks at the files."""
        if time.monotonic() - self._looked > _STALE_SECS:
            with contextlib.suppress(EndoscopeError, OSError):  # the folder has gone: what is known is shown
                self.refresh()

    def refresh(self) -> list[str]:
        """Take up what is new in the trials that are open, and new trials; returns the names of those with news."""
        with self._lock:
            self._looked = time.monotonic()
            if self._waits and not places.is_to_come(self.path):
                with contextlib.suppress(NotARecording):  # something is there, but no trial yet
                    self._begin()
                    self._waits = False
            if self._folder is not None:
                self._folder.refresh()
                names = self.names
                self._open = OrderedDict((name, opened) for name, opened in self._open.items() if name in names)
            found = {}
            for name, recording in self._open.items():
                with contextlib.suppress(EndoscopeError):
                    recording.refresh()
                    found[name] = (*recording.tables.state, recording.closed)
            news = [name for name, state in found.items() if self._states.get(name) != state]
            self._states = found
            return news + [name for name in sorted(self._asked_ranks) if self._split(name)[0] in news]


def _warm(recording: Recording) -> None:
    time.sleep(_FIRST_LOOK_SECS)
    with contextlib.suppress(EndoscopeError, OSError):  # whoever asks for it is told
        bulk.warm(recording)


def _mapped_bytes() -> int:
    """How much of the mapped files is in memory; 0 where that cannot be asked cheaply."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * mmap.PAGESIZE
    except OSError:
        return 0
