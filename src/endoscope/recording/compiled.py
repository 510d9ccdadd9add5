"""Compiled models run eagerly in captured steps: hooks of modules are not called in compiled code."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from endoscope.capture.compiled_calls import put_back_compiled, take_off_compiled
from endoscope.recording.names import Names

_said: list[bool] = []


def keep_compiled_calls_out(names: Names) -> list[Any]:
    """Modules that were compiled in place keep the compiled call to themselves."""
    if "torch._dynamo" not in sys.modules:
        return []
    return take_off_compiled(names.all_modules())


def let_compiled_calls_in(taken: list[Any]) -> None:
    if taken:
        put_back_compiled(taken)
        taken.clear()


def silence_global_hooks() -> None:
    """`torch.compile(module)` warns about global hooks in each call; here they are meant, and run eagerly."""
    if "torch._dynamo" in sys.modules and not _said:
        _said.append(True)
        warnings.filterwarnings("ignore", message=r"Using `torch.compile\(module\)` when there are global hooks")
