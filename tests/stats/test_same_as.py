"""A request that asks for the same as an earlier one gets its answer."""

from __future__ import annotations

import numpy as np
import torch

from endoscope.stats import Request, measure
from endoscope.stats.plan import Plan, plan_of


def test_the_answer_is_that_of_the_other() -> None:
    torch.manual_seed(0)
    first, other = torch.randn(6, 5), torch.randn(6, 4, 3).transpose(1, 2)
    asked = [Request(first, 0), Request(other, 0), Request(other, 0, same_as=1), Request(first, 0, same_as=0)]
    found = measure(asked)
    plainly = measure([request._replace(same_as=None) for request in asked])
    for name, column in plainly.whole.items():
        assert np.array_equal(found.whole[name], column), name
    for field in ("hist_first", "hist_values", "hist_offsets", "sample_request", "sample_index", "unit_offsets"):
        assert np.array_equal(getattr(found, field), getattr(plainly, field)), field
    for table in ("samples", "units"):
        for name, column in getattr(plainly, table).items():
            assert np.array_equal(getattr(found, table)[name], column), (table, name)
    assert found.unit_shape == plainly.unit_shape


def test_what_cannot_be_measured_cannot_be_measured_twice() -> None:
    odd = torch.empty(3, device="meta")
    found = measure([Request(torch.ones(2), None), Request(odd, None), Request(odd, None, same_as=1)])
    assert [number for number, _ in found.gaps] == [1, 2]
    assert found.gaps[0][1] == found.gaps[1][1]
    assert found.whole["count"].tolist() == [2, 3, 3]


def test_a_plan_is_kept_for_the_same_readings() -> None:
    def asked(rows: int) -> list[Request]:
        return [Request(torch.ones(rows, 5), 0), Request(torch.ones(3), None)]

    first, again, larger = (measure(asked(rows)) for rows in (4, 4, 9))
    assert first.unit_offsets is again.unit_offsets and first.sample_request is again.sample_request
    assert larger.unit_offsets is not first.unit_offsets
    assert len(larger.samples["mean"]) == 9 and not first.unit_offsets.flags.writeable
    assert isinstance(plan_of([None], (), ()), Plan)
