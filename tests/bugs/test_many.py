"""Cost grows with the number of operations, not with its square."""

from __future__ import annotations

from time import process_time

import torch
from torch import Tensor

import endoscope

X = torch.ones(4)


def seconds(count: int) -> float:
    def fill_by_rows(x: Tensor) -> Tensor:
        out = torch.empty(count, 4)
        for row in list(out):
            row.copy_(x)
        return out.sum()

    start = process_time()
    trace = endoscope.trace(fill_by_rows, X)
    spent = process_time() - start
    assert len(trace["sum_1"].parents) == count
    return spent


def test_writing_to_many_living_views_of_one_tensor() -> None:
    seconds(20)
    assert seconds(800) < 4 * 2 * seconds(200) + 0.1  # four times the work, and room for a busy machine


def test_proving_an_operation_with_many_parents() -> None:
    trace = endoscope.trace(lambda x: torch.cat([x * i for i in range(600)]).sum(), X)
    start = process_time()
    assert trace.validate().ok
    assert process_time() - start < 2.0
