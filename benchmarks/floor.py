"""The least a tracer of this kind can cost: watch every torch call, append a tuple, keep the output.

No names, no parents, no copies before an in-place write: not a tracer, only the level below which none that
watches in Python can get. It also shows what keeping every activation costs by itself: without gradients the
plain pass re-uses the same few buffers, and whoever keeps them all makes torch write to fresh memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any] | None, Any]


class _Floor(TorchFunctionMode):
    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        output = func(*args, **kwargs) if kwargs else func(*args)
        self.calls.append((func, args, kwargs, output))
        return output


def watch(model: nn.Module, x: Tensor) -> list[Call]:
    """Every torch call of one forward pass with its arguments and output, property reads included."""
    floor = _Floor()
    with floor:
        model(x)
    return floor.calls


def count_ops(model: nn.Module, x: Tensor) -> int:
    """How many torch calls of one forward pass return a tensor, or several."""
    return sum(1 for call in watch(model, x) if holds_tensor(call[3]))


def holds_tensor(output: Any) -> bool:
    """Whether a call returned a tensor, alone or in a tuple or list."""
    if isinstance(output, (tuple, list)):
        return any(isinstance(item, Tensor) for item in output)
    return isinstance(output, torch.Tensor)
