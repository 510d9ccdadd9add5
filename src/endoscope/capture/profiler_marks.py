"""Marks that torch's optimizers make for a profiler, which are not made while nobody profiles.

    optimizer.step(), optimizer.zero_grad()   ─► record_function.__enter__ ─► a call into torch's dispatcher
                                                 record_function.__exit__  ─► another one

A mark tells whoever has asked torch to be called at marks. If nobody has, it tells nobody, and takes a hundredth of a
training step of a small network, for this code of torch has left the processor's cache since the last step. So while a
step is recorded, it is asked first. Torch itself knows who wants to be called, profilers or anybody else;
where it does not say so, the marks are made.

Only those of optimizers: they live for one `with` block. Somebody's own may be used again.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import profiler
from torch.autograd.profiler import record_function

if TYPE_CHECKING:
    from endoscope.capture.exchange import Exchanges, Modes

_LIBRARIES = {"darwin": "libtorch_cpu.dylib", "win32": "torch_cpu.dll"}
_dispatch_depth = torch._C._len_torch_dispatch_stack
_HAS_CALLBACKS = "_ZN2at12hasCallbacksEv"  # at::hasCallbacks(), as Linux and macOS name it
_MONITOR = "torch.profiler._cupti_monitor"  # an observer of CUDA, which is told by torch's Python code


def exchange_marks(exchanges: Exchanges, modes: Modes) -> None:
    """Nobody's mode but ours goes without hearing of them; who profiles is told of all."""
    asked = callbacks_are_asked_for()
    if asked is None or not all(map(_is_torchs, (record_function.__enter__, record_function.__exit__))):
        exchanges.add_unheard(record_function, "__enter__", modes)
        exchanges.add_unheard(record_function, "__exit__", modes)
    else:
        exchanges.add_unheard(
            record_function, "__enter__", modes, _enter, asked, _dispatch_depth, sys.modules, _MONITOR
        )
        exchanges.add_unheard(record_function, "__exit__", modes, _leave)


@functools.cache
def callbacks_are_asked_for() -> Callable[[], bool] | None:
    """What tells whether anybody is called at marks, in this thread or everywhere; None if torch does not say."""
    library = Path(torch.__file__).parent / "lib" / _LIBRARIES.get(sys.platform, "libtorch_cpu.so")
    try:
        found = ctypes.PyDLL(str(library))[_HAS_CALLBACKS]  # loaded long ago
    except (OSError, AttributeError):
        return None
    found.restype, found.argtypes = ctypes.c_bool, []
    return found


def _is_torchs(function: Any) -> bool:
    """Somebody who has put a function there wants it to be called."""
    return getattr(getattr(function, "__code__", None), "co_filename", None) == profiler.__file__


# Code that is put in the place of torch's: see `Exchanges.add_unheard`.


def _enter(self: Any, *args: Any, **kwargs: Any) -> Any:
    tools: Any = "stands for tools until they are put here"
    unheard, modes, depth, top, asked, dispatch_depth, loaded, monitor = tools
    others = depth() - (depth() > 0 and isinstance(top(0), modes.ours))  # modes that hear of marks
    if (
        not others
        and not dispatch_depth()
        and self.name.__class__ is str
        and self.name.startswith("Optimizer.")
        and not asked()
        and getattr(loaded.get(monitor), "_monitor_singleton", None) is None
    ):
        self.run_callbacks_on_exit = (
            False  # then the end does nothing, also torch's own, should it be back by that time
        )
        return self
    return unheard(self, *args, **kwargs)


def _leave(self: Any, *args: Any, **kwargs: Any) -> Any:
    tools: Any = "stands for tools until they are put here"
    unheard, _, _, _ = tools
    if self.record is None and not self.run_callbacks_on_exit:
        return None
    return unheard(self, *args, **kwargs)
