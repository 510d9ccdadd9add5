"""Switches of torch around a trace: gradients, precision, checkpointing, compilation, threads, processes."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import endoscope
from tests.contract.helpers import ancestors, computed, identical, labels, only, proves, types
from tests.models import DemoNetwork, InplaceResidual, Mlp, Residual

X = torch.linspace(-1, 1, 10).reshape(2, 5)


@pytest.mark.parametrize(
    "around",
    [torch.no_grad, torch.inference_mode, torch.enable_grad],
    ids=["no_grad", "inference_mode", "enable_grad"],
)
@pytest.mark.parametrize("make", [Mlp, InplaceResidual, Residual])
def test_gradient_modes_around_the_trace(
    around: Callable[[], AbstractContextManager[Any]], make: type[nn.Module]
) -> None:
    model = make().eval()
    with around():
        plain = model(X)
        trace = endoscope.trace(model, X)
        proves(model, X)
    assert identical(trace.result, plain)
    assert trace.result.requires_grad == plain.requires_grad
    assert trace.result.is_inference() == plain.is_inference()
    assert trace.complete is True


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference_mode"])
def test_gradient_modes_inside_the_model(around: Callable[[], AbstractContextManager[Any]]) -> None:
    model = Mlp()

    def target(x: Tensor) -> Tensor:
        with around():
            y = model(x)
        return y.clone() * 2

    trace = endoscope.trace(target, X)
    assert types(computed(trace)) == ["linear", "relu", "linear", "clone", "mul"]
    assert only(trace, "relu").label in ancestors(only(trace, "mul"))
    proves(target, X)


def test_views_and_writes_in_inference_mode() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y[0].add_(10)
        return y.sum()

    with torch.inference_mode():
        trace = endoscope.trace(target, X)
        assert {"mul", "add"} <= set(types(only(trace, "sum").parents))
        assert identical(only(trace, "mul").value, X * 2)
        proves(target, X)


@pytest.mark.parametrize("inside", [False, True], ids=["around", "inside"])
def test_autocast(inside: bool) -> None:
    model = Mlp()

    def casting(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            result: Tensor = model(x)
            return result

    if inside:
        plain, trace = casting(X), endoscope.trace(casting, X)
        proves(casting, X)
    else:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            plain, trace = model(X), endoscope.trace(model, X)
            proves(model, X)
    assert identical(trace.result, plain)
    assert plain.dtype == torch.bfloat16
    assert {op.dtype for op in trace.ops if op.type == "linear"} == {torch.bfloat16}
    assert {"input_1_0"} <= ancestors(trace.outputs[0])


class Checkpointed(nn.Module):
    """A block that is recomputed in the backward pass."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.block = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Dropout(0.5))
        self.head = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(checkpoint(self.block, x, use_reentrant=self.reentrant))


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "not reentrant"])
def test_checkpointing(reentrant: bool) -> None:
    model = Checkpointed(reentrant)

    def gradients(traced: bool) -> list[Tensor]:
        model.zero_grad()
        torch.manual_seed(2)
        x = X.clone().requires_grad_()
        y = endoscope.trace(model, x).result if traced else model(x)
        y.sum().backward()
        assert x.grad is not None
        return [y.detach(), x.grad, *(p.grad for p in model.parameters() if p.grad is not None)]

    plain, traced = gradients(traced=False), gradients(traced=True)
    assert len(plain) == 6
    assert all(identical(a, b) for a, b in zip(plain, traced, strict=True))
    trace = endoscope.trace(model, X.clone().requires_grad_())
    assert types(computed(trace)) == ["linear", "tanh", "dropout", "linear"]
    assert only(trace, "tanh").modules == ("block", "block.1")
    assert "block.0.weight" in ancestors(trace.outputs[0])
    model.zero_grad()
    proves(model, X.clone().requires_grad_())


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "not reentrant"])
def test_backward_through_a_checkpoint_inside_the_block(reentrant: bool) -> None:
    model = Checkpointed(reentrant)
    x = X.clone().requires_grad_()
    with endoscope.tracing(model) as trace:
        model(x).sum().backward()
    assert model.block[0].weight.grad is not None
    assert types(trace.ops)[:5] == ["input", "linear", "tanh", "dropout", "linear"]


def test_a_compiled_module_is_traced_eagerly() -> None:
    model = Mlp()
    compiled = torch.compile(model, backend="eager")
    plain = endoscope.trace(model, X)
    trace = endoscope.trace(compiled, X)
    assert types(computed(trace)) == ["linear", "relu", "linear"]
    assert identical(trace.result, plain.result)
    proves(compiled, X)


def test_a_trace_neither_compiles_nor_throws_away_what_is_compiled() -> None:
    built: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        built.append(1)
        return graph.forward

    model = Mlp()
    compiled = torch.compile(model, backend=backend)
    compiled(X)
    assert len(built) == 1
    trace = endoscope.trace(compiled, X)
    assert len(computed(trace)) == 3
    result = compiled(X)
    assert len(built) == 1
    assert identical(result, trace.result)


