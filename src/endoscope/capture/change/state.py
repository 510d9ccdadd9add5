"""What a run of a target may change, to be put back: random states, parameters, buffers, attributes, inputs.

Attributes are saved with the contents of plain containers (one level), because caches and hook tables live there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import torch

from endoscope.capture.change.randomness import random_states, set_random_states
from endoscope.capture.record.fingerprint import fingerprint
from endoscope.capture.record.leaves import named_leaves
from endoscope.capture.record.regions import is_uninitialised, storage_key, version_of

_CONTAINERS = (dict, list, set, OrderedDict)


class State:
    """A snapshot of everything a target can be expected to touch."""

    def __init__(self, target: Any, args: Any, kwargs: Any, *, copy_parameters: bool = True) -> None:
        """Without `copy_parameters` somebody must call `about_to_write` before anything is written."""
        self.modules = modules_of(target)
        own = [m for m in self.modules if not isinstance(m, torch.jit.ScriptModule)]
        self._attributes = [(m, dict(m.__dict__)) for m in own]
        self._contents = [
            (value, value.copy()) for _, attributes in self._attributes for value in attributes.values()
            if type(value) in _CONTAINERS
        ]  # fmt: skip
        self.inputs = [t for _, t in named_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        self.buffers = [b for m in self.modules for b in m._buffers.values() if b is not None]
        self.parameters = list({id(p): p for m in own for p in m._parameters.values() if p is not None}.values())
        copied = [*self.inputs, *self.buffers, *(self.parameters if copy_parameters else ())]
        self._tensors = [_Saved(t) for t in copied if _can_be_copied(t)]
        self._uncopied: dict[int | None, list[torch.Tensor]] = {}  # by memory; parameters can be very large
        for parameter in () if copy_parameters else self.parameters:
            if _can_be_copied(parameter):
                self._uncopied.setdefault(storage_key(parameter), []).append(parameter)
        self.leaves = [t for t in [*self.parameters, *self.inputs] if t.requires_grad and t.is_leaf]
        self._gradients = [(t, t.grad) for t in self.leaves]
        self._generators = _generators(own)
        self._random = random_states()

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [saved.tensor for saved in self._tensors]

    def about_to_write(self, tensors: Iterable[torch.Tensor]) -> None:
        """Copy the parameters that share memory with these tensors, if that has not been done."""
        for tensor in tensors:
            self._tensors += [_Saved(parameter) for parameter in self._uncopied.pop(storage_key(tensor), ())]

    def restore(self) -> None:
        for value, contents in self._contents:
            value.clear()
            value.extend(contents) if isinstance(value, list) else value.update(contents)
        for module, attributes in self._attributes:
            module.__dict__.clear()
            module.__dict__.update(attributes)
        for saved in self._tensors:
            saved.restore()
        for tensor, gradient in self._gradients:
            tensor.grad = gradient
        for generator, state in self._generators:
            generator.set_state(state)
        set_random_states(self._random)

    def drop_gradients(self) -> None:
        for tensor, _ in self._gradients:
            tensor.grad = None


class _Saved:
    """One tensor and its value."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self._version, self._print = version_of(tensor), fingerprint(tensor)
        with torch.no_grad():
            self._value = tensor.detach().clone()

    def restore(self) -> None:
        tensor = self.tensor
        # Not by version alone: batch norm and fused optimizers write without counting.
        if self._version >= 0 and version_of(tensor) == self._version and fingerprint(tensor) == self._print:
            if self._print is not None or tensor.numel() > 100_000:
                return
        with torch.no_grad(), torch.inference_mode(tensor.is_inference()):
            if tensor.shape != self._value.shape:
                tensor.detach().resize_(self._value.shape)
                tensor.data = self._value.clone()
            else:
                tensor.detach().copy_(self._value)


def _can_be_copied(tensor: torch.Tensor) -> bool:
    """Elements that share a place, as after `expand`, cannot be written at all, neither by the target nor back."""
    if is_uninitialised(tensor) or tensor.device.type == "meta":
        return False
    if tensor.layout is not torch.strided or tensor.is_nested:
        return True
    return not any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _generators(modules: list[torch.nn.Module]) -> list[tuple[torch.Generator, torch.Tensor]]:
    found = [v for m in modules for v in m.__dict__.values() if isinstance(v, torch.Generator)]
    return [(generator, generator.get_state()) for generator in found]


def modules_of(target: Any) -> list[torch.nn.Module]:
    """The modules a target consists of, or that a function refers to."""
    inner = getattr(target, "_orig_mod", target)
    if isinstance(inner, torch.nn.Module):
        return list(inner.modules())
    owner = getattr(inner, "__self__", None)
    found = [owner] if isinstance(owner, torch.nn.Module) else []
    found += [value for value in names_seen_by(inner).values() if isinstance(value, torch.nn.Module)]
    return [part for module in found for part in module.modules()]


def names_seen_by(function: Any) -> dict[str, Any]:
    """Modules and tensors that a function reaches by name: globals it mentions, and its closure."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    space = getattr(function, "__globals__", {})
    names = {name: space[name] for name in code.co_names if name in space}
    for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # a cell that is still empty
            continue
    return {name: value for name, value in names.items() if isinstance(value, (torch.nn.Module, torch.Tensor))}
