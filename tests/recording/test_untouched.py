"""With and without a recording: the same losses, parameters, gradients, random stream and `requires_grad`."""

from typing import Any

import pytest
import torch

import endoscope
from tests.recording.scenarios import SCENARIOS, seeded

STEPS = 50


def outcome(name: str, watch: Any = None) -> Any:
    models: list[Any] = []

    def noted(model: Any, optimizer: Any) -> None:
        models.append(model)
        if watch is not None:
            watch(model, optimizer)

    with seeded():
        losses = SCENARIOS[name](noted, STEPS)
        random = torch.get_rng_state()
    state = [{**dict(m.named_parameters()), **dict(m.named_buffers())} for m in models]
    return losses, state, random, models


@pytest.mark.parametrize("keep", [0, 3])
@pytest.mark.parametrize("name", SCENARIOS)
def test_training_is_the_same_bit_for_bit(name: str, keep: int, tmp_path: Any) -> None:
    losses, state, random, _ = outcome(name)
    with endoscope.Run(tmp_path, trial=name, when=lambda info: info.number % 3 != 1, keep=keep, strict=True) as run:
        recorded = outcome(name, run.watch)
    assert recorded[0] == losses
    assert torch.equal(recorded[2], random)
    for plain, other in zip(state, recorded[1], strict=True):
        assert plain.keys() == other.keys()
        for key, tensor in plain.items():
            assert torch.equal(tensor, other[key]), key
            assert tensor.requires_grad == other[key].requires_grad
            assert (tensor.grad is None) == (other[key].grad is None)
            assert tensor.grad is None or torch.equal(tensor.grad, other[key].grad)


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_left_behind(name: str, tmp_path: Any) -> None:
    with endoscope.Run(tmp_path, trial=name, when=2, strict=True) as run:
        models = outcome(name, run.watch)[3]
    assert torch.overrides._get_current_function_mode_stack() == []
    for model in models:
        for module in model.modules():
            assert not module._forward_hooks and not module._forward_pre_hooks
        for parameter in model.parameters():
            assert not parameter._backward_hooks
