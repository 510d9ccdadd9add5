"""Parameters that need no hook, one by one and all at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from endoscope.recording.unhooked import Unhooked


def parameters(count: int = 3) -> list[tuple[int, Tensor]]:
    return [(-1 - i, nn.Parameter(torch.full((2,), float(i)))) for i in range(count)]


def after_a_pass(found: list[tuple[int, Tensor]]) -> Unhooked:
    """One that has seen a pass in which all of them got a gradient."""
    unhooked = Unhooked({})
    unhooked.know(found)
    assert not unhooked.relies_on_all()
    backward(found)
    unhooked.learn_from([(slot, p.grad, p.grad._version) for slot, p in reversed(found) if p.grad is not None])
    clear(found)
    return unhooked


def backward(found: list[tuple[int, Tensor]]) -> None:
    sum((parameter.square().sum() for _, parameter in found), torch.zeros(())).backward()


def clear(found: list[tuple[int, Tensor]]) -> None:
    for _, parameter in found:
        parameter.grad = None


def test_what_is_there_after_a_pass_is_found_all_at_once() -> None:
    found = parameters()
    unhooked = after_a_pass(found)
    assert unhooked.relies_on_all() and all(unhooked.relies_on(slot) for slot, _ in found)
    backward(found)
    assert not unhooked.relies_on_all()  # they have gradients, which the next pass would add to
    at_once, one_by_one = unhooked.arrived(unhooked.parameters), unhooked.arrived(list(found))
    assert [slot for slot, _, _ in at_once] == [-1, -2, -3]
    for (slot, gradient, version), twin in zip(at_once, one_by_one, strict=True):
        assert (slot, version) == (twin[0], twin[2]) and gradient is twin[1] is dict(found)[slot].grad


def test_whoever_has_none_is_not_relied_on_any_more() -> None:
    found = parameters()
    unhooked = after_a_pass(found)
    backward(found)
    found[1][1].grad = None
    assert [slot for slot, _, _ in unhooked.arrived(unhooked.parameters)] == [-1, -3]
    assert [unhooked.relies_on(slot) for slot, _ in found] == [True, False, True]
    clear(found)
    assert not unhooked.relies_on_all()


def test_whoever_was_written_into_is_never_relied_on_again() -> None:
    found = parameters()
    unhooked = after_a_pass(found)
    backward(found)
    assert found[0][1].grad is not None
    found[0][1].grad.mul_(2)
    assert len(unhooked.arrived(unhooked.parameters)) == 3
    backward(found)
    unhooked.learn_from([(slot, p.grad, p.grad._version) for slot, p in found if p.grad is not None])
    assert [unhooked.relies_on(slot) for slot, _ in found] == [False, True, True]


def test_hooks_and_frozen_parameters() -> None:
    found = parameters()
    unhooked = after_a_pass(found)
    handle = found[2][1].register_post_accumulate_grad_hook(lambda parameter: None)
    assert not unhooked.relies_on_all() and unhooked.have_hooks_of_others()
    handle.remove()
    assert unhooked.relies_on_all() and not unhooked.have_hooks_of_others()
    found[0][1].requires_grad_(False)
    assert not unhooked.relies_on_all()
