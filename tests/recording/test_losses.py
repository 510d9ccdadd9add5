"""Gradients of several losses, kept apart exactly: compared with `torch.autograd.grad` of each loss alone."""

from typing import Any

import torch
from torch import nn

from endoscope.recording.losses import LossGradients


class Watched:
    """A small model whose two parameters are watched."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Linear(4, 3)
        self.x = torch.randn(5, 4)
        self.gradients = LossGradients()
        for slot, parameter in enumerate(self.model.parameters()):
            self.gradients.watch_parameter(-1 - slot, parameter)

    def losses(self) -> tuple[Any, Any]:
        out = self.model(self.x)
        return out.square().mean(), out.abs().sum() + self.model.weight.sum()

    def expected(self, which: int) -> list[Any]:
        return list(torch.autograd.grad(self.losses()[which], list(self.model.parameters())))

    def backward(self, which: int, name: str) -> None:
        with self.gradients.named(name):
            self.losses()[which].backward()

    def check(self, which: int, name: str) -> None:
        for slot, expected in enumerate(self.expected(which)):
            assert torch.equal(self.gradients.total(-1 - slot, name), expected)


def test_one_loss_borrows_the_gradient_without_a_copy() -> None:
    watched = Watched()
    watched.backward(0, "a")
    assert watched.gradients.total(-1, "a").data_ptr() == watched.model.weight.grad.data_ptr()
    watched.check(0, "a")


def test_two_losses_stay_apart_although_grad_adds_up() -> None:
    watched = Watched()
    watched.backward(0, "a")
    watched.backward(1, "b")
    expected = [watched.expected(0), watched.expected(1)]
    watched.check(0, "a")
    watched.check(1, "b")
    assert torch.equal(watched.model.weight.grad, expected[0][0] + expected[1][0])


def test_gradients_that_were_there_before_do_not_count() -> None:
    watched = Watched()
    watched.model.weight.grad = torch.full((3, 4), 7.0)
    watched.model.bias.grad = torch.full((3,), 7.0)
    watched.backward(0, "a")
    watched.check(0, "a")


def test_gradients_cleared_between_two_losses() -> None:
    watched = Watched()
    watched.backward(0, "a")
    watched.model.zero_grad()
    watched.backward(1, "b")
    watched.model.zero_grad()
    watched.check(0, "a")
    watched.check(1, "b")


def test_one_loss_in_several_backward_passes_is_summed() -> None:
    for clear in (False, True):
        watched = Watched()
        watched.backward(0, "a")
        if clear:
            watched.model.zero_grad()
        watched.backward(0, "a")
        expected = watched.expected(0)[0]
        assert torch.equal(watched.gradients.total(-1, "a"), expected + expected)


def test_a_write_that_is_announced_is_survived() -> None:
    watched = Watched()
    watched.backward(0, "a")
    watched.gradients.before_write([watched.model.weight.grad.view(-1), watched.model.bias.grad])
    for parameter in watched.model.parameters():
        parameter.grad.zero_()
    watched.check(0, "a")
    assert watched.gradients.check()


def test_a_write_that_is_not_announced_is_noticed() -> None:
    watched = Watched()
    watched.backward(0, "a")
    watched.model.weight.grad.zero_()
    assert not watched.gradients.check()
    assert watched.gradients.lost == [-1]
    assert watched.gradients.total(-1, "a") is None
    assert watched.gradients.total(-2, "a") is not None


def test_hooks_go_away() -> None:
    watched = Watched()
    watched.gradients.stop()
    watched.backward(0, "a")
    assert not watched.gradients.found
    assert not watched.model.weight._backward_hooks
    assert not watched.model.weight._post_accumulate_grad_hooks
