"""Modules of torch that are a single operation: once one was heard, its next calls need not be listened to.

    first call   heard like any other: the operation that it consists of becomes a `Known`
    next calls   nothing is heard inside; the node is written from what is known

Only for classes whose `forward` always does the same for the same settings, and only while nobody else can have a part
in the call: no hooks, no other mode, ordinary tensors. Everything else is heard as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.nn.modules import module as of_torch

from endoscope.capture.calls import Call
from endoscope.capture.functions import FunctionFacts

_CONVOLUTION = ("stride", "padding", "dilation", "groups", "padding_mode")
_POOLING = ("kernel_size", "stride", "padding", "ceil_mode")
#: Class -> what besides parameters and input decides about the operation.
SETTINGS: dict[type, tuple[str, ...]] = {
    nn.Linear: (),
    nn.Embedding: ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"),
    nn.LayerNorm: ("normalized_shape", "eps"),
    nn.GroupNorm: ("num_groups", "eps"),
    nn.Conv1d: _CONVOLUTION,
    nn.Conv2d: _CONVOLUTION,
    nn.Conv3d: _CONVOLUTION,
    nn.MaxPool2d: (*_POOLING, "dilation", "return_indices"),
    nn.AvgPool2d: (*_POOLING, "count_include_pad", "divisor_override"),
    nn.ReLU: ("inplace",),
    nn.SiLU: ("inplace",),
    nn.GELU: ("approximate",),
    nn.Tanh: (),
    nn.Sigmoid: (),
}
GLOBAL_HOOKS = (
    of_torch._global_forward_pre_hooks,
    of_torch._global_forward_hooks,
    of_torch._global_backward_pre_hooks,
    of_torch._global_backward_hooks,
)
HOOKS_OF_MODULE = itemgetter("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_stack_depth = torch._C._len_torch_function_stack


def own_code(function: Any, module: Any) -> Any:
    """The code of a function of torch; None if somebody has exchanged the function."""
    code = getattr(function, "__code__", None)
    return code if code is not None and code.co_filename == module.__file__ else None


class Known(NamedTuple):
    """The operation that a module consists of."""

    module: nn.Module
    forward: Any  # of its class
    parameters: tuple[tuple[str, Tensor | None, int, int], ...]  # name, parameter, its id and its slot
    settings: Any
    get_settings: Any
    facts: FunctionFacts
    func: Any
    args: Any  # without tensors
    kwargs: Any
    reads: list[int]  # slots of parameters; -1 where the input stands
    inputs: tuple[int, ...]  # where that is
    moves: bool  # perhaps to another device

    def node(self, call: int, read: Any, position: tuple[Any, int], slot: int, out: Tensor, grad_fn: Any) -> Any:
        """What the ear writes: fields of `records.Node`. Nobody asks how long the operations of a step took."""
        code, instruction = position
        reads = self.reads.copy()
        for place in self.inputs:
            reads[place] = read
        return (
            self.facts, self.func, self.args, self.kwargs, reads, slot, 1, 0, 0, 0, code, instruction, call, None, True,
            out.shape, out.dtype, out.device if self.moves else None, grad_fn.__class__,
        )  # fmt: skip


def all_hold(known: Iterable[Known], slots: Mapping[int, int] | None, written: Mapping[int, Any]) -> bool:
    """Whether a call of each of these modules is that operation and nothing else.

    `slots` tells which slot a tensor has now, if it can be another one; `written` has tensors that were written through
    others.
    """
    if _stack_depth() != 1 or any(GLOBAL_HOOKS):  # the one mode is our own
        return False
    for one in known:
        module = one.module
        attributes = module.__dict__
        if (
            any(HOOKS_OF_MODULE(attributes))
            or "forward" in attributes
            or "_call_impl" in attributes
            or module.__class__.forward is not one.forward
            or (one.get_settings is not None and one.get_settings(module) != one.settings)
        ):
            return False
        parameters = attributes["_parameters"]
        for name, parameter, identity, slot in one.parameters:
            if parameters.get(name) is not parameter or name in attributes:
                return False
            if slots is not None and parameter is not None and (slots.get(identity) != slot or identity in written):
                return False
    return True


def learned(
    entry: Call, nodes: list[Any], slots: Mapping[int, int], parameters: int, returned: int | None
) -> Known | None:
    """What a call that has just been heard consists of; None if it is not one operation that is always the same.

    `slots` tells which slot a tensor has. The first ones, `parameters` of them, are parameters and buffers; `returned`
    is the slot of the result.
    """
    module = entry.module
    node = nodes[-1]
    one = len(nodes) == entry.first_node + 1 and len(entry.entered) == 1 and returned == node[5] and len(node) > 15
    owned = [(name, p, id(p), slots.get(id(p), -1)) for name, p in module._parameters.items()]
    ordinary = all(p is None or (p.__class__ is Parameter and slot < parameters) for _, p, _, slot in owned)
    if not one or not ordinary:
        return None
    facts, func, args, kwargs, reads = node[:5]
    given, names = entry.entered[0], SETTINGS[module.__class__]
    if given < parameters or any(read.__class__ is not int or parameters <= read != given for read in reads):
        return None
    get = attrgetter(*names) if names else None
    own = [-1 if read == given else read for read in reads]
    inputs = tuple([place for place, read in enumerate(own) if read < 0])
    forward, settings = module.__class__.forward, get and get(module)
    operation = (facts, func, args, kwargs, own, inputs, facts.moves)
    return Known(module, forward, tuple(owned), settings, get, *operation)
