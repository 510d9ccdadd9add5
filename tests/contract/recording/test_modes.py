"""Modes of the user around parts of a step are entered and left as without us."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from torch import nn

from tests.contract.recording.helpers import (
    batches,
    mlp,
    numbers,
    recorded,
    same,
    sgd,
    simple_loop,
    strict_run,
    twice,
)

cross_entropy = nn.functional.cross_entropy


def modes() -> int:
    return torch._C._len_torch_function_stack()


class Mode(torch.overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


def place_mode(where: str, model: Any, optimizer: Any, x: Any, y: Any) -> int:
    """One step with a mode of the user's own around some of it; returns what the mode saw."""
    mode = Mode()
    optimizer.zero_grad()
    if where == "around forward":
        with mode:
            out = model(x)
        cross_entropy(out, y).backward()
        optimizer.step()
    elif where == "around forward and backward":
        with mode:
            cross_entropy(model(x), y).backward()
        optimizer.step()
    elif where == "around everything":
        with mode:
            cross_entropy(model(x), y).backward()
            optimizer.step()
    elif where == "from backward to update":
        loss = cross_entropy(model(x), y)
        with mode:
            loss.backward()
            optimizer.step()
    elif where == "a device":
        with torch.device("cpu"):
            out = model(x)
        cross_entropy(out, y).backward()
        optimizer.step()
    return mode.seen


PLACES = ["around forward", "around forward and backward", "around everything", "from backward to update", "a device"]


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("where", PLACES)
def test_modes_of_the_user_are_entered_and_left_as_without_us(tmp_path: Any, where: str, block: bool) -> None:
    model = mlp()
    optimizer = sgd(model)
    plain = [place_mode(where, model, optimizer, x, y) for x, y in batches(3)]
    expected = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            if block:
                with run.step():
                    seen = place_mode(where, model, optimizer, x, y)
                    depth = modes()
                assert depth <= 1, "ours, if any, and nobody else's"
            else:
                seen = place_mode(where, model, optimizer, x, y)
            assert modes() == 0
            assert (seen > 0) == (plain[0] > 0)
            expected.append(model[0].weight.grad.clone())
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2]
    for step, gradient in enumerate(expected):
        assert same(recording.tensor("0.weight", step, of="gradient"), gradient)


@pytest.mark.parametrize("block", [False, True])
def test_the_default_device_may_change_at_any_time(tmp_path: Any, block: bool) -> None:
    model = mlp()
    optimizer = sgd(model)
    try:
        with strict_run(tmp_path) as run:
            run.watch(model, optimizer)
            for n, (x, y) in enumerate(batches(4)):
                if n == 1:
                    torch.set_default_device("cpu")
                with run.step() if block else contextlib.nullcontext():
                    optimizer.zero_grad()
                    out = model(x)
                    if n == 2:
                        torch.set_default_device("meta")
                        assert torch.zeros(1).is_meta
                        torch.set_default_device(None)
                    cross_entropy(out, y).backward()
                    optimizer.step()
        assert modes() == 0
    finally:
        torch.set_default_device(None)
    assert numbers(recorded(run)) == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_detection_and_flop_counting(tmp_path: Any) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    def body(watch: Any) -> Any:
        model = mlp()
        optimizer = sgd(model)
        watch(model, optimizer)
        with torch.autograd.set_detect_anomaly(True), FlopCounterMode(display=False) as counter:
            losses = simple_loop(model, optimizer, 3)
        return losses, counter.get_total_flops()

    plain, watched = twice(body, tmp_path)
    assert plain == watched
