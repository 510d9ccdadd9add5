"""Answers lie in memory that is not cleared first, as a plan says that is made once for tensors of the same shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from endoscope.stats import Request, answers, measure, measure_part


def test_memory_that_is_not_cleared_is_written_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def dirty(shape: Any, dtype: Any) -> Any:
        return np.full(shape, 0xAB, dtype)

    numbers = np.random.default_rng(5)
    for _ in range(40):
        shape = [int(n) for n in numbers.integers(0 if numbers.random() < 0.1 else 1, 9, size=numbers.integers(1, 5))]
        tensor = torch.randn(shape) * 10.0 ** float(numbers.integers(-3, 3))
        if numbers.random() < 0.3:
            tensor[:1] = torch.nan
        if numbers.random() < 0.3:
            tensor[-1:] = 0
        requests = [
            Request(tensor, int(numbers.integers(0, len(shape)))), Request(tensor.double(), 0),
            Request(torch.empty(3, 2, device="meta"), 0), Request(torch.ones(4, 3).to_mkldnn(), 0),
        ]  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(answers.np, "empty", dirty)
            found = measure_part(requests)
        for part in (found.whole, found.histogram_ends, found.histograms, found.samples, found.units):
            assert not (part.view(np.uint32) == 0xABABABAB).any()


def test_an_empty_tensor_has_nothing_to_say() -> None:
    found = measure([Request(torch.empty(0, 5), 0), Request(torch.empty(4, 0), 0), Request(torch.randn(4, 3), 0)])
    assert found.whole["count"].tolist() == [0, 0, 12]
    assert np.isnan(found.whole["mean"][:2]).all() and found.whole["zeros"].tolist() == [0, 0, 0]
    assert found.sample_request.tolist() == [1] * 4 + [2] * 4
    assert np.isnan(found.samples["std"][:4]).all() and found.samples["zeros"].tolist() == [0.0] * 8
    assert found.unit_offsets.tolist() == [0, 0, 0, 3]
