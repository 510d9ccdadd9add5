"""Torch has one switch for compiled code in the whole process; traces of several threads share it."""

from __future__ import annotations

import threading

import torch
from torch import nn

import endoscope


def test_overlapping_traces_leave_compiled_code_compiled() -> None:
    built: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        built.append(1)
        return graph.forward

    torch._dynamo.reset()
    compiled, x = torch.compile(nn.Linear(2, 2), backend=backend), torch.ones(1, 2)
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()

    def second() -> None:
        first_is_in.wait()
        with endoscope.tracing():
            second_is_in.set()
            first_is_out.wait()

    thread = threading.Thread(target=second)
    thread.start()
    with endoscope.tracing():
        first_is_in.set()
        second_is_in.wait()
    first_is_out.set()
    thread.join()
    compiled(x)
    assert built == [1]
