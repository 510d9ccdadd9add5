"""A folder of trials, as a mapping from name to recording."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from endoscope.analysis.selecting.patterns import nearest
from endoscope.errors import LookupFailed
from endoscope.markup.notebook import Shown
from endoscope.markup.tags import Markup
from endoscope.query import sql
from endoscope.query.recording import Recording
from endoscope.query.shown import recordings_block
from endoscope.query.trial import of_folder
from endoscope.store import paths


class Recordings(Mapping[str, Recording], Shown):
    """All trials directly below a folder. A trial is opened when it is first asked for."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(os.path.abspath(path))  # the process may change its folder
        self._folders: dict[str, Path] = {}
        self._open: dict[str, Recording] = {}
        self.refresh()

    def __getitem__(self, trial: str) -> Recording:
        if trial not in self._folders:
            near = ", ".join(repr(name) for name in nearest(str(trial), self._folders)) or "there is none"
            raise LookupFailed(f"There is no trial {trial!r} in {self.path}. Nearest: {near}.")
        if trial not in self._open:
            found = of_folder(self._folders[trial])
            found.preload()
            self._open[trial] = found
        return self._open[trial]

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)

    def __repr__(self) -> str:
        return f"<Recordings in {str(self.path)!r}: {', '.join(self._folders)}>"

    def _block(self) -> Markup:
        return recordings_block(self.path, self._folders)

    def refresh(self) -> bool:
        """Look for new trials, and for news in those that were opened; returns whether there is anything new."""
        before = list(self._folders)
        self._folders = {folder.name: folder for folder in paths.trials_in(self.path)}
        self._open = {name: found for name, found in self._open.items() if name in self._folders}
        news = [recording.refresh() for recording in self._open.values()]
        return any(news) or list(self._folders) != before

    def sql(self, query: str) -> sql.Answer:
        """Ask DuckDB over all trials; every table has a column `trial`."""
        return sql.ask(self, query)
