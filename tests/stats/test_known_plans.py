"""Tensors of the shapes and types of earlier ones: less is asked about them, and the answers are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from endoscope.stats import Answers, Measured, Plan, Request, answers, joined, measure, measure_part
from endoscope.stats.measuring import _Measurement

Make = Callable[[], list[Request]]


def _requests() -> list[Request]:
    a, b = torch.randn(16, 300), torch.randn(16, 300)
    return [
        Request(a, 0),
        Request(torch.randn(40, 50), None),
        Request(torch.randn(5, 16, 3).transpose(0, 1), 0),
        Request(a, None, minus=b),
        Request(torch.randint(0, 9, (16, 7)), 0),
        Request(torch.randn(16, 10).to(torch.bfloat16), 0),
        Request(a, 0, same_as=0),
    ]


def _same(found: Measured, wanted: Measured) -> None:
    for kind in ("whole", "samples", "units"):
        columns, others = getattr(found, kind), getattr(wanted, kind)
        assert columns.keys() == others.keys()
        for name, column in columns.items():
            np.testing.assert_array_equal(column, others[name], err_msg=f"{kind} {name}")
    for name in ("hist_first", "hist_values", "hist_offsets", "sample_request", "sample_index", "unit_offsets"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    assert (found.gaps, found.notes, found.unit_shape) == (wanted.gaps, wanted.notes, wanted.unit_shape)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one whenever everything about a tensor had to be asked."""
    numbers: list[int] = []
    add = _Measurement._add

    def counted(self: Any, number: int, request: Request) -> Any:
        numbers.append(number)
        return add(self, number, request)

    monkeypatch.setattr(_Measurement, "_add", counted)
    return numbers


def _plan(requests: list[Request]) -> Plan:
    return measure_part(requests).plan


def test_nothing_is_asked_twice(asked: list[int]) -> None:
    plan = _plan(_requests())
    again = _requests()
    asked.clear()
    found = measure_part(again, like=plan)
    assert asked == []
    assert found.plan is plan
    _same(joined([found]), measure(again))


class Odd(Tensor):
    """A subclass may keep its numbers elsewhere."""


def _freed() -> Tensor:
    tensor = torch.randn(17, 300)[1:]
    tensor.untyped_storage().resize_(0)
    return tensor


@pytest.mark.parametrize(
    "other",
    [
        lambda: torch.randn(300, 16).t(),
        lambda: torch.randn(16, 600)[:, ::2],
        lambda: torch.randn(16, 300).as_subclass(Odd),
        lambda: torch._neg_view(torch.randn(16, 300)),
        lambda: torch.randn(16, 300).to_sparse(),
        lambda: torch.empty(16, 300, device="meta"),
        _freed,
    ],
    ids=["transposed", "strided", "subclass", "negated", "sparse", "meta", "freed"],
)
def test_a_tensor_that_lies_otherwise_is_measured_as_ever(other: Callable[[], Tensor], asked: list[int]) -> None:
    plan = _plan(_requests())
    again = _requests()
    again[0] = again[0]._replace(tensor=other())
    again[-1] = Request(again[1].tensor, None)
    asked.clear()
    found = measure_part(again, like=plan)
    assert asked
    _same(joined([found]), measure(again))


@pytest.mark.parametrize("minus", [torch.randn(300, 16).t(), torch.randn(16, 300).double(), torch.randn(300)])
def test_what_is_subtracted_must_lie_as_before(minus: Tensor, asked: list[int]) -> None:
    plan = _plan(_requests())
    again = _requests()
    again[3] = again[3]._replace(minus=minus)
    asked.clear()
    found = measure_part(again, like=plan)
    assert asked
    _same(joined([found]), measure(again))


def test_more_or_fewer_tensors_are_no_reason_to_fail() -> None:
    plan = _plan(_requests())
    for again in (_requests()[:4], [*_requests(), Request(torch.randn(3), None)]):
        _same(joined([measure_part(again, like=plan)]), measure(again))


def test_memory_that_is_not_cleared_is_written_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernels are trusted to write everything, nothing of what was there before is left."""

    def dirty(shape: Any, dtype: Any) -> Any:
        return np.full(shape, 0xAB, dtype)

    numbers = np.random.default_rng(5)
    for _ in range(40):
        shape = [int(n) for n in numbers.integers(1, 9, size=numbers.integers(1, 5))]
        tensor = torch.randn(shape) * 10.0 ** float(numbers.integers(-3, 3))
        if numbers.random() < 0.3:
            tensor[0] = torch.nan
        if numbers.random() < 0.3:
            tensor[-1] = 0
        requests = [Request(tensor, int(numbers.integers(0, len(shape)))), Request(tensor.double(), 0)]
        with monkeypatch.context() as patch:
            patch.setattr(answers.np, "empty", dirty)
            found = measure_part(requests)
        assert found.plan.is_full
        plan = Plan(list(found.plan.readings), (), found.plan.copied)
        plan.is_full = False
        clean = Answers(plan)
        assert np.isnan(clean.samples).all()
        for part in (found.numbers, found.counts, found.histogram_ends, found.histograms, found.samples, found.units):
            assert not (part.view(np.uint32) == 0xABABABAB).any()


def test_an_empty_tensor_has_nothing_to_say() -> None:
    requests = [Request(torch.empty(0, 5), 0), Request(torch.empty(4, 0), 0), Request(torch.randn(4, 3), 0)]
    plan = _plan(requests)
    assert not plan.is_full
    found = measure(requests)
    assert np.isnan(found.units["mean"][: found.unit_offsets[1]]).all()
    _same(joined([measure_part(requests, like=plan)]), found)
