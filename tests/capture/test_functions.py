"""What is known about torch's functions: plain names, and what each does to its arguments."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from endoscope.capture.data.functions import Role, plain_name
from endoscope.capture.record.functions import CONTROL, LEAVING, NOT_OPERATIONS, OVERWRITERS, describe

T = torch.Tensor


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("add", "add"),
        ("add_", "add"),
        ("__add__", "add"),
        ("__iadd__", "add"),
        ("__radd__", "add"),
        ("__rmul__", "mul"),
        ("__rsub__", "rsub"),
        ("__truediv__", "div"),
        ("__itruediv__", "div"),
        ("__floordiv__", "floor_divide"),
        ("__mod__", "remainder"),
        ("__and__", "bitwise_and"),
        ("__ior__", "bitwise_or"),
        ("__invert__", "bitwise_not"),
        ("__getitem__", "getitem"),
        ("__setitem__", "setitem"),
        ("__matmul__", "matmul"),
        ("relu_", "relu"),
        ("true_divide", "div"),
        ("subtract", "sub"),
        ("split_with_sizes", "split"),
        ("_", "_"),
        ("__", "__"),
        ("isnan", "isnan"),
        ("index_add_", "index_add"),
    ],
)
def test_plain_names(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_an_operator_and_its_function_have_one_name() -> None:
    """What Python calls `a + b` is what torch calls add: asked of torch's own dispatcher for each operator."""
    for symbol in "add sub mul truediv floordiv mod and or xor lshift rshift matmul".split():
        in_place = plain_name(f"__i{symbol}__")
        assert plain_name(f"__{symbol}__") == in_place
        assert hasattr(torch, in_place)


@pytest.mark.parametrize(
    ("func", "role"),
    [
        (torch.add, Role.RECORD),
        (F.relu, Role.RECORD),
        (T.add_, Role.WRITE),
        (T.__setitem__, Role.WRITE),
        (T.__iadd__, Role.WRITE),
        (T.zero_, Role.WRITE),
        (torch.batch_norm, Role.WRITE),
        (T.item, Role.LEAVE),
        (T.tolist, Role.LEAVE),
        (T.__bool__, Role.LEAVE),
        (T.size, Role.PASS),
        (T.requires_grad_, Role.PASS),
        (T.__len__, Role.PASS),
        (T.shape.__get__, Role.PASS),
        (T.grad_fn.__get__, Role.PASS),
        (T.T.__get__, Role.RECORD),
        (T.data.__get__, Role.RECORD),
        (T.data.__set__, Role.WRITE),
        (T.requires_grad.__set__, Role.PASS),
        (torch.ops.aten.add.Tensor, Role.RECORD),
        (torch.ops.aten.add_.Tensor, Role.WRITE),
        (torch.ops.aten.item.default, Role.LEAVE),
    ],
    ids=lambda value: getattr(value, "__qualname__", str(value)),
)
def test_roles(func: Any, role: Role) -> None:
    assert describe(func).role == role


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "positions"),
    [
        (T.add_, ("x", 1), {}, ["x"]),
        (T.__setitem__, ("x", 0, "v"), {}, ["x"]),
        (T.copy_, ("x", "y"), {}, ["x"]),
        (torch.relu_, (), {"input": "x"}, ["x"]),
        (torch._foreach_add_, (["x", "y"], 1), {}, ["x", "y"]),
        (torch.batch_norm, ("x", "w", "b", "mean", "var", True, 0.1, 1e-5, False), {}, ["mean", "var"]),
        (torch.batch_norm, ("x", "w", "b", "mean", "var", False, 0.1, 1e-5, False), {}, []),
        (torch.ops.aten.add_.Tensor, ("x", "y"), {}, ["x"]),
        (torch.ops.aten.add.out, ("x", "y"), {"out": "z"}, ["z"]),
    ],
)
def test_what_a_call_overwrites(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], positions: list[str]) -> None:
    written = describe(func).written
    assert written is not None
    assert written(args, kwargs) == positions


def really_reads(name: str) -> bool:
    """Does the result of an in-place call depend on what stood there before? Try two different contents."""
    arguments = {"copy_": (torch.ones(4),), "fill_": (2,), "random_": (0, 9), "geometric_": (0.5,), "log_normal_": ()}
    results = []
    for content in (0.25, 0.75):
        torch.manual_seed(0)
        tensor = torch.full((4,), content)
        getattr(tensor, name)(*arguments.get(name, ()))
        results.append(tensor)
    return not torch.equal(*results)


@pytest.mark.parametrize("name", sorted(OVERWRITERS - {"set_"}))
def test_overwriters_never_look(name: str) -> None:
    assert describe(getattr(T, name)).overwrites
    assert not really_reads(name)


@pytest.mark.parametrize("name", "add_ mul_ neg_ abs_ exp_ clamp_ relu_ tanh_ sqrt_ cumsum_ masked_fill_".split())
def test_other_writes_do_look(name: str) -> None:
    assert not describe(getattr(torch.Tensor, name)).overwrites


@pytest.mark.parametrize(
    ("func", "random"),
    [
        (torch.rand, True),
        (T.normal_, True),
        (F.dropout, True),
        (torch.ops.aten.bernoulli.default, True),
        (torch.nn.functional.scaled_dot_product_attention, True),
        (torch.add, False),
        (torch.zeros, False),
    ],
)
def test_what_draws_random_numbers(func: Any, random: bool) -> None:
    assert describe(func).random is random


@pytest.mark.parametrize("func", [torch.empty, torch.empty_like, T.new_empty])
def test_memory_as_found_cannot_be_repeated(func: Any) -> None:
    assert not describe(func).replayable


def test_every_listed_name_exists_or_is_private() -> None:
    """A name that torch does not know (any more) would be a leftover."""
    for name in LEAVING | CONTROL | OVERWRITERS:
        assert hasattr(T, name) or hasattr(torch, name) or hasattr(torch.ops.aten, name), name
    known = sum(hasattr(T, n) or hasattr(torch, n) for n in NOT_OPERATIONS)
    assert known > 0.8 * len(NOT_OPERATIONS)


def test_an_operator_from_outside_is_opened() -> None:
    @torch.library.custom_op("endoscope_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    facts = describe(torch.ops.endoscope_tests.twice.default)
    assert (facts.role, facts.type) == (Role.OPEN, "twice")


def test_in_place_operators_return_the_changed_object() -> None:
    """The recorder relies on it: what was written is what came out."""
    for symbol in "iadd isub imul itruediv".split():
        x = torch.ones(2)
        assert getattr(operator, symbol)(x, 2) is x
