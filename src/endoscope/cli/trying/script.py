"""Runs a file in this process as `python file args…` would: as `__main__`, with its folder first on the path."""

from __future__ import annotations

import importlib.machinery
import io
import os
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

_PACKAGE = Path(__file__).parents[2]
_OURS = tuple(str(_PACKAGE / folder) for folder in ("cli", "recording", "capture"))


class Script:
    """One script with its arguments."""

    def __init__(self, path: str, arguments: Sequence[str]) -> None:
        self.path = path
        self.full_path = os.path.abspath(path)
        self.arguments = list(arguments)
        self.error: BaseException | None = None  # that ended it; an exit with the status 0 is none

    @property
    def name(self) -> str:
        """`train` of `code/train.py`."""
        return os.path.splitext(os.path.basename(self.path))[0]

    def run(self) -> int:
        """Returns the exit status. SystemExit and KeyboardInterrupt go on to whoever called; Python ends with them."""
        main = self._become_main()
        try:
            with io.open_code(self.full_path) as file:
                code = compile(file.read(), self.full_path, "exec")
            exec(code, main.__dict__)
        except SystemExit as end:
            self.error = end if end.code else None
            raise
        except Exception as error:  # printed here: between this place and the end of the process stands code of ours
            error.__traceback__ = without_our_frames(error.__traceback__)
            sys.excepthook(type(error), error, error.__traceback__)
            self.error = error
            return 1
        except BaseException as error:
            self.error = error
            sys.excepthook = _hide_our_frames(sys.excepthook)
            raise
        return 0

    def _become_main(self) -> types.ModuleType:
        """The module stays `__main__` when it has ended: threads, exit handlers and pickle look for names in it."""
        main = types.ModuleType("__main__")
        main.__dict__.update(
            __file__=self.full_path,
            __builtins__=__builtins__,
            __cached__=None,
            __loader__=importlib.machinery.SourceFileLoader("__main__", self.full_path),
        )
        sys.modules["__main__"] = main
        sys.argv[:] = [self.path, *self.arguments]
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = os.path.dirname(self.full_path)
        return main


def without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback of the plain script: without what runs it, and without what records it between torch's frames."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    ours = [number for number, one in enumerate(frames) if one.tb_frame.f_code.co_filename == __file__]
    left: TracebackType | None = None
    for one in reversed(frames[ours[-1] + 1 if ours else 0 :]):
        if not one.tb_frame.f_code.co_filename.startswith(_OURS):
            left = TracebackType(left, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return left


def _hide_our_frames(hook: Callable[..., object]) -> Callable[..., object]:
    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        error.__traceback__ = without_our_frames(traceback)
        hook(kind, error, error.__traceback__)

    return show
