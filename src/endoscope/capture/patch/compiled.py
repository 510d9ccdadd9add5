"""Compiled code runs eagerly while something is traced, and compiled again afterwards, without being compiled anew."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator
from operator import attrgetter
from typing import Any

import torch

from endoscope.capture.patch.torch_private import COMPILER

_compiled_call = attrgetter("_compiled_call_impl")
_eager: list[Any] = []  # torch's switch, while compiled code runs eagerly


def run_compiled_code_eagerly() -> None:
    """Torch has one such switch for all threads, so it is set by the first trace and put back by the last."""
    if not _eager and COMPILER in sys.modules:  # if nothing was ever compiled: importing the compiler takes a second
        switch = torch.compiler.set_stance("force_eager")
        switch.__enter__()
        _eager.append(switch)


def run_compiled_code_again() -> None:
    if _eager:
        _eager.pop().__exit__(None, None, None)


@contextlib.contextmanager
def without_compiled_calls(modules: Collection[torch.nn.Module]) -> Iterator[None]:
    """Modules that were compiled in place keep the compiled call to themselves: it is taken off meanwhile."""
    taken = take_off_compiled(modules)
    try:
        yield
    finally:
        put_back_compiled(taken)


def take_off_compiled(modules: Collection[torch.nn.Module]) -> list[tuple[torch.nn.Module, Any]]:
    """What was compiled in place, with its compiled call."""
    if not any(map(_compiled_call, modules)):  # without a turn in Python for each
        return []
    taken = [(module, module._compiled_call_impl) for module in modules if module._compiled_call_impl is not None]
    for module, _ in taken:
        module._compiled_call_impl = None
    return taken


def put_back_compiled(taken: list[tuple[torch.nn.Module, Any]]) -> None:
    for module, implementation in taken:
        module._compiled_call_impl = implementation
