"""Gradients inside of a chain of known modules follow from that of its result, and need not be held.

    held       every result has a hook, and its gradient is kept until the step ends
    followed   only the last result has one; the others are computed if the step is kept, by the very functions that
               autograd calls, from what is held anyway: results, and copies of the parameters

A hook takes its time, and memory that is held cannot be used again by the backward pass. Computing takes a part of a
backward pass. So gradients are followed only after many steps in a row were decided against, and only in a chain whose
gradients, of a step in which they were held, come out the same bit for bit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

if TYPE_CHECKING:
    from endoscope.recording.cells import Cells
    from endoscope.recording.chains import Chain
    from endoscope.recording.known_calls import Known

#: Steps in a row that were decided against. One that is kept then costs a quarter of a plain step more, which is about
#: what so many steps save.
OFTEN = 64
#: Modules of a chain, what they have returned, and the versions of that; the last of it has a hook.
Followed = tuple[list["Known"], list[Tensor], list[int]]
NOBODY: frozenset[int] = frozenset()
_RELU, _LINEAR = nn.ReLU.forward, nn.Linear.forward
_gradient_through_relu = torch.ops.aten.threshold_backward.default
_saved_hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: True)


def can_be_followed(links: Sequence[Known]) -> bool:
    """Whether each of these modules, but for the first, is a function whose gradient is known here."""
    return len(links) > 1 and all(map(_is_understood, links[1:]))


def _is_understood(link: Known) -> bool:
    return (link.forward is _RELU and not link.settings) or link.forward is _LINEAR


def is_ordinary(result: Tensor) -> bool:
    """Whether autograd has saved what a chain was seen to compute: neither in another type, for autocast, nor what
    somebody's hooks have made of it."""
    return result.dtype is torch.float32 and result.ndim == 2 and _saved_hooks(False) is None


def has_hooks_of_others(tensor: Tensor) -> bool:
    """They may make something else of the gradient, which then goes on from there."""
    hooks: Any = tensor._backward_hooks
    return bool(hooks) and max(hooks) >= 0  # the numbers of ours are negative


@contextlib.contextmanager
def unseen_by_users() -> Iterator[None]:
    """No mode of anybody's sees what is computed meanwhile."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


def through(link: Known, gradients: list[Tensor], result: Tensor, version: int, parameters: Any) -> list[Tensor]:
    """The gradients of what went into a module, from those of what came out."""
    if link.forward is _RELU:
        return through_relu(gradients, result, version)
    weight = parameters.value_of(next(parameter for name, parameter, _, _ in link.parameters if name == "weight"))
    with torch.no_grad(), unseen_by_users(), torch.autocast(weight.device.type, enabled=False):
        return [torch.mm(gradient, weight) for gradient in gradients]


def through_relu(gradients: list[Tensor], result: Tensor, version: int) -> list[Tensor]:
    if result._version != version:
        raise RuntimeError("the result of a ReLU was overwritten before its gradient was looked at")
    with torch.no_grad(), unseen_by_users():
        return [_gradient_through_relu(gradient, result, 0) for gradient in gradients]


def comes_out_the_same(chain: Chain, results: list[Tensor], versions: list[int], cells: Cells) -> bool:
    """Whether gradients that were held in this step follow from each other, bit for bit."""
    gradients = cells.gathered(results[-1])
    if len(gradients) != 1:
        return False
    for number in range(len(results) - 1, 0, -1):
        if results[number - 1].grad_fn is None:  # nor has anything before it
            break
        gradients = through(chain.links[number], gradients, results[number], versions[number], cells.parameters)
        held = cells.gathered(results[number - 1])
        if number - 1 in chain.held and not (len(held) == 1 and _same_bits(held[0], gradients[0])):
            return False
    return True


def _same_bits(one: Tensor, other: Tensor) -> bool:
    same = one.dtype is other.dtype is torch.float32 and one.shape == other.shape
    return same and torch.equal(one.contiguous().view(torch.int32), other.contiguous().view(torch.int32))
