"""Programs whose size once made the tracer crawl; how long they take is shown by the benchmarks."""

from __future__ import annotations

import torch
from torch import Tensor

import endoscope
from endoscope.replay.validate import MOST_PARENTS

X = torch.ones(4)


def test_writing_to_many_living_views_of_one_tensor() -> None:
    def fill_by_rows(x: Tensor) -> Tensor:
        out = torch.empty(400, 4)
        for row in list(out):
            row.copy_(x)
        return out.sum()

    trace = endoscope.trace(fill_by_rows, X)
    assert len(trace["sum_1"].parents) == 400
    assert trace.complete


def test_proving_an_operation_with_many_parents() -> None:
    trace = endoscope.trace(lambda x: torch.cat([x * i for i in range(600)]).sum(), X)
    report = trace.validate()
    assert report.ok
    assert report.edges < 600 * 2 + MOST_PARENTS
    assert any("600 parents" in text for text in report.unchecked)
