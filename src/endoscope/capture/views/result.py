"""A trace as the user holds it: everything that can be asked of it, and what can be done with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from endoscope.capture.drawing.draw import draw
from endoscope.capture.patch.torch_private import DisableTorchFunction
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.views.printing import trace_html, trace_text
from endoscope.capture.views.trace_views import TraceViews
from endoscope.errors import BadArgument


class Trace(TraceViews):
    """Everything that happened in one traced piece of code; see `docs/reference/trace.md`.

    Operations refer to their trace, never the other way round for long: a trace that is dropped is freed at once,
    with all the memory it holds, without waiting for the garbage collector.
    """

    def __init__(self, recorder: Recorder, name: str) -> None:
        super().__init__(recorder, name)
        self.result: Any = None  # whatever the target returned, untouched
        self.origin: Callable[[], Any] | None = None  # gives target, arguments and edits, to run it again

    def with_values_of(self, recorder: Recorder) -> Trace:
        """A trace of the same structure, which is shared, with other values."""
        other = Trace(recorder, self.name)
        other.seed, other.finished, other.sealed, other.timing = self.seed, self.finished, self.sealed, self.timing
        other.random = self.random
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

    def show(self, *, port: int | None = None, host: str = "127.0.0.1", browser: bool = False) -> Any:
        """Serve this trace as a page on this machine, and print its address; see `endoscope.show`."""
        import endoscope

        if not self.sealed:
            raise BadArgument(
                "The traced code still runs, so the trace is not complete. Call show() after the block of tracing()."
            )
        viewer = endoscope.show(self, port=port, host=host, browser=browser)
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
        with DisableTorchFunction():
            return trace_text(self)

    def _repr_html_(self) -> str:
        with DisableTorchFunction():
            return trace_html(self)
