"""Custom views: a file of the user's with functions `def name(selection, recording)`, run when the page asks.

    file ─► read again if it has changed ─► functions ─► one is called ─► figures.convert ─► what the page shows

Only the file that the user named on the command line is ever executed; nothing in a recording is.
"""

from __future__ import annotations

import inspect
import linecache
import os
import secrets
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from endoscope.errors import BadArgument, LookupFailed
from endoscope.query.recording import Recording
from endoscope.server import wire
from endoscope.server.custom_views import figures
from endoscope.server.custom_views.selection import Selection

View = Callable[[Selection, Recording], Any]

_MODULE = "endoscope_views"
_PARAMETERS = ["selection", "recording"]
_FRAMES_KEPT = 12


class Views:
    """The functions of one file. One runs at a time: drawing libraries are seldom made for threads."""

    def __init__(self, file: str | os.PathLike[str] | None = None) -> None:
        self.file = Path(file).expanduser().resolve() if file is not None else None
        if self.file is not None and not self.file.is_file():
            raise BadArgument(f"There is no file {self.file} with views. Type the path of a Python file after --views.")
        self._lock = threading.RLock()
        self._stamp: tuple[int, int] | None = None
        self._views: dict[str, View] = {}
        self._problem: str | None = None
        self._frames: OrderedDict[str, str] = OrderedDict()

    def stamp(self) -> tuple[int, int] | None:
        """Changes when the file does."""
        try:
            found = self.file.stat() if self.file is not None else None
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size) if found is not None else None

    def describe(self) -> wire.Views:
        with self._lock:
            self._reload()
            entries = [wire.ViewEntry(name=name, title=_title(name, view)) for name, view in self._views.items()]
            return wire.Views(file=str(self.file) if self.file else None, views=entries, problem=self._problem)

    def run(self, name: str, selection: Selection, recording: Recording) -> wire.ViewResult:
        """Call a view; whatever goes wrong in it is a result, too."""
        with self._lock:
            self._reload()
            if self._problem is not None and name not in self._views:
                return _result("error", text=self._problem)
            view = self._views.get(name)
            if view is None:
                known = ", ".join(self._views) or "none"
                raise LookupFailed(f"There is no view {name!r}. There are: {known}.")
            started = time.perf_counter()
            try:
                shown = figures.convert(view(selection, recording))
            except (Exception, SystemExit) as error:
                return _result("error", text=_explain(error, self.file), seconds=time.perf_counter() - started)
            finally:
                _close_figures()
            return self._answer(shown, time.perf_counter() - started)

    def frame(self, number: str) -> str:
        """The HTML that a view made a moment ago."""
        with self._lock:
            if number not in self._frames:
                raise LookupFailed("This figure is no longer kept. Open the view again.")
            return self._frames[number]

    def _answer(self, shown: figures.Shown, seconds: float) -> wire.ViewResult:
        if shown.html:
            number = secrets.token_urlsafe(12)
            self._frames[number] = shown.html
            while len(self._frames) > _FRAMES_KEPT:
                self._frames.popitem(last=False)
            return _result("frame", url=f"/frames/{number}", seconds=seconds)
        if shown.image:
            return _result("image", url=shown.image, seconds=seconds)
        return _result("text", text=shown.text, seconds=seconds)

    def _reload(self) -> None:
        stamp = self.stamp()
        if self.file is None or (stamp is not None and stamp == self._stamp):
            return
        self._stamp, self._views, self._problem = stamp, {}, None
        try:
            self._views = _views_in(_execute(self.file))
        except (Exception, SystemExit) as error:
            self._problem = _explain(error, self.file)
            return
        if not self._views:
            self._problem = f"{self.file} has no views. A view is a function:  def name(selection, recording): …"


def _result(kind: Any, *, text: str = "", url: str = "", seconds: float = 0.0) -> wire.ViewResult:
    return wire.ViewResult(kind=kind, text=text, url=url, seconds=seconds)


def _execute(file: Path) -> ModuleType:
    """Run the file as a module of its own; what lies beside it can be imported."""
    os.environ.setdefault("MPLBACKEND", "agg")  # the server has no window to draw into
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    linecache.checkcache(str(file))  # tracebacks show the lines that ran
    module = ModuleType(_MODULE)
    module.__file__ = str(file)
    sys.modules[_MODULE] = module
    exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    return module


def _views_in(module: ModuleType) -> dict[str, View]:
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and not name.startswith("_") and _takes_a_selection(value)
    }


def _takes_a_selection(function: Callable[..., Any]) -> bool:
    return list(inspect.signature(function).parameters)[:2] == _PARAMETERS


def _title(name: str, view: View) -> str:
    told = (inspect.getdoc(view) or "").partition("\n")[0].strip().rstrip(".")
    return told or name.replace("_", " ")


def _explain(error: BaseException, file: Path | None) -> str:
    """A traceback that begins in the user's file; a sentence where the mistake is not in it."""
    if isinstance(error, FileNotFoundError) and str(error.filename) == str(file):
        return f"{file} is no longer there."
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != str(file):
        trace = trace.tb_next
    if trace is None and not isinstance(error, SyntaxError):
        return str(error) if isinstance(error, BadArgument | ImportError) else f"{type(error).__name__}: {error}"
    return "".join(traceback.format_exception(type(error), error, trace))


def _close_figures() -> None:
    """pyplot keeps every figure until somebody closes it."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
