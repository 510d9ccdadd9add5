"""Operations that ran inside `vmap`: call them again inside as many `vmap`s."""

from __future__ import annotations

from typing import Any

import torch

from endoscope.capture.data.arguments import map_arguments
from endoscope.capture.data.nodes import Node
from endoscope.capture.patch.torch_private import get_unwrapped, hidden_dim_of, is_batched_tensor, level_of
from endoscope.capture.patch.torch_private import is_wrapped as _is_wrapped
from endoscope.capture.record.leaves import argument_tensors
from endoscope.capture.record.recorder import Recorder


def batch_levels(tensor: torch.Tensor) -> dict[int, int]:
    """Level of each `vmap` around a tensor -> the dimension it hides."""
    levels: dict[int, int] = {}
    while _is_wrapped(tensor):
        if is_batched_tensor(tensor):
            levels[level_of(tensor)] = hidden_dim_of(tensor)
        tensor = get_unwrapped(tensor)
    return levels


def _inside(function: Any, dims_in: tuple[Any, ...], dims_out: Any, randomness: str, size: int) -> Any:
    """`function` inside one `vmap`; where no argument has a batch, one that is not used says how large it is."""
    vmap: Any = torch.func.vmap
    if any(dim is not None for dim in dims_in):
        return vmap(function, in_dims=dims_in, out_dims=dims_out, randomness=randomness)
    inside = vmap(lambda _, *given: function(*given), in_dims=(0, *dims_in), out_dims=dims_out, randomness=randomness)
    return lambda *given: inside(torch.arange(size), *given)


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


def _batch_size(tensor: torch.Tensor, level: int) -> int:
    while not (is_batched_tensor(tensor) and level_of(tensor) == level):
        tensor = get_unwrapped(tensor)
    return int(get_unwrapped(tensor).shape[hidden_dim_of(tensor)])


def in_transforms(recorder: Recorder, node: int, raw: Node) -> Any:
    """The function of a node inside as many `vmap`s as were around the original call."""
    randomness = recorder.rng[node].vmaps if node in recorder.rng else {}
    sizes = {level: _batch_size(tensor, level) for tensor in _returned(recorder, raw) for level in batch_levels(tensor)}
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
            if all(d is None for d in dims_in) and level not in sizes:
                continue
            wrapped = _inside(wrapped, dims_in, dims_out, randomness.get(level, "different"), sizes.get(level, 0))
        return wrapped(*tensors)

    return call
