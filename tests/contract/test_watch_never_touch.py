"""Tracing changes nothing: not the numbers, not the model, not torch, not the user's exceptions."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import endoscope
from tests.contract.helpers import identical, types
from tests.models import (
    AttentionBlock,
    ConvNet,
    DemoNetwork,
    Fails,
    InplaceResidual,
    Mlp,
    Noisy,
    Residual,
)

MODELS: list[tuple[type[nn.Module], tuple[int, ...]]] = [
    (DemoNetwork, (5, 5)),
    (Mlp, (2, 5)),
    (ConvNet, (2, 1, 8, 8)),
    (Residual, (4, 5)),
    (InplaceResidual, (3, 5)),
    (Noisy, (2, 5)),
    (AttentionBlock, (2, 3, 8)),
]
every_model = pytest.mark.parametrize(("make", "shape"), MODELS, ids=[make.__name__ for make, _ in MODELS])
WATCHED = (
    torch, torch.Tensor, torch._C, torch._C._nn, torch.nn.functional, torch.nn.Module,
    torch.nn.modules.module, torch.nn.modules.activation, torch.nn.modules.transformer, torch.overrides,
    torch.autograd, torch.autograd.Function, torch.autograd.function, torch.jit, torch.library,
    torch.utils.checkpoint, torch._tensor, torch.functional,
)  # fmt: skip


def run(model: nn.Module, x: Tensor, traced: bool) -> dict[str, Any]:
    """One forward and backward from a fixed seed, and everything it leaves behind."""
    torch.manual_seed(4)
    x = x.clone().requires_grad_()
    y = endoscope.trace(model, x).result if traced else model(x)
    y.square().mean().backward()
    return {
        "output": y.detach(),
        "needs gradient": y.requires_grad,
        "random state": torch.get_rng_state(),
        "input gradient": x.grad,
        **{f"{name} gradient": p.grad for name, p in model.named_parameters()},
        **{f"{name} value": p.detach().clone() for name, p in model.named_parameters()},
        **{f"{name} buffer": b.clone() for name, b in model.named_buffers()},
        "requires": [p.requires_grad for p in model.parameters()],
        "training": [m.training for m in model.modules()],
    }


@every_model
def test_same_numbers_with_and_without(make: type[nn.Module], shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    one, two = make(), make()
    two.load_state_dict(one.state_dict())
    x = torch.rand(shape)
    plain, traced = run(one, x, traced=False), run(two, x, traced=True)
    assert plain.keys() == traced.keys()
    for name, value in plain.items():
        same = identical(value, traced[name]) if isinstance(value, Tensor) else value == traced[name]
        assert same, name


def fingerprint(model: nn.Module) -> dict[str, Any]:
    """Everything on every module: names and identities of attributes, and what hangs in its hook tables."""
    found: dict[str, Any] = {}
    for address, module in model.named_modules():
        for name, value in vars(module).items():
            inside = {k: id(v) for k, v in value.items()} if isinstance(value, dict) else None
            found[f"{address}/{name}"] = (id(value), inside)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        found[f"{name} tensor"] = (dict(vars(tensor)), bool(tensor._backward_hooks), tensor.grad_fn)
    return found


def surroundings() -> dict[str, Any]:
    """What in torch and in the interpreter could have been replaced or left switched on."""
    found: dict[str, Any] = {}
    for place in WATCHED:
        for name, value in list(vars(place).items()):
            found[f"{place.__name__}.{name}"] = id(value)
    globals_ = vars(torch.nn.modules.module)
    found["global hooks"] = {k: len(v) for k, v in globals_.items() if k.startswith("_global") and isinstance(v, dict)}
    found["modes"] = (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack())
    found["grad"] = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype())
    found["interpreter"] = (sys.gettrace(), sys.getprofile(), sys.getrecursionlimit())
    return found


def check_untouched(before: dict[str, Any], after: dict[str, Any]) -> None:
    """All that was there is there unchanged (torch may have loaded more of itself since)."""
    changed = [name for name, value in before.items() if name not in after or after[name] != value]
    assert changed == []


@every_model
def test_nothing_is_left_on_the_model(make: type[nn.Module], shape: tuple[int, ...]) -> None:
    model, x = make(), torch.rand(shape)
    before = fingerprint(model)
    trace = endoscope.trace(model, x)
    after = fingerprint(model)
    assert before.keys() == after.keys()
    assert before == after
    assert vars(x) == {}
    assert not x._backward_hooks
    assert len(trace) > 2


def test_nothing_is_left_on_the_model_once_the_gradients_are_in() -> None:
    model, x = Mlp(), torch.rand(2, 5).requires_grad_()
    before = fingerprint(model)
    trace = endoscope.trace(model, x, gradients=True)
    trace.result.sum().backward()
    assert trace["relu_1"].gradient is not None
    assert fingerprint(model) == before
    assert not x._backward_hooks


@pytest.mark.parametrize("save", ["all", "none"])
def test_nothing_is_left_in_torch(save: str) -> None:
    x = torch.rand(2, 3, 8)
    endoscope.trace(AttentionBlock(), x, save=save)  # the first use may import parts of torch
    before = surroundings()
    endoscope.trace(AttentionBlock(), x, save=save)
    with endoscope.tracing(Mlp(), save=save):
        torch.rand(5).exp()
    check_untouched(before, surroundings())


def test_nothing_is_left_in_torch_by_validation() -> None:
    endoscope.validate(Mlp(), torch.rand(2, 5))
    before = surroundings()
    model = Mlp()
    on_model = fingerprint(model)
    endoscope.validate(model, torch.rand(2, 5))
    check_untouched(before, surroundings())
    assert fingerprint(model) == on_model


def test_importing_patches_nothing() -> None:
    assert torch.Tensor.add.__objclass__ is torch._C.TensorBase  # type: ignore[attr-defined]
    assert F.relu.__module__ == "torch.nn.functional"
    assert nn.Module.__call__.__module__ == "torch.nn.modules.module"


class Trouble(Exception):
    """An exception with an argument that would not survive being rebuilt."""

    def __init__(self, code: int, *, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


@pytest.mark.parametrize(
    "error",
    [
        Trouble(3, detail="no"),
        ValueError("bad"),
        KeyError("missing"),
        StopIteration(),
        KeyboardInterrupt(),
        SystemExit(4),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_arrives_unchanged_with_the_partial_trace(error: BaseException) -> None:
    model, x = Fails(error), torch.rand(2, 5)
    before, on_model = surroundings(), fingerprint(model)
    with pytest.raises(type(error)) as caught:
        endoscope.trace(model, x)
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    partial = caught.value.endoscope_trace  # type: ignore[attr-defined]
    assert types(partial.ops)[:3] == ["input", "linear", "sigmoid"]
    assert identical(partial["fc"].value, model.fc(x))
    assert partial.complete is False
    assert "sigmoid_1_2" in str(partial)
    check_untouched(before, surroundings())
    assert fingerprint(model).keys() == on_model.keys()
    assert torch.equal(F.relu(x), x)


def test_an_error_of_torch_itself_arrives_unchanged() -> None:
    model = Mlp()
    with pytest.raises(RuntimeError) as plain:
        model(torch.rand(2, 4))
    with pytest.raises(RuntimeError) as traced:
        endoscope.trace(model, torch.rand(2, 4))
    assert str(traced.value) == str(plain.value)
    assert type(traced.value) is type(plain.value)
    assert types(traced.value.endoscope_trace.ops)[:1] == ["input"]  # type: ignore[attr-defined]


def test_an_exception_in_the_general_form() -> None:
    error = Trouble(5, detail="late")
    model, x = Mlp(), torch.rand(5)
    before = surroundings()
    with pytest.raises(Trouble) as caught, endoscope.tracing(model) as trace:
        model(x)
        raise error
    assert caught.value is error
    assert caught.value.endoscope_trace is trace  # type: ignore[attr-defined]
    assert types(trace.ops)[:4] == ["input", "linear", "relu", "linear"]
    check_untouched(before, surroundings())


def test_an_exception_that_the_model_handles_itself() -> None:
    fails = Fails(ValueError("inner"))

    def target(x: Tensor) -> Tensor:
        try:
            result: Tensor = fails(x)
            return result
        except ValueError:
            return x.exp()

    trace = endoscope.trace(target, torch.rand(5))
    assert types(trace.ops) == ["input", "linear", "sigmoid", "exp", "output"]
    assert trace["exp_1"].modules == ()


def test_hooks_of_the_user_run_as_often_as_without() -> None:
    def counts(traced: bool) -> list[str]:
        model, seen = Mlp(), list[str]()
        model.first.register_forward_pre_hook(lambda *_: seen.append("before"))
        model.first.register_forward_hook(lambda *_: seen.append("after"))
        model.second.register_full_backward_hook(lambda *_: seen.append("backward"))
        model.first.weight.register_hook(lambda g: seen.append("tensor"))
        x = torch.rand(2, 5)
        y = endoscope.trace(model, x).result if traced else model(x)
        y.sum().backward()
        return seen

    assert counts(traced=True) == counts(traced=False)
    assert len(counts(traced=False)) == 4


def test_a_hook_that_changes_the_output_changes_what_is_recorded() -> None:
    model = Mlp()
    model.first.register_forward_hook(lambda module, args, output: output * 100)
    trace = endoscope.trace(model, torch.rand(2, 5))
    assert types(trace.ops) == ["input", "linear", "mul", "relu", "linear", "output"]
    assert identical(trace["first"].value, trace["mul_1"].value)


class CountFunctions(TorchFunctionMode):
    """A function mode of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


