"""Singular values and effective rank."""

import math

import numpy as np
import pytest
import torch

from endoscope.stats import spectrum


def slow_effective_rank(values: list[float]) -> float:
    shares = [value / sum(values) for value in values]
    return math.exp(-sum(share * math.log(share) for share in shares if share > 0))


@pytest.mark.parametrize("shape", [(5, 5), (30, 7), (7, 30), (16, 3, 3, 3), (12,), (), (1, 9)])
def test_values_and_rank(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    tensor = torch.randn(shape, dtype=torch.float64)
    matrix = tensor.reshape(shape[0] if len(shape) > 1 else 1, -1).numpy()
    expected = np.linalg.svd(matrix, compute_uv=False)
    found = spectrum(tensor, top=4)
    assert found.singular_values == pytest.approx(expected[:4], rel=1e-9)
    assert found.effective_rank == pytest.approx(slow_effective_rank(expected.tolist()), rel=1e-9)


def test_matrices_of_known_rank() -> None:
    assert spectrum(torch.eye(6)).effective_rank == pytest.approx(6)
    outer = torch.outer(torch.arange(1.0, 5), torch.ones(7))
    assert spectrum(outer).effective_rank == pytest.approx(1, abs=1e-4)
    assert spectrum(torch.zeros(3, 4)).effective_rank == 0


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_tiny_and_huge_numbers(scale: float) -> None:
    torch.manual_seed(0)
    tensor = torch.randn(8, 8)
    plain, scaled = spectrum(tensor), spectrum(tensor * scale)
    assert scaled.singular_values == pytest.approx(plain.singular_values * scale, rel=1e-5)
    assert scaled.effective_rank == pytest.approx(plain.effective_rank, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_other_types(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[1, 0], [1, 1]]).to(dtype)
    golden = (1 + math.sqrt(5)) / 2
    assert spectrum(tensor).singular_values == pytest.approx([golden, 1 / golden], rel=1e-5)


@pytest.mark.parametrize(
    ("tensor", "count"),
    [
        (torch.tensor([[1.0, math.nan], [0.0, 1.0]]), 2),
        (torch.zeros(0, 4), 0),
        (torch.zeros(3, 3, device="meta"), 0),
    ],
)
def test_no_answer_is_nan(tensor: torch.Tensor, count: int) -> None:
    found = spectrum(tensor)
    assert len(found.singular_values) == count and np.isnan(found.singular_values).all()
    assert math.isnan(found.effective_rank)


def test_of_large_matrices_only_the_largest_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("endoscope.stats.singular.ALL_UP_TO", 20)
    torch.manual_seed(0)
    tensor = torch.randn(60, 50) @ torch.diag(0.8 ** torch.arange(50.0))
    found = spectrum(tensor, top=5)
    assert found.singular_values == pytest.approx(torch.linalg.svdvals(tensor)[:5].numpy(), rel=1e-4)
    assert math.isnan(found.effective_rank)
    assert found.singular_values.tolist() == spectrum(tensor, top=5).singular_values.tolist()
