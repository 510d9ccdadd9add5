"""Compiled models run eagerly in captured steps: hooks of modules are not called in compiled code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from endoscope.capture.patch.compiled import put_back_compiled, take_off_compiled
from endoscope.capture.patch.torch_private import ANY_GLOBAL_HOOK, COMPILER
from endoscope.recording.steps.names import Names

_asked: Callable[[], bool] | None = None  # what torch asks whether there are global hooks, while it is patched
_hidden = 0  # so many sets of hooks are on


def keep_compiled_calls_out(names: Names) -> list[Any]:
    """Modules that were compiled in place keep the compiled call to themselves."""
    if COMPILER not in sys.modules:
        return []
    return take_off_compiled(names.all_modules())


def let_compiled_calls_in(taken: list[Any]) -> None:
    if taken:
        put_back_compiled(taken)
        taken.clear()


def hide_global_hooks() -> None:
    """`torch.compile(module)` warns about global hooks in each call; ours are meant, and run eagerly.

    The compiler asks `_has_any_global_hook` only for that warning. Called before a hook of ours is put on.
    """
    global _asked, _hidden
    _hidden += 1
    if _asked is None and COMPILER in sys.modules:
        asked: Any = getattr(*ANY_GLOBAL_HOOK)
        answer = bool(asked()) and _hidden == 1  # of the user, unless ours are on already
        _asked = asked
        setattr(*ANY_GLOBAL_HOOK, lambda: answer)


def show_global_hooks() -> None:
    """A hook of ours is off."""
    global _asked, _hidden
    _hidden -= 1
    if _hidden == 0 and _asked is not None:
        setattr(*ANY_GLOBAL_HOOK, _asked)
        _asked = None
