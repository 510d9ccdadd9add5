"""Modules that were compiled in place keep the compiled call to themselves: taken off while something is traced."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder

_compiled_call = attrgetter("_compiled_call_impl")


def without_compiled_calls(recorder: Recorder) -> contextlib.AbstractContextManager[None]:
    return not_compiled([module for _, module in recorder.calls.addresses.values()])


@contextlib.contextmanager
def not_compiled(modules: Collection[torch.nn.Module]) -> Iterator[None]:
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
