"""A structure-only trace of a long chain of operations."""

from __future__ import annotations

import torch
from torch import Tensor

import endoscope


def test_the_device_of_the_last_of_many_operations() -> None:
    def chain(x: Tensor) -> Tensor:
        for _ in range(3000):
            x = x.relu()
        return x

    trace = endoscope.trace(chain, torch.rand(2), save="none")
    assert trace[-2].shape == (2,)
    assert trace[-2].device == torch.device("cpu")
    assert len(trace.ops.to_arrow()) == len(trace)
