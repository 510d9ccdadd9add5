"""Does a parent matter? Other values show it, or there is a reason why they do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import endoscope
from endoscope.capture.data.nodes import slots_of
from endoscope.replay.operands import call_again
from endoscope.replay.perturb import excuse, variants

X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int8,
    torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip


def values(dtype: torch.dtype) -> list[Tensor]:
    numbers = [
        torch.zeros(3),
        torch.ones(2, 2),
        torch.tensor(1.0),
        torch.tensor([1.0, 0.0, 1.0]),
        torch.full((4,), 3.0),
    ]
    return [number.to(dtype) for number in numbers]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_variants_keep_shape_and_dtype_and_some_differ(dtype: torch.dtype) -> None:
    for value in values(dtype):
        before = value.clone()
        changed = [change(value) for change in variants(value)]
        assert all(c.shape == value.shape and c.dtype == dtype for c in changed)
        assert any(not torch.equal(_plain(c), _plain(value)) for c in changed)
        assert torch.equal(_plain(value), _plain(before)), "the kept value itself must stay"


def _plain(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype.itemsize == 1 and tensor.is_floating_point() else tensor


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_both_halves_of_a_complex_number_are_changed(dtype: torch.dtype) -> None:
    value = torch.ones(3, dtype=dtype)
    changed = [change(value) for change in variants(value)]
    assert any(not torch.equal(c.real, value.real) for c in changed)
    assert any(not torch.equal(c.imag, value.imag) for c in changed)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 0.0, 1e38])
def test_unusual_numbers_have_variants_too(number: float) -> None:
    value = torch.full((3,), number)
    assert any(not torch.equal(change(value).nan_to_num(7), value.nan_to_num(7)) for change in variants(value))


def test_variants_draw_no_random_numbers_of_the_user() -> None:
    state = torch.get_rng_state()
    for dtype in DTYPES:
        for value in values(dtype):
            for change in variants(value):
                change(value)
    assert torch.equal(torch.get_rng_state(), state)


def test_variants_are_the_same_each_time() -> None:
    for one, two in zip(variants(X), variants(X), strict=True):
        torch.testing.assert_close(one(X), two(X), rtol=0, atol=0, equal_nan=True)


def last(target: Callable[..., Any], x: Tensor = X) -> tuple[Any, dict[str, Any]]:
    """The last operation of a traced function, and what is said about each of its parents."""
    trace = endoscope.trace(target, x)
    op = [op for op in (*trace.ops, *trace.orphans) if op.kind == "computed"][-1]
    baseline = call_again(op)
    slots = [s for read in op._raw.reads for s in slots_of(read)]
    return op, {trace.op_at(trace.recorder.slot_node[s]).type: excuse(op, s, baseline) for s in slots}


@pytest.mark.parametrize(
    "target",
    [
        lambda x: x * 2,
        lambda x: x.relu(),
        lambda x: x > 2,
        lambda x: x.argmax(),
        lambda x: x.sign(),
        lambda x: x == 3,
        lambda x: x.clamp(0, 1e-3),
        lambda x: x.sum(),
        lambda x: x.softmax(-1).sum(-1),
        lambda x: x.isnan(),
        lambda x: x.long(),
        lambda x: x.round(decimals=-2),
        lambda x: x.any(),
        lambda x: x.all(),
        lambda x: (x > 100).any(),
    ],
)
def test_a_parent_that_matters(target: Callable[..., Any]) -> None:
    _, said = last(target)
    assert set(said.values()) == {None}


def overwrite_all(x: Tensor) -> None:
    x.exp()[:] = x


@pytest.mark.parametrize(
    ("target", "parent", "reason"),
    [
        (lambda x: torch.where(x > -100, x, x.exp()), "exp", "the other operands hide it"),
        (lambda x: x.exp().masked_fill(x > -100, 3.0), "exp", "the other operands hide it"),
        (lambda x: torch.zeros_like(x.exp()), "exp", "only its shape"),
        (lambda x: x.view_as(x.exp()), "exp", "only its shape"),
        (lambda x: x.exp()[:0].sum(), "getitem", "no elements"),
        (lambda x: x.exp()[:, :0], "exp", "the result has no elements"),
        (overwrite_all, "exp", "overwritten entirely"),
        (lambda x: x.exp().sub(float("nan")), "exp", "NaN whatever"),
    ],
)
def test_a_parent_that_need_not_matter(target: Callable[..., Any], parent: str, reason: str) -> None:
    _, said = last(target)
    assert reason in said[parent]


def test_a_parent_that_is_claimed_falsely_has_no_excuse() -> None:
    trace = endoscope.trace(lambda x: x.exp() + x.sin(), X)
    add, exp, sin = trace["add_1"], trace["exp_1"], trace["sin_1"]
    # `add` is said to have read, where it read sin, sin laid over exp: exp cannot be seen there.
    trace.recorder.nodes[add.node] = add._raw._replace(reads=[sin.slots[0], (exp.slots[0], sin.slots[0])])
    assert excuse(add, exp.slots[0], call_again(add)) == ""
    assert excuse(add, sin.slots[0], call_again(add)) is None


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.int8, torch.bool])
def test_a_false_parent_of_any_dtype_has_no_excuse(dtype: torch.dtype) -> None:
    """A value that cannot be made in this dtype (infinity in some) says nothing about the parent."""
    trace = endoscope.trace(lambda x: (x.to(dtype), x.sin()), X)
    narrow, sin = trace["to_1"], trace["sin_1"]
    claimed = (narrow.slots[0], sin._raw.reads[0])
    trace.recorder.nodes[sin.node] = sin._raw._replace(reads=[claimed])
    assert excuse(sin, narrow.slots[0], call_again(sin)) == ""


def test_one_of_two_writes_in_one_memory() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y[0].add_(1)
        return y.sum()

    _, said = last(target)
    assert said == {"mul": None, "add": None}