def test_a_compiled_function_inside_a_model() -> None:
    @torch.compile(backend="eager")
    def act(x: Tensor) -> Tensor:
        return torch.sin(x) * 2

    def target(x: Tensor) -> Tensor:
        return act(x + 1).exp()

    act(X)
    trace = endoscope.trace(target, X)
    assert types(computed(trace)) == ["add", "sin", "mul", "exp"]
    proves(target, X)


def test_a_compiled_function_as_the_target() -> None:
    compiled = torch.compile(lambda x: torch.sin(x) * 2, backend="eager")
    assert types(computed(endoscope.trace(compiled, X))) == ["sin", "mul"]
    proves(compiled, X)


def test_a_module_compiled_in_place() -> None:
    model = Mlp()
    model.compile(backend="eager")
    model(X)
    trace = endoscope.trace(model, X)
    assert types(computed(trace)) == ["linear", "relu", "linear"]
    assert trace["first"].label == "linear_1_1"
    proves(model, X)


def test_each_thread_has_its_own_trace() -> None:
    models = [nn.Sequential(*[nn.Linear(5, 5) for _ in range(count)]) for count in (3, 5, 7)]
    found: dict[int, Any] = {}
    gate = threading.Barrier(len(models))

    def work(index: int) -> None:
        gate.wait(timeout=10)
        for _ in range(5):
            found[index] = endoscope.trace(models[index], X)

    workers = [threading.Thread(target=work, args=(index,)) for index in range(len(models))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=20)
    for index, model in enumerate(models):
        assert types(computed(found[index])) == ["linear"] * len(model)
        assert identical(found[index].result, model(X))
        assert found[index].complete is True


def test_a_plain_run_in_another_thread_is_not_recorded() -> None:
    stop, ready = threading.Event(), threading.Event()

    def busy() -> None:
        while not stop.is_set():
            torch.cosh(X)
            ready.set()

    worker = threading.Thread(target=busy)
    worker.start()
    try:
        ready.wait(timeout=10)
        trace = endoscope.trace(Mlp(), X)
    finally:
        stop.set()
        worker.join(timeout=10)
    assert types(computed(trace)) == ["linear", "relu", "linear"]


def test_a_trace_in_a_thread_that_is_not_the_first() -> None:
    reports: list[Any] = []
    worker = threading.Thread(target=lambda: reports.append(endoscope.validate(Mlp(), X)))
    worker.start()
    worker.join(timeout=20)
    assert len(reports) == 1
    assert reports[0].ok is True


def in_child(queue: Any) -> None:
    """Trace and prove in a forked child; the parent reads what came out."""
    torch.set_num_threads(1)
    trace = endoscope.trace(DemoNetwork(), torch.rand(5, 5))
    report = endoscope.validate(Mlp(), X)
    queue.put((labels(trace.ops), bool(report.ok), torch._C._len_torch_function_stack()))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_trace_after_its_parent_did() -> None:
    before = endoscope.trace(DemoNetwork(), torch.rand(5, 5))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    child.join(timeout=30)
    assert child.exitcode == 0
    assert queue.get() == (labels(before.ops), True, 0)
    assert types(computed(endoscope.trace(Mlp(), X))) == ["linear", "relu", "linear"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forking_in_the_middle_of_a_trace_leaves_both_sides_working() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def target(x: Tensor) -> Tensor:
        y = x * 2
        child = context.Process(target=lambda: queue.put(float(torch.ones(3).cosh().sum())))
        child.start()
        child.join(timeout=30)
        assert child.exitcode == 0
        return y + 1

    trace = endoscope.trace(target, X)
    assert types(computed(trace)) == ["mul", "add"]
    assert queue.get() == pytest.approx(float(torch.ones(3).cosh().sum()))


def test_default_dtype_and_default_device_are_respected() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        trace = endoscope.trace(lambda x: x.double() + torch.ones(5), X)
        with torch.device("meta"):
            shapes = endoscope.trace(lambda: torch.ones(3) * 2, (), save="none")
    finally:
        torch.set_default_dtype(torch.float32)
    assert only(trace, "ones").dtype == torch.float64
    assert tuple(shapes["mul_1"].shape) == (3,)


def test_a_graph_of_gradients_inside_the_model() -> None:
    def target(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            energy = (x**3).sum()
            (force,) = torch.autograd.grad(energy, x)
        return force * 2

    trace = endoscope.trace(target, X)
    assert identical(trace.result, target(X))
    assert torch.allclose(trace.result, 6 * X**2)
    proves(target, X)


def test_anomaly_detection_and_deterministic_algorithms() -> None:
    model = Mlp()
    torch.use_deterministic_algorithms(True)
    try:
        trace = endoscope.trace(model, X)
        proves(model, X)
    finally:
        torch.use_deterministic_algorithms(False)
    assert identical(trace.result, model(X))
    assert F.relu(X).shape == (2, 5)
