"""Operations that ran inside `vmap`: call them again inside as many `vmap`s."""

from __future__ import annotations

from typing import Any

import torch

from endoscope.capture.patch.torch_private import get_unwrapped, hidden_dim_of, is_batched_tensor, level_of
from endoscope.capture.patch.torch_private import is_wrapped as _is_wrapped
from endoscope.capture.record.leaves import argument_tensors, map_arguments
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.records import Node


def batch_levels(tensor: torch.Tensor) -> dict[int, int]:
    """Level of each `vmap` around a tensor -> the dimension it hides."""
    levels: dict[int, int] = {}
    while _is_wrapped(tensor):
        if is_batched_tensor(tensor):
            levels[level_of(tensor)] = hidden_dim_of(tensor)
        tensor = get_unwrapped(tensor)
    return levels


def is_batched(recorder: Recorder, raw: Node) -> bool:
    if not recorder.full:  # its tensors are not there to tell
        return False
    return any(_is_wrapped(tensor) and batch_levels(tensor) for tensor in [*_given(raw), *_returned(recorder, raw)])


def _given(raw: Node) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    argument_tensors(raw.args, found)
    if raw.kwargs:
        argument_tensors(raw.kwargs, found)
    return found


def _returned(recorder: Recorder, raw: Node) -> list[torch.Tensor]:
    return recorder.objects[raw.slot : raw.returned.stop]


def in_transforms(recorder: Recorder, raw: Node) -> Any:
    """The function of a node inside as many `vmap`s as were around the original call."""
    inputs = [batch_levels(tensor) for tensor in _given(raw)]
    outputs = [batch_levels(tensor) for tensor in _returned(recorder, raw)]
    levels = sorted({level for found in inputs + outputs for level in found})

    def call(*args: Any, **kwargs: Any) -> Any:
        tensors: list[torch.Tensor] = []
        argument_tensors(args, tensors)
        argument_tensors(kwargs, tensors)

        def inner(*given: torch.Tensor) -> Any:
            queue = list(given)
            new_args = map_arguments(args, lambda _: queue.pop(0))
            new_kwargs = map_arguments(kwargs, lambda _: queue.pop(0))
            out = raw.func(*new_args, **new_kwargs)
            found: list[torch.Tensor] = []
            argument_tensors(out, found)
            written = raw.facts.written
            return tuple(found or (written(new_args, new_kwargs) if written else ()))

        wrapped: Any = inner
        for level in reversed(levels):
            dims_in = tuple(found.get(level) for found in inputs)
            dims_out = tuple(found.get(level) for found in outputs)
            if all(d is None for d in dims_in):
                continue
            vmap: Any = torch.func.vmap
            wrapped = vmap(wrapped, in_dims=dims_in, out_dims=dims_out, randomness="different")
        return wrapped(*tensors)

    return call
