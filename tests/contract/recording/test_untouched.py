"""Watch, never touch: nothing is changed, nothing is kept alive, nothing is left behind."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import endoscope
from endoscope import policies
from tests.contract.recording.helpers import (
    batches,
    complaints,
    mlp,
    plain_step,
    recorded,
    sgd,
    simple_loop,
    strict_run,
)

cross_entropy = nn.functional.cross_entropy


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class Net(nn.Module):
    """In-place operations, views, a buffer, dropout, containers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.2)
        self.last = nn.Linear(8, 3)
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        hidden = self.drop(self.act(self.norm(self.first(x))))
        self.seen += [weakref.ref(x), weakref.ref(hidden)]
        out = self.last(hidden.view(-1, 8))
        self.seen.append(weakref.ref(out))
        return {"out": out}


def snapshot(model: nn.Module) -> dict[str, Any]:
    found = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        found[name] = (id(tensor), tensor.data_ptr(), tensor.requires_grad, tensor.is_leaf, type(tensor))
    return found


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("decided", ["kept", "dropped", "not captured"])
def test_no_tensor_lives_longer_than_its_step(
    tmp_path: Any, no_garbage_collector: None, block: bool, decided: str
) -> None:
    model = Net()
    optimizer = sgd(model)
    alive: list[Any] = []
    when = policies.every(1) if decided == "kept" else (lambda info: False)
    if decided == "dropped":
        when = policies.on_spike("nothing")
    with strict_run(tmp_path, when=when) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
            optimizer.zero_grad()
            if block:
                with run.step() as step:
                    loss = cross_entropy(step.tag("out", model(x)["out"]), y)
                    step.tag("loss", loss, kind="loss", batch_dim=None)
                    loss.backward()
                    optimizer.step()
            else:
                loss = cross_entropy(model(x)["out"], y)
                loss.backward()
                optimizer.step()
            alive += [weakref.ref(t) for t in (x, y, loss)] + model.seen
            gradients = [weakref.ref(p.grad) for p in model.parameters()]
            model.seen.clear()
            del x, y, loss
            assert [reference() for reference in alive] == [None] * len(alive)
            optimizer.zero_grad()
            assert [reference() for reference in gradients] == [None] * len(gradients)


def test_no_tensor_lives_longer_than_a_step_that_failed(tmp_path: Any, no_garbage_collector: None) -> None:
    model = Net()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for _ in range(2):
            x = torch.randn(5, 6)
            reference = weakref.ref(x)
            try:
                with run.step():
                    model(x)
                    raise KeyError("x")
            except KeyError:
                pass
            del x
            assert reference() is None
            assert [r() for r in model.seen] == [None] * len(model.seen)


def test_the_model_is_free_after_close(tmp_path: Any, no_garbage_collector: None) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
    references = [weakref.ref(p) for p in model.parameters()] + [weakref.ref(model)]
    optimizer.zero_grad()
    del model, optimizer
    gc.collect()  # modules and optimizers of torch are circles of their own
    assert [reference() for reference in references] == [None] * len(references)
    assert run.closed


def test_memory_does_not_grow(tmp_path: Any) -> None:
    """The number of tensors that exist after a step is the same at the beginning and at the end."""
    model = Net()
    optimizer = sgd(model)
    counts = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            for _ in range(8):
                x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
                optimizer.zero_grad()
                cross_entropy(model(x)["out"], y).backward()
                optimizer.step()
            model.seen.clear()
            gc.collect()
            counts.append(sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects()))
    assert counts[-1] == counts[1]


@pytest.mark.parametrize("when", [1, 2])
def test_nothing_of_the_model_changes(tmp_path: Any, when: int) -> None:
    model = Net()
    model.last.bias.requires_grad_(False)
    optimizer = sgd(model)
    before = snapshot(model)
    names = set(vars(model)), {name: set(vars(module)) for name, module in model.named_modules()}
    with strict_run(tmp_path, when=when) as run:
        run.watch(model, optimizer)
        for x, y in batches(4):
            x.requires_grad_(False)
            out = model(x)["out"]
            assert type(out) is torch.Tensor
            assert out.grad_fn is not None and not out.retains_grad
            assert not x.requires_grad
            loss = cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            assert not loss.retains_grad
    assert snapshot(model) == before
    assert (set(vars(model)), {name: set(vars(module)) for name, module in model.named_modules()}) == names


