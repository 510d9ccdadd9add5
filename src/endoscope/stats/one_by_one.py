"""Statistics that are a function of the numbers of one tensor, as users may register them: each costs its own calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from endoscope.schema.stats import Statistic
from endoscope.stats.reductions import precision_of, real

Found = dict[str, NDArray[np.float64]]


def measure(
    statistics: Sequence[Statistic], tensors: Mapping[int, Tensor], not_finite: NDArray[np.int64]
) -> tuple[Found, list[tuple[int, str]]]:
    """(statistic -> one number for each request, what went wrong). `not_finite` says how many elements are to be left
    out; a request without a tensor has NaN, and one without finite elements, too."""
    found: Found = {one.name: np.full(len(not_finite), np.nan) for one in statistics}
    problems: list[tuple[int, str]] = []
    waiting: dict[torch.device, list[tuple[str, int, Tensor]]] = {}
    with torch.no_grad():
        for number, tensor in tensors.items():
            for one in statistics if tensor.numel() > not_finite[number] else ():
                try:
                    numbers = _numbers_of(tensor, all_finite=not not_finite[number])
                    answer = (one.name, number, _answer(one, numbers))
                except Exception as problem:  # it is the user's code, and must not stop a training run
                    problems.append((number, f"statistic {one.name}: {type(problem).__name__}: {problem}"))
                else:
                    waiting.setdefault(tensor.device, []).append(answer)
        for answers in waiting.values():
            values = torch.stack([value for _, _, value in answers]).cpu().tolist()  # one copy for each device
            for (name, number, _), value in zip(answers, values, strict=True):
                found[name][number] = value
    return found, problems


def _numbers_of(tensor: Tensor, *, all_finite: bool) -> Tensor:
    numbers = real(tensor.detach().reshape(-1), precision_of(tensor.device))
    return numbers if all_finite else numbers[numbers.isfinite()]


def _answer(statistic: Statistic, numbers: Tensor) -> Tensor:
    assert statistic.measure is not None
    value = torch.as_tensor(statistic.measure(numbers), dtype=precision_of(numbers.device), device=numbers.device)
    if value.numel() != 1:
        raise ValueError(f"it returned a tensor of shape {tuple(value.shape)}; return one number, as .mean() does")
    return value.reshape(())
