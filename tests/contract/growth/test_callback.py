"""A callback for somebody's framework: one class that uses public names only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers.trainer_callback import CallbackHandler, TrainerCallback, TrainerControl, TrainerState

import endoscope


class EndoscopeCallback(TrainerCallback):  # type: ignore[misc]
    """For `transformers.Trainer(callbacks=[EndoscopeCallback("runs", when=100)])`."""

    def __init__(self, root: str | Path, **options: Any) -> None:
        self.root, self.options = root, options
        self.run: endoscope.Run | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.run = endoscope.Run(self.root, **self.options)
        self.run.watch(others["model"], others["optimizer"])

    def on_log(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        assert self.run is not None
        for name, value in others["logs"].items():
            self.run.metric(name, value)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        assert self.run is not None
        self.run.close()


def test_what_the_framework_trains_is_recorded(tmp_path: Path) -> None:
    """The events are sent in the order in which its trainer sends them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callback = EndoscopeCallback(tmp_path, trial="mine", when=1, strict=True)
    handler = CallbackHandler([callback], model, None, optimizer, None)
    state, control = TrainerState(), TrainerControl()
    handler.on_train_begin(None, state, control)
    losses = []
    for number in range(5):
        handler.on_step_begin(None, state, control)
        loss = model(torch.randn(16, 4)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        state.global_step = number + 1
        handler.on_step_end(None, state, control)
        losses.append(loss.item())
        handler.on_log(None, state, control, {"loss": losses[-1]})
    handler.on_train_end(None, state, control)

    recording = endoscope.open(tmp_path / "mine")
    assert recording.closed and not recording.gaps
    assert [step.number for step in recording.steps] == list(range(5))
    assert recording.metrics["loss"].values.tolist() == losses
    assert len(recording.series("0.weight", "norm", of="update")) == 5
    assert not model._forward_hooks and not model._forward_pre_hooks
