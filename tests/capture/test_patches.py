"""The names of torch that are exchanged during a trace: all are put back, whatever happens."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import _SingleLevelFunction

import endoscope
from endoscope.capture.patch import patches
from tests.models import Fails, Mlp

X = torch.rand(2, 5)
OWNERS = (
    "torch.nn.functional torch.functional torch.overrides torch._tensor torch._functorch.vmap"
    " torch._functorch.eager_transforms"
).split()


def everything() -> dict[str, Any]:
    """Every attribute of every place that may be patched, and the code of every function there."""
    places: list[Any] = [importlib.import_module(name) for name in OWNERS]
    places += [nn.Module, nn.Parameter, torch.jit.ScriptFunction, torch.autograd.Function, _SingleLevelFunction]
    places += [torch.Tensor, torch._C._nested, torch.autograd, threading.Thread, ThreadPoolExecutor]
    found = {f"{p.__name__}.{key}": value for p in places for key, value in vars(p).items()}
    functions = {key: getattr(value, "__func__", value) for key, value in found.items()}
    return found | {f"code of {key}": f.__code__ for key, f in functions.items() if hasattr(f, "__code__")}


@pytest.fixture
def unchanged() -> Iterator[dict[str, Any]]:
    """Whatever a test does, all names are afterwards what they were before."""
    before = everything()
    yield before
    after = everything()
    assert set(before) == set(after)
    assert [key for key in before if before[key] is not after[key]] == []
    assert not patches.ACTIVE
    assert not patches.OBSERVERS.are_on and not patches.COMPOSITES.are_on


def exchanged(before: dict[str, Any]) -> set[str]:
    now = everything()
    return {key for key in now if before.get(key) is not now[key]}


def test_names_are_exchanged_only_during_the_trace(unchanged: dict[str, Any]) -> None:
    seen: set[str] = set()
    endoscope.trace(lambda x: seen.update(exchanged(unchanged)) or x * 2, X)
    assert {"torch.nn.functional.has_torch_function", "Module._call_impl"} <= seen
    assert {"Thread.start", "_SingleLevelFunction.apply", "Tensor.__new__", "Tensor._make_subclass"} <= seen
    assert not exchanged(unchanged)


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(1)])
def test_an_exception_puts_them_back(unchanged: dict[str, Any], error: BaseException) -> None:
    with pytest.raises(type(error)):
        endoscope.trace(Fails(error), X)
    assert not exchanged(unchanged)


def test_an_error_of_our_own_puts_them_back(unchanged: dict[str, Any]) -> None:
    with pytest.raises(endoscope.errors.NothingMatches):
        endoscope.trace(Mlp(), X, save="no_such_thing_1")


def test_the_inner_of_two_traces_leaves_them_to_the_outer(unchanged: dict[str, Any]) -> None:
    with endoscope.tracing() as outer:
        inner = endoscope.trace(Mlp(), X)
        assert "Module._call_impl" in exchanged(unchanged)
        X.sin()
    assert [op.type for op in inner.ops] == ["input", "linear", "relu", "linear", "output"]
    assert outer.ops[-1].type == "sin"


def test_left_in_another_order_than_entered(unchanged: dict[str, Any]) -> None:
    first, second = object(), object()
    patches.activate(first)  # type: ignore[arg-type]
    patches.activate(second)  # type: ignore[arg-type]
    patches.deactivate(first)  # type: ignore[arg-type]
    assert exchanged(unchanged)
    patches.deactivate(second)  # type: ignore[arg-type]
    assert not exchanged(unchanged)


def test_leaving_twice_does_no_harm(unchanged: dict[str, Any]) -> None:
    recorder: Any = object()
    patches.activate(recorder)
    patches.deactivate(recorder)
    patches.deactivate(recorder)


def test_two_threads_each_with_its_own_trace(unchanged: dict[str, Any]) -> None:
    """Both are inside at the same time; the names stay exchanged until the last has left."""
    both_inside, results = threading.Barrier(2, timeout=20), {}

    class Waits(nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def forward(self, x: Tensor) -> Tensor:
            both_inside.wait()
            x = x * 2 if self.name == "a" else x + 1
            both_inside.wait()
            return x

    def run(name: str) -> None:
        results[name] = [op.type for op in endoscope.trace(Waits(name), X).ops]

    threads = [threading.Thread(target=run, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"a": ["input", "mul", "output"], "b": ["input", "add", "output"]}


def test_a_thread_that_traces_nothing_sees_torch_as_it_is(unchanged: dict[str, Any]) -> None:
    heard: list[Any] = []

    def elsewhere() -> None:
        model = Mlp()
        heard.append(patches.recorders_here())
        heard.append(model(X).shape)

    with endoscope.tracing() as trace:
        X.exp()
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert heard == [None, (2, 5)]
    assert "linear" not in {op.type for op in trace.ops}
    assert any(notice.kind == "thread" for notice in trace.warnings)


def test_a_subclass_is_still_asked(unchanged: dict[str, Any]) -> None:
    """The exchanged `has_torch_function` ignores our mode, not the user's tensor subclasses."""
    calls = []

    class Loud(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(getattr(func, "__name__", ""))
            return super().__torch_function__(func, types, args, kwargs or {})

    endoscope.trace(lambda x: torch.nn.functional.softmax(x, -1), X.as_subclass(Loud))
    assert "softmax" in calls


class Plain(Tensor):
    """A subclass that changes nothing."""


@pytest.mark.parametrize(
    "composite",
    [
        lambda x: F.softmax(x, -1),
        lambda x: F.relu(x),
        lambda x: x.norm(),
        lambda x: x.split(1)[0],
        lambda x: torch.einsum("ij->i", x),
        lambda x: F.layer_norm(x, (5,)),
    ],
)
def test_a_subclass_that_leaves_the_work_to_torch(unchanged: dict[str, Any], composite: Any) -> None:
    """`Tensor.__torch_function__` switches itself off and calls again; then nobody is to be asked any more."""
    x = X.as_subclass(Plain)
    expected = composite(x)
    trace = endoscope.trace(composite, x)
    assert isinstance(trace.result, Plain)
    assert torch.equal(trace.result, expected)


def test_the_composites_are_open_only_inside() -> None:
    def answer(x: Tensor) -> bool:
        return torch.nn.functional.has_torch_function_unary(x)

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    inside = []
    with endoscope.tracing():
        inside.append(answer(X))
        with Mode():
            inside.append(answer(X))
    assert inside == [False, True]
    with Mode():
        assert answer(X)


def test_marks_for_a_profiler_are_no_operations() -> None:
    def marked(x: Tensor) -> Tensor:
        with torch.profiler.record_function("here"):
            return x * 2

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        trace = endoscope.trace(marked, X)
    assert [op.type for op in trace.ops] == ["input", "mul", "output"]
    assert endoscope.validate(marked, X)
    assert "here" in {event.key for event in profile.key_averages()}


def test_what_somebody_else_has_put_over_ours_stays(unchanged: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []

    class Patching(Mlp):
        def forward(self, x: Tensor) -> Tensor:
            ours = nn.Module._call_impl

            def theirs(module: nn.Module, *args: Any) -> Any:
                heard.append(type(module).__name__)
                return ours(module, *args)

            monkeypatch.setattr(nn.Module, "_call_impl", theirs)
            return super().forward(x)

    endoscope.trace(Patching(), X)
    assert heard
    heard.clear()
    trace = endoscope.trace(Mlp(), X)
    assert heard and [op.type for op in trace.ops].count("linear") == 2
    assert nn.Module._call_impl.__name__ == "theirs"
    monkeypatch.undo()
    assert nn.Module._call_impl.__name__ == "_call_impl"
    nn.Module._call_impl = unchanged["Module._call_impl"]
    trace = endoscope.trace(Mlp(), X)
    assert [op.type for op in trace.ops].count("linear") == 2
