"""What cannot be seen is said: a warning, and a trace that does not call itself complete."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.helpers import ancestors, identical, labels, only, words
from tests.models import (
    AttentionBlock,
    ConvNet,
    DemoNetwork,
    InplaceResidual,
    Mlp,
    Noisy,
    OrganizedNetwork,
    RecurrentNetwork,
    Residual,
    ReturnsGenerator,
    ThroughView,
)

X = torch.arange(1.0, 7.0).reshape(2, 3)
old_torchscript = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


def check_said(trace: Any) -> None:
    """Something is listed, it is readable, and the trace does not claim to be complete."""
    assert len(trace.warnings) >= 1
    assert all(len(str(warning)) > 10 for warning in trace.warnings)
    assert trace.complete is False


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (DemoNetwork(), (5, 5)),
        (RecurrentNetwork(), (5, 5)),
        (OrganizedNetwork(), (5, 5)),
        (Mlp(), (2, 5)),
        (ConvNet(), (2, 1, 8, 8)),
        (Residual(), (4, 5)),
        (InplaceResidual(), (2, 5)),
        (Noisy(), (2, 5)),
        (ThroughView(), (3, 4)),
        (AttentionBlock(), (2, 3, 8)),
        (nn.LSTM(5, 4), (3, 2, 5)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_a_clean_model_is_complete_and_raises_no_warning(model: nn.Module, shape: tuple[int, ...]) -> None:
    trace = endoscope.trace(model, torch.rand(shape))
    assert list(trace.warnings) == []
    assert trace.complete is True


class Scripted(nn.Module):
    """A scripted layer between two plain operations."""

    def __init__(self, body: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x + 1).exp()


class Inner(nn.Module):
    """Two operations and a parameter: what the scripted body hides."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.fc(x))


def scripted_function(x: Tensor) -> Tensor:
    """Two operations for the script compiler."""
    return torch.tanh(x) * 2


@old_torchscript
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.jit.script(Inner()),
        lambda: torch.jit.trace(Inner(), X),
        lambda: torch.jit.script(scripted_function),
    ],
    ids=["script module", "traced module", "script function"],
)
def test_torchscript_is_one_opaque_op_and_says_so(make: Callable[[], Any]) -> None:
    model = Scripted(make())
    plain = model(X)
    trace = endoscope.trace(model, X)
    check_said(trace)
    assert "script" in words(trace.warnings)
    between = [op for op in trace.ops if op.type not in ("add", "exp") and op.kind not in ("input", "output")]
    assert len(between) == 1
    assert between[0].type not in ("tanh", "linear")
    assert labels(between[0].children) == [only(trace, "exp").label]
    assert only(trace, "add").label in labels(between[0].parents)
    assert identical(between[0].value.exp(), only(trace, "exp").value)
    assert identical(trace.result, plain)


@old_torchscript
def test_a_scripted_module_as_the_target() -> None:
    model = torch.jit.script(Inner())
    trace = endoscope.trace(model, X)
    check_said(trace)
    assert identical(trace.result, model(X))
    assert "input_1_0" in ancestors(trace.outputs[0])


def through_numpy(y: Tensor) -> Tensor:
    """Out through `.numpy()` and back."""
    return torch.from_numpy(y.numpy() * 3)


def through_asarray(y: Tensor) -> Tensor:
    """Out because numpy asks for it."""
    return torch.as_tensor(np.asarray(y) * 3)


def through_numpy_function(y: Tensor) -> Tensor:
    """Out through a numpy function that takes anything."""
    return torch.tensor(np.exp(y.numpy()))


def through_list(y: Tensor) -> Tensor:
    """Out through `.tolist()` and back."""
    return torch.tensor(y.tolist()) * 3


def through_item(y: Tensor) -> Tensor:
    """Out through `.item()`, back as a new tensor."""
    return torch.tensor(y.sum().item()) * torch.ones(2, 3)


def through_scalar(y: Tensor) -> Tensor:
    """Out through `.item()`, back as a factor."""
    return torch.ones(2, 3) * y.max().item()


def through_float(y: Tensor) -> Tensor:
    """Out through `float()`, which is `.item()` by another name."""
    return torch.full((2, 3), float(y.sum()))


@pytest.mark.parametrize(
    ("way", "word"),
    [
        (through_numpy, "numpy"),
        (through_asarray, "numpy|array"),
        (through_numpy_function, "numpy"),
        (through_list, "tolist"),
        (through_item, "item"),
        (through_scalar, "item"),
        (through_float, "float|item"),
    ],
)
def test_values_that_leave_and_come_back_are_said(way: Callable[[Tensor], Tensor], word: str) -> None:
    def target(x: Tensor) -> Tensor:
        return way(x * 2).cosh()

    trace = endoscope.trace(target, X)
    check_said(trace)
    assert re.search(word, words(trace.warnings))
    assert identical(trace.result, target(X))


def test_the_warning_says_where() -> None:
    trace = endoscope.trace(lambda x: through_numpy(x * 2).cosh(), X)
    line = through_numpy.__code__.co_firstlineno + 2
    assert "test_unseen.py" in words(trace.warnings)
    assert str(line) in words(trace.warnings)


def test_an_array_that_shares_memory_and_is_written() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y.numpy()[0] = 100.0
        return y.cosh()

    trace = endoscope.trace(target, X)
    check_said(trace)
    assert identical(trace.result, target(X))


def test_work_in_another_thread_is_said() -> None:
    def target(x: Tensor) -> Tensor:
        found: list[Tensor] = []
        worker = threading.Thread(target=lambda: found.append(x.tanh() * 2))
        worker.start()
        worker.join()
        return found[0].cosh()

    trace = endoscope.trace(target, X)
    check_said(trace)
    assert "thread" in words(trace.warnings)
    assert identical(trace.result, target(X))
    assert "cosh" in {op.type for op in trace.ops}


def test_work_in_a_thread_pool_is_said() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def target(x: Tensor) -> Tensor:
        with ThreadPoolExecutor(2) as pool:
            return torch.stack(list(pool.map(torch.tanh, x.unbind(0))))

    trace = endoscope.trace(target, X)
    check_said(trace)
    assert identical(trace.result, target(X))


def test_a_generator_returned_unconsumed_is_said_and_left_unconsumed() -> None:
    trace = endoscope.trace(ReturnsGenerator(), X)
    check_said(trace)
    assert "generator" in words(trace.warnings)
    parts = list(trace.result)
    assert [part[0, 0].item() for part in parts] == [1.0, 2.0, 3.0]


def test_a_generator_inside_the_result_is_said() -> None:
    trace = endoscope.trace(lambda x: {"now": x * 2, "later": (x * k for k in range(2))}, X)
    check_said(trace)
    assert len(list(trace.result["later"])) == 2


def test_a_generator_consumed_inside_is_fine() -> None:
    def rows(x: Tensor) -> Iterator[Tensor]:
        for row in x:
            yield row * 2

    trace = endoscope.trace(lambda x: torch.stack(list(rows(x))), X)
    assert trace.complete is True
    assert list(trace.warnings) == []
    assert [op.type for op in trace.ops].count("mul") == 2


def test_warnings_of_one_trace_do_not_leak_into_the_next() -> None:
    check_said(endoscope.trace(through_numpy, X))
    assert list(endoscope.trace(lambda x: x * 2, X).warnings) == []


def test_the_printed_summary_says_that_something_is_missing() -> None:
    assert "numpy" in str(endoscope.trace(through_numpy, X)).lower()
