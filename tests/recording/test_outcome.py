"""Whose error is it: one of the user's operation is raised as ever, one of ours costs the step its graph, no more."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.capture.record.recorder import Recorder


class Net(nn.Module):
    """Calls a function on what a layer returns."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(3, 3), function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.layer(x))


def trained(folder: Path, function: Callable[[Tensor], Tensor], steps: int = 3) -> tuple[list[Any], list[str], Any]:
    """What each step returned or raised, what was warned about, and the recording."""
    torch.manual_seed(0)
    model = Net(function)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found: list[Any] = []
    with warnings.catch_warnings(record=True) as said, endoscope.Run(folder, trial="t", when=1) as run:
        warnings.simplefilter("always")
        run.watch(model, optimizer)
        for _ in range(steps):
            try:
                loss = model(torch.ones(2, 3)).sum()
            except Exception as error:
                found.append(error)
                continue
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    return found, [str(one.message) for one in said], endoscope.open(run.path)


def wrong_shape(x: Tensor) -> Tensor:
    return torch.mm(x, torch.ones(7, 7))


def wrong_write(x: Tensor) -> Tensor:
    return torch.ones(5).add_(x)


@pytest.mark.parametrize("function", [wrong_shape, wrong_write])
@pytest.mark.parametrize("has_source", [True, False])
def test_an_error_of_the_user_is_raised_and_is_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Callable[[Tensor], Tensor], has_source: bool
) -> None:
    """Also where the text of our own files cannot be read: they may be installed compiled only."""
    if not has_source:
        monkeypatch.setattr(linecache, "getline", lambda *_: "")
    errors, said, recording = trained(tmp_path, function)
    assert [type(error) for error in errors] == [RuntimeError] * 3
    assert said == []
    assert recording.gaps == []


def fails(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a mistake of ours")


@pytest.mark.parametrize("name", ["after_call", "before_call", "reads_of"])
def test_an_operation_runs_once_whenever_we_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    calls: list[int] = []

    def counted(x: Tensor) -> Tensor:
        calls.append(1)
        return x.add_(1.0).mul_(2.0)

    plain, _, _ = trained(tmp_path, counted)
    monkeypatch.setattr(Recorder, name, fails)
    found, said, recording = trained(tmp_path, counted)
    assert found == plain
    assert len(calls) == 6
    assert any("a mistake of ours" in text for text in said)
    assert any("a mistake of ours" in gap.reason for gap in recording.gaps)


def test_what_the_operation_returned_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path fails when the result is there: random numbers would differ if they were drawn again."""

    def noisy(x: Tensor) -> Tensor:
        return nn.functional.dropout(x, 0.5).relu()

    plain, _, _ = trained(tmp_path, noisy)
    monkeypatch.setattr(Recorder, "after_call", fails)
    found, said, _ = trained(tmp_path, noisy)
    assert found == plain
    assert any("a mistake of ours" in text for text in said)


def test_an_error_does_not_keep_tensors_alive(tmp_path: Path) -> None:
    import gc
    import weakref

    alive: list[weakref.ref[Tensor]] = []

    def broken(x: Tensor) -> Tensor:
        alive.append(weakref.ref(x))
        return wrong_shape(x)

    trained(tmp_path, broken, steps=1)
    gc.collect()
    assert alive[0]() is None
