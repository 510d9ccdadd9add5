"""`endoscope.edits`: what can be done to the value of an operation while a model runs.

An edit is computed from the whole tensor; then only the chosen part (`units`, `positions`, `samples`) is taken over.
Gradients flow through it. Shape, dtype, device and memory layout stay what they were.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.change.edit import Edit, Moment, numbers_of, shape_of, told
from endoscope.capture.change.parts import Indices, Part, unit_dim
from endoscope.capture.views.result import Trace
from endoscope.errors import BadEdit, EndoscopeError

__all__ = ["Edit", "add", "apply", "mean", "noise", "patch_from", "replace", "scale", "zero"]


def zero(*, units: Indices | None = None, positions: Indices | None = None, samples: Indices | None = None) -> Edit:
    """Put zeros in its place."""
    part = Part.of(units, positions, samples)
    return Edit(_text("zero", part), lambda tensor, *_: torch.zeros_like(tensor), part, constant=True)


def mean(*, units: Indices | None = None, positions: Indices | None = None, samples: Indices | None = None) -> Edit:
    """Replace every unit by its mean over samples, positions and pixels: it says nothing about the input any more."""
    part = Part.of(units, positions, samples)
    return Edit(_text("mean", part), _mean, part)


def scale(
    factor: float | Tensor, *, units: Indices | None = None, positions: Indices | None = None,
    samples: Indices | None = None,
) -> Edit:  # fmt: skip
    """Multiply by a number, or by a tensor of factors that broadcasts."""
    part = Part.of(units, positions, samples)

    def compute(tensor: Tensor, moment: Moment, edit: Edit) -> Tensor:
        return torch.mul(tensor, _operand(factor, tensor, moment, edit))

    return Edit(_text("scale", part, factor), compute, part)


def add(
    term: float | Tensor, *, units: Indices | None = None, positions: Indices | None = None,
    samples: Indices | None = None,
) -> Edit:  # fmt: skip
    """Add a number, or a tensor that broadcasts: a steering vector."""
    part = Part.of(units, positions, samples)

    def compute(tensor: Tensor, moment: Moment, edit: Edit) -> Tensor:
        return torch.add(tensor, _operand(term, tensor, moment, edit))

    return Edit(_text("add", part, term), compute, part)


def replace(
    value: float | Tensor, *, units: Indices | None = None, positions: Indices | None = None,
    samples: Indices | None = None,
) -> Edit:  # fmt: skip
    """Put a number, or a tensor that broadcasts, in its place."""
    part = Part.of(units, positions, samples)

    def compute(tensor: Tensor, moment: Moment, edit: Edit) -> Tensor:
        found = _operand(value, tensor, moment, edit)
        return found.expand(tensor.shape) if isinstance(found, Tensor) else torch.full_like(tensor, found)

    return Edit(_text("replace", part, value), compute, part, arithmetic=False, constant=True)


def noise(
    std: float, seed: int = 0, *, units: Indices | None = None, positions: Indices | None = None,
    samples: Indices | None = None,
) -> Edit:  # fmt: skip
    """Add Gaussian noise. It depends on the seed, the operation and the forward pass, never on torch's generator."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise BadEdit(f"edits.noise(seed={seed!r}): a seed is a whole number, such as seed=0.")
    if isinstance(std, bool) or not isinstance(std, (int, float)) or not std >= 0:
        raise BadEdit(f"edits.noise(std={std!r}): use a number that is not negative, such as std=0.1.")
    part = Part.of(units, positions, samples)

    def compute(tensor: Tensor, moment: Moment, _: Edit) -> Tensor:
        # Drawn on the CPU, so that it is the same on every device.
        generator = torch.Generator().manual_seed(_seed_of(moment, seed))
        dtype = tensor.dtype if tensor.dtype.itemsize >= 4 else torch.float32
        drawn = torch.randn(tensor.shape, generator=generator, dtype=dtype) * std
        return tensor + drawn.to(tensor.device, tensor.dtype)

    return Edit(_text("noise", part, std, seed=seed), compute, part)


def patch_from(
    other: Trace, key: str | None = None, *, units: Indices | None = None, positions: Indices | None = None,
    samples: Indices | None = None,
) -> Edit:  # fmt: skip
    """Put the value that the same operation (or the one called `key`) had in another trace in its place."""
    if not hasattr(other, "recorder"):
        raise BadEdit(
            f"edits.patch_from({told(other)}) needs a trace to take values from: "
            "edits.patch_from(endoscope.trace(model, other_input))."
        )
    part = Part.of(units, positions, samples)
    text = _text("patch_from", part, f"<Trace of {other.name}>", *([] if key is None else [key]))

    def compute(tensor: Tensor, moment: Moment, edit: Edit) -> Tensor:
        return _value_in(other, moment.label if key is None else key, tensor, moment, edit)

    return Edit(text, compute, part, arithmetic=False, constant=True)


def apply(
    function: Callable[[Tensor], Tensor], *, units: Indices | None = None, positions: Indices | None = None,
    samples: Indices | None = None,
) -> Edit:  # fmt: skip
    """Any function of the tensor. Random numbers that it draws come from a stream of their own."""
    if not callable(function):
        raise BadEdit(f"edits.apply({told(function)}): a function of the tensor is needed.")
    part = Part.of(units, positions, samples)
    name = getattr(function, "__name__", None) or type(function).__name__

    def compute(tensor: Tensor, moment: Moment, _: Edit) -> Tensor:
        with _own_random_numbers(tensor, moment):
            return function(tensor.clone())  # it may change what it is given

    return Edit(_text("apply", part, name), compute, part, arithmetic=False)


