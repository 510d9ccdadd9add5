"""An edit of somebody's own: one function that returns an `Edit`. It works wherever those of Endoscope do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import endoscope
from endoscope import edits, errors


def clip(limit: float, **part: Any) -> edits.Edit:
    """Nothing is farther from zero than this."""

    def clipped(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clamp(-limit, limit)

    return edits.apply(clipped, **part)


@pytest.fixture
def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))


def test_in_a_trace_in_a_rerun_and_in_a_block(model: nn.Sequential) -> None:
    x = 10 * torch.randn(3, 4)
    hidden = model[0](x)
    assert hidden.abs().max() > 0.5
    expected = model[1](hidden.clamp(-0.5, 0.5))
    trace = endoscope.trace(model, x, edit={"0": clip(0.5)})
    assert torch.equal(trace[-1].value, expected)
    again = endoscope.trace(model, x).rerun(edit={"0": clip(0.5)})
    assert torch.equal(again[-1].value, expected)
    with endoscope.editing(model, {"0": clip(0.5)}):
        assert torch.equal(model(x), expected)
    assert torch.equal(model(x), model[1](hidden))


def test_of_a_part(model: nn.Sequential) -> None:
    x = 10 * torch.randn(3, 4)
    hidden = model[0](x)
    hidden[:, [1, 2]] = hidden[:, [1, 2]].clamp(-0.1, 0.1)
    found = endoscope.trace(model, x, edit={"0": clip(0.1, units=[1, 2])})
    assert torch.equal(found[-1].value, model[1](hidden))


def test_one_that_changes_the_shape_is_refused(model: nn.Sequential) -> None:
    with pytest.raises(errors.BadEdit):
        endoscope.trace(model, torch.randn(3, 4), edit={"0": edits.apply(lambda tensor: tensor[:1])})


def test_a_name_in_the_list_is_all_that_the_others_have() -> None:
    """`edits.zero` in place of `edits.zero()` is a mistake that is explained for every edit in the list."""
    makers = [getattr(edits, name) for name in edits.__all__ if name != "Edit"]
    for maker in makers:
        with pytest.raises(errors.BadEdit, match=r"makes an edit\. Call it"):
            endoscope.trace(nn.Linear(2, 2), torch.ones(1, 2), edit={"linear_1": maker})
