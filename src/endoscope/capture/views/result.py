"""A trace as the user holds it: everything that can be asked of it, and what can be done with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from endoscope.capture.data.record import Record, Values
from endoscope.capture.drawing.draw import draw
from endoscope.capture.file.archive import copied, place_for
from endoscope.capture.views.page import trace_block, trace_page
from endoscope.capture.views.printing import trace_text
from endoscope.capture.views.trace_views import TraceViews
from endoscope.capture.views.unheard import unheard
from endoscope.errors import BadArgument
from endoscope.markup.notebook import Shown
from endoscope.markup.tags import Markup


class Trace(TraceViews, Shown):
    """Everything that happened in one traced piece of code; see `docs/reference/trace.md`.

    Operations refer to their trace, never the other way round for long: a trace that is dropped is freed at once,
    with all the memory it holds, without waiting for the garbage collector.
    """

    def __init__(self, record: Record, values: Values, name: str) -> None:
        super().__init__(record, values, name)
        self.result_from(lambda: None)
        self.origin: Callable[[], Any] | None = None  # gives target, arguments and edits, to run it again

    @property
    def result(self) -> Any:
        """Whatever the target returned, untouched."""
        return self._result()

    @result.setter
    def result(self, value: Any) -> None:
        self.result_from(lambda: value)

    def result_from(self, read: Callable[[], Any]) -> None:
        """The result, made when it is asked for."""
        self._result = read

    def with_values_of(self, record: Record, values: Values) -> Trace:
        """A trace of the same structure, which is shared, with other values."""
        other = Trace(record, values, self.name)
        other.seed, other.finished, other.sealed, other.timing = self.seed, self.finished, self.sealed, self.timing
        other.random, other.stopped_after = self.random, self.stopped_after
        for name in ("graph_data", "labels", "keys", "children"):
            other.__dict__[name] = getattr(self, name)
        return other

    def __reduce__(self) -> Any:
        # An exception that carries a trace must still travel between processes; tensors and code do not.
        return str, (repr(self),)

    def __deepcopy__(self, memo: Any) -> Trace:
        return self

    def freeze(self) -> Trace:
        """Copy every kept value, so that later in-place changes (an optimizer step) cannot reach it."""
        self.values.freeze()
        return self

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Everything that this trace knows, values and all, in one file; `endoscope.load(path)` gives it back."""
        if self.record.file is not None:  # it is all there already
            return copied(self.record.file, path)
        from endoscope.capture.file.save import save

        return save(self, path, self._result, self.origin)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | Path:
        """All of it as one HTML page that needs nothing else: its text, or with a path the file that was written."""
        with unheard():
            text = trace_page(self)
        if path is None:
            return text
        place = place_for(path)
        place.write_text(text, encoding="utf-8", errors="replace")
        return place

    def live(self) -> Trace:
        """This trace with its functions and modules: itself, or for one from a file the same taken once more."""
        found: Trace = self.record.live(self)
        return found

    def draw(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        rolled: bool = False,
        depth: int | None = None,
        module: str | None = None,
        direction: str = "down",
        fold: bool = True,
    ) -> Any:
        """Draw the graph to an SVG, PNG, PDF or DOT file; without a path return the DOT source."""
        return draw(self, path, rolled=rolled, depth=depth, module=module, direction=direction, fold=fold)

    def show(
        self, *, port: int | None = None, host: str = "127.0.0.1", browser: bool = False, inline: bool = False
    ) -> Any:
        """Serve this trace as a page on this machine, and print its address; see `endoscope.show`."""
        import endoscope

        if not self.sealed:
            raise BadArgument(
                "The traced code still runs, so the trace is not complete. Call show() after the block of tracing()."
            )
        viewer = endoscope.show(self, port=port, host=host, browser=browser, inline=inline)
        sys.stdout.write(f"Endoscope shows the trace of {self.name} at  {viewer.address}\n")
        return viewer

    def rerun(self, edit: Mapping[Any, Any], *, seed: int | None = None) -> Trace:
        """The trace as it would be with an edit: only what lies downstream is computed; see `endoscope.rerun`."""
        import endoscope

        return endoscope.rerun(self, edit, seed=seed)

    def validate(self, *, seed: int | None = None) -> Any:
        """Prove this trace by replay; see `endoscope.validate`."""
        import endoscope

        return endoscope.validate(self, seed=seed)

    def __str__(self) -> str:
        with unheard():
            return trace_text(self)

    def _block(self) -> Markup:
        with unheard():
            return trace_block(self)