def as_edit(change: Any, key: Any) -> Edit:
    """What was written behind a selector."""
    if isinstance(change, Edit):
        return change
    if any(change is maker for maker in _MAKERS):
        name = change.__name__
        raise BadEdit(f"edit={{{key!r}: edits.{name}}}: edits.{name} makes an edit. Call it: edits.{name}(...).")
    if callable(change):
        return apply(change)
    raise BadEdit(
        f"edit={{{key!r}: {told(change)}}} is not an edit. Use one of endoscope.edits, such as edits.zero() or "
        "edits.replace(value), or a function of the tensor."
    )


_MAKERS: tuple[Any, ...] = tuple(globals()[name] for name in __all__ if name != "Edit")


# ---- what they are made of -----------------------------------------------------------------------


def _mean(tensor: Tensor, moment: Moment, edit: Edit) -> Tensor:
    if tensor.dim() < 2:
        return tensor.mean().expand(tensor.shape)
    others = [dim for dim in range(tensor.dim()) if dim != unit_dim(tensor)]
    if all(tensor.shape[dim] == 1 for dim in others):
        raise BadEdit(
            f"{edit} of {moment.label} would change nothing: its shape is {tuple(tensor.shape)}, so there is "
            "one value for each unit. Run several samples at once, or use edits.replace(a mean taken elsewhere)."
        )
    return tensor.mean(dim=others, keepdim=True).expand(tensor.shape)


def _operand(value: Any, tensor: Tensor, moment: Moment, edit: Edit) -> Any:
    """A number as it is; a tensor in the dtype of the edited one, and in a shape that goes with it."""
    if not isinstance(value, (Tensor, int, float, complex)):
        raise BadEdit(f"{edit} of {moment.label}: use a number or a tensor, not {told(value)}.")
    given = value.dtype if isinstance(value, Tensor) else torch.result_type(torch.zeros((), dtype=torch.bool), value)
    if not torch.can_cast(given, tensor.dtype):
        raise BadEdit(
            f"{edit} of {moment.label} would replace {numbers_of(tensor.dtype)} by {numbers_of(given)}. Convert "
            f"the new value to {tensor.dtype}."
        )
    if not isinstance(value, Tensor):
        return value
    value = value.to(tensor.device, tensor.dtype)
    try:
        if torch.broadcast_shapes(value.shape, tensor.shape) == tensor.shape:
            return value
    except RuntimeError:
        pass
    fitted = edit.part.fill(value, tensor)
    if fitted is not None:
        return fitted
    chosen = edit.part.shape_in(tensor)
    where = f" or the chosen part of it, {chosen}" if chosen != tuple(tensor.shape) else ""
    raise BadEdit(
        f"{edit} of {moment.label}: a tensor of shape {tuple(value.shape)} does not fit into its shape "
        f"{tuple(tensor.shape)}{where}."
    )


def _value_in(other: Trace, key: str, tensor: Tensor, moment: Moment, edit: Edit) -> Tensor:
    try:
        op = other[key]
        values = op.outputs if hasattr(op, "outputs") else op.ops[0].outputs if len(op) == 1 else None
    except EndoscopeError as error:
        raise BadEdit(f"{edit} of {moment.label}: the other trace has no value for it. {error}") from error
    if values is None:
        raise BadEdit(f"{edit} of {moment.label}: {key!r} ran {len(op)} times there. Say which: {key}:1, {key}:2, …")
    if moment.output >= len(values) or shape_of(values[moment.output]) != shape_of(tensor):
        shapes = ", ".join(str(shape_of(value)) for value in values)
        raise BadEdit(
            f"{edit} of {moment.label}: its shape is {shape_of(tensor)}, in the other trace {shapes}. Patch between "
            "inputs of the same shape, or use a function of the tensor that takes what it needs."
        )
    value: Tensor = values[moment.output]
    return value.detach().to(tensor.device, tensor.dtype)


@contextlib.contextmanager
def _own_random_numbers(tensor: Tensor, moment: Moment) -> Iterator[None]:
    """The model must draw what it would have drawn without the edit."""
    state, seed = torch.get_rng_state(), _seed_of(moment, 0)
    cuda = torch.cuda.get_rng_state(tensor.device) if tensor.is_cuda else None
    try:
        torch.default_generator.manual_seed(seed)
        if cuda is not None:
            torch.cuda.manual_seed(seed)
        yield
    finally:
        torch.set_rng_state(state)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda, tensor.device)


def _seed_of(moment: Moment, seed: int) -> int:
    return zlib.crc32(f"{seed} {moment.label} {moment.output} {moment.forward}".encode()) + (seed % 2**31 << 32)


def _text(name: str, part: Part, *values: Any, **named: Any) -> str:
    shown = [value if isinstance(value, str) else told(value) for value in values]
    shown += [f"{key}={value}" for key, value in named.items()]
    return f"{name}({', '.join([*shown, *part.texts()])})"
