"""Modules that were compiled in place keep the compiled call to themselves: taken off while something is traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder


def without_compiled_calls(recorder: Recorder) -> contextlib.AbstractContextManager[None]:
    return not_compiled([module for _, module in recorder.calls.addresses.values()])


@contextlib.contextmanager
def not_compiled(modules: Iterable[torch.nn.Module]) -> Iterator[None]:
    """Modules compiled in place (`module.compile()`) keep the compiled call to themselves: take it off meanwhile."""
    compiled = [module for module in modules if module._compiled_call_impl is not None]
    saved = [m._compiled_call_impl for m in compiled]
    for module in compiled:
        module._compiled_call_impl = None
    try:
        yield
    finally:
        for module, implementation in zip(compiled, saved, strict=True):
            module._compiled_call_impl = implementation
