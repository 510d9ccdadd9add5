"""The trials that are served: opened when first asked for, kept up to date, looked up by name and never by path."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from endoscope.errors import DamageWarning, EndoscopeError, LookupFailed
from endoscope.query import bulk
from endoscope.query.catalog import Recordings
from endoscope.query.open import open as open_recordings
from endoscope.query.recording import Recording

_QUIET_SECS = 120  # a trial that was not closed and has been silent for so long was killed


class Library:
    """One trial, or a folder of trials. May be shared by threads.

    A name from an address is only ever a key of a mapping that was filled by looking into the folder, so no address
    can lead out of it.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path).expanduser()
        self._lock = threading.RLock()
        self._states: dict[str, tuple[int, int, int, bool]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            found = open_recordings(self.path)
        self._trials: Mapping[str, Recording] = found if isinstance(found, Recordings) else _only(found)

    @property
    def names(self) -> list[str]:
        with self._lock:
            return list(self._trials)

    def get(self, name: str) -> Recording:
        """A trial by name; raises an error that says why it cannot be read."""
        with self._lock:
            # Opening is the one moment at which a damaged file warns; nobody would see it. `problems` keeps it.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DamageWarning)
                found = self._trials[name]
            bulk.silence(found)
            return found

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

    def refresh(self) -> list[str]:
        """Take up what is new in the trials that were opened, and new trials; returns the names of those with news."""
        with self._lock:
            if isinstance(self._trials, Recordings):
                self._trials.refresh()
            else:
                for recording in self._trials.values():
                    recording.refresh()
            found = {}
            for name in self._trials:
                try:
                    recording = self.get(name)
                except EndoscopeError:
                    continue
                found[name] = (*bulk.state(recording), recording.closed)
            news = [name for name, state in found.items() if self._states.get(name) != state]
            self._states = found
            return news


def is_live(recording: Recording) -> bool:
    """Whether the training still runs, as far as one can tell from the files."""
    return not recording.closed and time.time() - recording.updated < _QUIET_SECS


def _only(recording: Recording) -> dict[str, Recording]:
    return {recording.path.resolve().name: recording}
