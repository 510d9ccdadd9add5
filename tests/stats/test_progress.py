"""Requests that are measured a few at a time give the same answers as those that are measured together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from endoscope.stats import Measured, Progress, Request, begin, joined, measure, measure_part, place_again, together
from endoscope.stats.plan import Plan

WHOLE = ("whole", "samples", "units")
LISTS = ("hist_first", "hist_values", "hist_offsets", "sample_request", "sample_index", "unit_offsets")


def _requests() -> list[Request]:
    a, b = torch.randn(16, 300), torch.randn(16, 300)
    return [
        Request(a, 0),
        Request(torch.randn(5, 16, 3).transpose(0, 1), 0),
        Request(a, 0, same_as=0),
        Request(torch.randint(0, 9, (16, 7)), 0),
        Request(torch.randn(40, 50), None),
        Request(torch.randn(700_000), None),
        Request(a, None, minus=b),
    ]


def _same(found: Measured, wanted: Measured) -> None:
    for kind in WHOLE:
        columns, others = getattr(found, kind), getattr(wanted, kind)
        for name, column in columns.items():
            np.testing.assert_array_equal(column, others[name], err_msg=f"{kind} {name}")
    for name in LISTS:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    assert (found.gaps, found.notes, found.unit_shape) == (wanted.gaps, wanted.notes, wanted.unit_shape)


def _begun(plan: Plan, threads: int = 1) -> Progress:
    progress = begin(plan, threads)
    assert progress is not None
    return progress


def _place(progress: Progress, first: int, requests: Sequence[Request]) -> None:
    progress.place(first, [place_again(request.tensor, request.tensor.stride()) for request in requests])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cut", range(7))
def test_a_few_at_a_time(cut: int, threads: int) -> None:
    plan = measure_part(_requests()).plan
    again = _requests()
    progress = _begun(plan, threads)
    _place(progress, 0, again[:cut])
    progress.run(cut, again)
    assert progress.take(cut, again[cut:])
    progress.run(len(again), again)
    _same(joined([progress.finish()]), measure(again))


@pytest.mark.parametrize("cut", range(1, 7))
def test_what_was_measured_before_something_else_came(cut: int) -> None:
    plan = measure_part(_requests()).plan
    again = _requests()
    progress = _begun(plan)
    _place(progress, 0, again[:cut])
    progress.run(cut, again)
    other = Request(torch.randn(3, 4), 0)
    _same(joined([progress.first(), measure_part([other])]), measure([*again[:cut], other]))


@pytest.mark.parametrize("cut", range(1, 6))
def test_plans_of_parts_make_one_for_all(cut: int) -> None:
    first, last = _requests()[:cut], [request for request in _requests()[cut:] if request.same_as is None]
    plan = together([measure_part(first).plan, measure_part(last).plan])
    again = [*_requests()[:cut], *[request for request in _requests()[cut:] if request.same_as is None]]
    found = measure_part(again, like=plan)
    assert found.plan is plan
    _same(joined([found]), measure(again))


def test_what_the_kernels_cannot_read_is_not_begun() -> None:
    ordinary, odd = [Request(torch.randn(3, 4), 0)], [Request(torch.empty(3, 4, device="meta"), 0)]
    parts = [measure_part(ordinary), measure_part(odd)]
    assert begin(parts[0].plan) is not None
    assert begin(parts[1].plan) is None
    assert begin(together([part.plan for part in parts])) is None
    assert joined(parts).gaps == measure([*ordinary, *odd]).gaps


def test_each_has_memory_of_its_own() -> None:
    """Somebody may still read the answers of the step before."""
    plan = measure_part(_requests()).plan
    one, other = _begun(plan), _begun(plan)
    for progress in (one, other):
        assert progress.take(0, _requests())
        progress.run(len(plan.readings), None)
    assert not np.shares_memory(one.finish().numbers, other.finish().numbers)
