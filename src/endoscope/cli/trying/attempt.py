"""Records what the search has found in a running script, and says at the end what was recorded, or why nothing was."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from endoscope.cli.trying import words
from endoscope.cli.trying.arrival import when_imported
from endoscope.cli.trying.page import Page
from endoscope.cli.trying.words import Names

if TYPE_CHECKING:
    from endoscope.cli.trying.script import Script
    from endoscope.cli.trying.search import Found, Search
    from endoscope.recording.run import Run


class Attempt:
    """From before the script begins to after it has ended."""

    def __init__(self, root: str, script: Script, *, shows_page: bool) -> None:
        self.root = os.path.abspath(root)  # the script may change the folder
        self.shown_root = root
        self._script = script
        self._shows_page = shows_page
        self._search: Search | None = None
        self._run: Run | None = None
        self._names: Names | None = None
        self._page: Page | None = None
        self._problem = ""
        # torchrun starts as many of us as there are ranks: the first one records and serves.
        self._is_active = os.environ.get("RANK", "0") == "0"

    def begin(self) -> None:
        if self._is_active:
            when_imported("torch", self._torch_is_there)

    def _torch_is_there(self) -> None:
        from endoscope.cli.trying.search import Search

        self._search = Search(self._found)
        self._search.begin()

    def _found(self, found: list[Found]) -> None:
        """Inside of the script's own call: whatever goes wrong here must not reach it."""
        try:
            self._record(found)
        except Exception as error:
            self._problem = f"{type(error).__name__}: {error}"
            say(f"the model was found, but it cannot be recorded: {self._problem} The script goes on.")

    def _record(self, found: list[Found]) -> None:
        import endoscope

        if words.records_itself():
            self._problem = "the script makes an endoscope.Run of its own"
            return
        self._names = Names.of(found, sys._getframe())
        say(words.beginning(self._names))
        run = endoscope.Run(self.root, trial=self._script.name)
        self._run = run
        for model, optimizers in found:
            run.watch(model, optimizers)
        if self._shows_page:
            self._page = Page(self.root, run.trial)

    def end(self) -> None:
        """The script has ended, in whichever way."""
        if self._search is not None:
            self._search.end()
        if not self._is_active:
            return
        flush()
        if self._run is not None and self._names is not None:
            self._conclude(self._run, self._names)
        elif self._problem:
            say(words.not_recorded(self._problem))
        elif self._script.error is not None:
            say(words.failed_early(self._script.path, self._script.error))
        else:
            say(words.nothing_found(None if self._search is None else self._search.seen, self._script.path))

    def _conclude(self, run: Run, names: Names) -> None:
        run.__exit__(None, self._script.error, None)
        if not os.path.exists(run.path):  # the script failed before anything was recorded
            self._shows_page = False
            return
        say(words.lines_to_add(names, self.shown_root))

    def keep_serving(self) -> None:
        """Where somebody sits at a terminal the page stays until Ctrl+C; else it ends with the script."""
        if self._page is None:
            return
        if self._shows_page and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
            self._page.wait()
        self._page.close()


def say(text: str) -> None:
    """To stderr: stdout belongs to the script."""
    sys.stderr.write(f"Endoscope: {text}\n")
    sys.stderr.flush()


def flush() -> None:
    """What the script has printed comes before what is said about it."""
    stream: Any = sys.stdout
    try:
        stream.flush()
    except (AttributeError, ValueError, OSError):  # it was closed or exchanged by the script
        return