def hooks_of(model: nn.Module, optimizer: Any) -> list[Any]:
    found: list[Any] = [len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks)]
    for module in model.modules():
        found += [len(value) for name, value in vars(module).items() if name.endswith("hooks")]
        found += [len(v) for n, v in vars(module).items() if "hooks_" in n and isinstance(v, dict)]
    for parameter in model.parameters():
        found += [len(parameter._backward_hooks or ()), len(parameter._post_accumulate_grad_hooks or ())]
    return found


@pytest.mark.parametrize("explicit_optimizer", [True, False])
@pytest.mark.parametrize("end", ["close", "in a step", "in an explicit step"])
def test_no_hook_is_left_behind(tmp_path: Any, explicit_optimizer: bool, end: str) -> None:
    from torch.optim import optimizer as module

    model = Net()
    optimizer = sgd(model)
    before = hooks_of(model, optimizer)
    everywhere = len(module._global_optimizer_pre_hooks), len(module._global_optimizer_post_hooks)
    functions = {name: getattr(torch.nn.functional, name) for name in dir(torch.nn.functional)}
    call = nn.Module._call_impl
    run = endoscope.Run(tmp_path, trial="trial", when=1, strict=True)
    run.watch(model, optimizer if explicit_optimizer else None)
    for x, y in batches(2):
        optimizer.zero_grad()
        cross_entropy(model(x)["out"], y).backward()
        optimizer.step()
        assert torch._C._len_torch_function_stack() == 0
        assert nn.Module._call_impl is call
    if end == "in a step":
        model(x)
        run.close()
    elif end == "in an explicit step":
        with run.step():
            model(x)
            run.close()
            model(x)
    run.close()
    assert hooks_of(model, optimizer) == before
    assert (len(module._global_optimizer_pre_hooks), len(module._global_optimizer_post_hooks)) == everywhere
    assert torch._C._len_torch_function_stack() == 0
    assert nn.Module._call_impl is call
    assert {name: getattr(torch.nn.functional, name) for name in dir(torch.nn.functional)} == functions
    assert recorded(run).closed


def test_hooks_on_results_do_not_outlive_the_step(tmp_path: Any) -> None:
    """A result that the user keeps: no hook of ours fires when it is used later."""
    model = mlp()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        out = model(x)
        cross_entropy(out, y).backward(retain_graph=True)
        optimizer.step()
        assert not out._backward_hooks
        assert all(not p._backward_hooks for p in model.parameters())


def test_gradients_keep_their_memory(tmp_path: Any) -> None:
    """`.grad` is taken over by torch and not copied because somebody holds it; views and strides stay."""
    plain, watched = mlp(), mlp()
    watched.load_state_dict(plain.state_dict())
    ((x, y),) = batches(1)
    optimizers = [sgd(plain), sgd(watched)]
    with strict_run(tmp_path) as run:
        run.watch(watched, optimizers[1])
        for model, optimizer in zip((plain, watched), optimizers, strict=True):
            cross_entropy(model(x), y).backward()
            optimizer.step()
    for one, two in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(one.grad, two.grad)
        assert one.grad.stride() == two.grad.stride()
        assert one.grad.requires_grad == two.grad.requires_grad is False


def test_a_user_who_turns_warnings_into_errors_is_not_interrupted(tmp_path: Any, capfd: Any) -> None:
    """pytest does that here: the complaint goes to the error stream instead."""
    with endoscope.Run(tmp_path, trial="trial", when=1) as run, run.step() as step:
        step.tag("x", [1, 2])
    assert "needs a tensor" in capfd.readouterr().err


def test_a_complaint_is_made_once(tmp_path: Any) -> None:
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        for _ in range(5):
            with run.step() as step:
                step.tag("x", [1, 2])
    assert len(said) == 1
    assert len(recorded(run).gaps) == 5  # but every step has its gap


def test_closing_inside_of_a_forward_pass(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    run = endoscope.Run(tmp_path, trial="trial", when=1, strict=True)
    run.watch(model, optimizer)
    model[1].register_forward_hook(lambda *_: run.close())
    for x, y in batches(2):
        plain_step(model, optimizer, x, y)
    assert recorded(run).closed
    assert torch._C._len_torch_function_stack() == 0
