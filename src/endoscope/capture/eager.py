"""The switch by which compiled code runs eagerly while something is traced."""

from __future__ import annotations

import sys
from typing import Any

import torch

from endoscope.capture.torch_private import COMPILER, STANCE
from endoscope.capture.torch_private import compiler_here as _compiler_here

_eager: list[tuple[Any, Any]] = []  # the switch, while compiled code runs eagerly, and the names among which it works
_switch: Any = None  # of the last time: a recording needs it in every step, and making one takes longer than using it


def run_compiled_code_eagerly() -> None:
    """Compiled code is traced eagerly, and runs compiled again afterwards without being compiled anew.

    Torch has one such switch for all threads, so it is set by the first trace and put back by the last.
    """
    global _switch
    compiler = sys.modules.get(COMPILER)
    if _eager or compiler is None:  # nothing was ever compiled: importing the compiler takes a second
        return
    names = vars(compiler.eval_frame)
    if _switch is None or getattr(_switch, "prev", None) is not names.get(STANCE, _switch):
        _switch = torch.compiler.set_stance("force_eager")
    if _compiler_here is not None and not _compiler_here() and STANCE in names:  # what the switch does, if nothing is
        names[STANCE] = _switch.stance  # being compiled; otherwise it says so itself
    else:
        _switch.__enter__()
    _eager.append((_switch, names))


def run_compiled_code_again() -> None:
    """Nothing happens if it does."""
    if not _eager:
        return
    switch, names = _eager.pop()
    if _compiler_here is not None and not _compiler_here() and STANCE in names:
        names[STANCE] = switch.prev
    else:
        switch.__exit__(None, None, None)