class CountKernels(TorchDispatchMode):
    """A dispatch mode of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_function_mode_of_the_user_still_sees_the_model() -> None:
    model, x = Mlp(), torch.rand(2, 5)
    with CountFunctions() as mode:
        endoscope.trace(model, x)
    assert mode.names.count("linear") == 2
    assert mode.names.count("relu") == 1


def test_a_dispatch_mode_of_the_user_sees_the_same_kernels() -> None:
    model, x = ConvNet(), torch.rand(2, 1, 8, 8)
    with CountKernels() as plain:
        model(x)
    with CountKernels() as traced:
        endoscope.trace(model, x)
    assert [name for name in traced.names if "detach" not in name] == [
        name for name in plain.names if "detach" not in name
    ]


def test_the_trace_lets_go_of_everything() -> None:
    model, x = Mlp(), torch.rand(2, 5)
    trace = endoscope.trace(model, x, gradients=True)
    activation = weakref.ref(trace["relu_1"].value)
    watched = weakref.ref(model)
    held = weakref.ref(x)
    del trace, model, x
    gc.collect()
    assert activation() is None
    assert watched() is None
    assert held() is None


def test_a_model_can_be_copied_saved_and_traced_again_after_a_trace() -> None:
    model, x = Mlp(), torch.rand(2, 5)
    first = endoscope.trace(model, x)
    twin = copy.deepcopy(model)
    assert identical(endoscope.trace(twin, x).result, first.result)
    assert identical(pickle.loads(pickle.dumps(model))(x), first.result)


def test_a_second_trace_does_not_change_the_first() -> None:
    model = Mlp()
    one = endoscope.trace(model, torch.zeros(2, 5))
    before = [op.value.clone() for op in one.ops]
    endoscope.trace(model, torch.ones(2, 5))
    assert all(identical(op.value, value) for op, value in zip(one.ops, before, strict=True))
