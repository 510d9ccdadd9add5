"""The fifth check: an output that moves with an input must be reached by it in the graph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope

X = torch.arange(1.0, 13.0).reshape(3, 4)


def hidden_way(x: Tensor) -> Tensor:
    """What is written by address is seen by nobody."""
    y, z = torch.zeros(3, 4), x * 2
    ctypes.memmove(y.data_ptr(), z.data_ptr(), z.nbytes)
    return y + 1


@pytest.mark.parametrize("given", ["target", "trace"])
def test_a_way_that_the_graph_lacks_is_found(given: str) -> None:
    report = endoscope.validate(hidden_way, X) if given == "target" else endoscope.trace(hidden_way, X).validate()
    found = [failure for failure in report.failures if failure.check == "inputs"]
    assert [failure.reason for failure in found] == [
        "output (result) changes with input_1_0, and no path of the graph leads there"
    ]


def test_an_edge_that_is_taken_out_of_a_trace_is_missed() -> None:
    trace = endoscope.trace(lambda x, y: (x * 2 + y, y * 3), (X, X + 1))
    parents = trace.graph_data.parents
    parents[trace["mul_1"].node] = ()
    failures = [failure for failure in trace.validate().failures if failure.check == "inputs"]
    assert [failure.reason for failure in failures] == [
        "output [0] changes with input_1_0, and no path of the graph leads there"
    ]


def through_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy((x * 2).detach().numpy() * 3) + 1


def through_a_list(x: Tensor) -> Tensor:
    return torch.tensor(x.tolist()) * 2


def through_a_number(x: Tensor) -> Tensor:
    return torch.ones(3) * x.sum().item()


def through_a_branch(x: Tensor) -> Tensor:
    return torch.ones(3) if x.sum() > 80 else torch.zeros(3)


@pytest.mark.parametrize("target", [through_numpy, through_a_list, through_a_number, through_a_branch])
def test_what_may_have_gone_through_python_is_said_and_is_no_failure(target: Callable[[Tensor], Tensor]) -> None:
    report = endoscope.validate(target, X)
    assert report, str(report)
    assert any("values left torch through" in text for text in report.unchecked)


@pytest.mark.parametrize(
    ("target", "inputs"),
    [
        (lambda x, y: {"a": x * 2, "b": y * 3, "both": x + y, "none": torch.ones(2)}, (X, X + 1)),
        (lambda x, unused: x * 2, (X, X + 1)),
        (lambda ids: nn.functional.embedding(ids, torch.arange(20.0).view(10, 2)), torch.tensor([1, 2, 3])),
        (lambda mask: torch.where(mask, 1.0, 2.0), torch.tensor([True, False])),
        (lambda x: x + torch.randn(3, 4), X),
        (lambda x: x.zero_() + 1, X.clone()),
        (lambda x, row: row.zero_() + x, (X, X[0])),
        (lambda x: x[x > 3].zero_().sum(), X),
        (lambda x: x.half() * 2, X),
        (lambda x: x.abs(), X.to(torch.complex64)),
        (lambda x: x * 2, X[:1].expand(3, 4)),
        (lambda xs: sum(xs), [X + n for n in range(20)]),
    ],
)
def test_it_raises_no_false_alarm(target: Callable[..., Any], inputs: Any) -> None:
    inputs = inputs if isinstance(inputs, (tuple, Tensor)) else (inputs,)
    report = endoscope.validate(target, inputs)
    assert report, str(report)


def test_inputs_and_a_trace_of_them_are_what_they_were() -> None:
    x = X.clone()
    version = x._version
    trace = endoscope.trace(lambda x: x * 2, x)
    assert trace.validate() and trace.validate()
    assert torch.equal(x, X)
    assert x._version == version
    assert torch.equal(trace["input_1"].value, X)
