"""The trials that are served: opened when first asked for, kept up to date, looked up by name and never by path."""

from __future__ import annotations

import contextlib
import difflib
import mmap
import re
import threading
import time
import warnings
from os import PathLike
from pathlib import Path

from endoscope.errors import DamageWarning, EndoscopeError, LookupFailed
from endoscope.query import bulk, places
from endoscope.query.catalog import Recordings
from endoscope.query.open import look
from endoscope.query.recording import Recording
from endoscope.query.trial import of_folder

_OF_RANK = re.compile(r"(.+):rank-(\d{1,9})")
_MOST_MAPPED = 110 << 20  # bytes in memory, libraries included; above, mapped files are let go of
_STALE_SECS = 2.0  # longer than a page that listens lets pass, so that no news is taken away from it
_FIRST_LOOK_SECS = 1.5  # what a page begins with is read meanwhile; two who read would only wait for each other


class Library:
    """One trial, or a folder of trials. May be shared by threads.

    A name from an address is only ever a key of a mapping that was filled by looking into the folder, so no address
    can lead out of it.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path).expanduser()
        self._lock = threading.RLock()
        self._states: dict[str, tuple[int, int, int, bool]] = {}
        self._open: dict[str, Recording] = {}
        self._warmed: set[Recording] = set()
        self._asked_ranks: set[str] = set()  # names of single ranks that a page shows
        self._folder: Recordings | None = None  # None if one trial is served
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            found = look(self.path)
        self._looked = time.monotonic()
        if isinstance(found, Recordings):
            self._folder = found
        else:
            self._open[found.path.resolve().name] = found

    @property
    def names(self) -> list[str]:
        with self._lock:
            return list(self._open if self._folder is None else self._folder)

    def get(self, name: str) -> Recording:
        """A trial by name, or one rank of it (`NAME:rank-1`); raises an error that says why it cannot be read."""
        with self._lock:
            trial, rank = self._split(name)
            if rank is not None:
                self._asked_ranks.add(name)
                return self.get(trial).rank(rank)
            if name not in self._open:
                self._open[name] = self._opened(name)
            found = self._open[name]
            found.tables.silence()
            if _mapped_bytes() > _MOST_MAPPED:
                for recording in self._open.values():
                    recording.tables.release()
            return found

    def folder_of(self, name: str) -> Path:
        """Where a trial lies; of one rank, where that has written."""
        _, rank = self._split(name)
        folder = self.get(name).path
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

    def newest(self) -> Recording:
        """The trial that began last."""
        found: list[Recording] = []
        for name in self.names:
            try:
                found.append(self.get(name))
            except EndoscopeError:
                continue
        if not found:
            raise LookupFailed(f"None of the trials in {self.path} can be read.")
        return max(found, key=lambda recording: recording.created)

    def look_again(self) -> None:
        """For a page that begins: while no page listens, nobody looks at the files."""
        if time.monotonic() - self._looked > _STALE_SECS:
            with contextlib.suppress(EndoscopeError, OSError):  # the folder has gone: what is known is shown
                self.refresh()

    def refresh(self) -> list[str]:
        """Take up what is new in the trials that were opened, and new trials; returns the names of those with news."""
        with self._lock:
            self._looked = time.monotonic()
            if self._folder is not None:
                self._folder.refresh()
                names = self.names
                self._open = {name: opened for name, opened in self._open.items() if name in names}
                self._warmed &= set(self._open.values())
            found = {}
            for name in self.names:
                try:
                    recording = self.get(name)
                    recording.refresh()
                except EndoscopeError:
                    continue
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
