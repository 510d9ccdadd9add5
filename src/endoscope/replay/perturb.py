"""Does a parent matter? Exchange its value and see whether the result changes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from endoscope.capture.data.nodes import slots_of
from endoscope.capture.views.op import Op
from endoscope.replay.compare import same
from endoscope.replay.operands import call_again

#: Of some operands these functions only take shape, dtype or device.
SHAPE_OPERANDS = frozenset(
    """expand_as view_as reshape_as type_as to broadcast_tensors zeros_like ones_like empty_like full_like rand_like
    randn_like randint_like new_zeros new_ones new_full new_empty new_empty_strided new_tensor resize_as
    sum_to_size broadcast_to size unsafe_split split_with_sizes data""".split()
)
#: Functions that replace all or part of one operand.
REPLACING = frozenset(
    """setitem copy fill zero index_put index_copy index_fill masked_fill masked_scatter scatter slice_scatter
    select_scatter diagonal_scatter index_add put fill_diagonal set real imag where""".split()
)

Perturb = Callable[[torch.Tensor], torch.Tensor]


def excuse(op: Op, slot: int, baseline: list[torch.Tensor]) -> str | None:
    """None if the parent in `slot` matters; otherwise why it need not; empty text if there is no reason."""
    value = op._trace.store.tensor(slot)
    if value.numel() == 0:
        return "the parent has no elements"
    if not any(b.numel() for b in baseline):
        return "the result has no elements"
    if value.is_quantized:
        return "quantised values are not changed"
    for change in (*variants(value), *hints(op, slot)):
        if _changes(op, {slot: change}, baseline):
            return None
    if op.type in SHAPE_OPERANDS:
        return "only its shape, dtype or device is used"
    if op._raw.facts.opaque:
        return "the body cannot be seen; perhaps it uses only the shape"
    hidden = _hidden_by_others(op, slot)
    if hidden:
        return hidden
    if _hidden_by_numbers(op, slot):
        return "its other arguments hide it (a power of zero, a dimension of one)"
    if value.numel() == 1 and not any(b.is_floating_point() for b in baseline):
        return "a single element cannot be in another order"
    if op.type in REPLACING or op._raw.facts.written is not None:
        return "it is overwritten entirely"
    if all(b.dtype.is_floating_point and bool(b.isnan().all()) for b in baseline):
        return "the result is NaN whatever the parent is"
    return ""


def _changes(op: Op, changes: dict[int, Perturb], baseline: list[torch.Tensor]) -> bool:
    values = op._trace.store
    try:
        changed = {slot: change(values.tensor(slot).detach()) for slot, change in changes.items()}
    except Exception:  # the dtype has no such number: this says nothing about the operation
        return False
    try:
        found = call_again(op, lambda slot, value: changed.get(slot, value))
        return len(found) != len(baseline) or not all(map(same, baseline, found))
    except Exception:  # an index out of range, a matrix that cannot be factored: the operand does matter
        return True


def _hidden_by_others(op: Op, slot: int) -> str | None:
    """With other values of the other parents it would matter: masked, multiplied by zero, saturated here."""
    others = {other for read in op._raw.reads for other in slots_of(read)} - {slot}
    if not others:
        return None
    own = list(variants(op._trace.store.tensor(slot)))
    for attempt in range(5):
        changes: dict[int, Perturb] = {}
        for other in others:
            options = list(variants(op._trace.store.tensor(other)))
            changes[other] = options[min(attempt, len(options) - 1)]

        def exchange(number: int, value: torch.Tensor, changes: dict[int, Perturb] = changes) -> torch.Tensor:
            return changes[number](value) if number in changes else value

        try:
            baseline = call_again(op, exchange)
        except Exception:
            continue
        if any(_changes(op, {**changes, slot: change}, baseline) for change in own):
            return "the other operands hide it here (mask, multiplication by zero, saturation)"
    return None


def _hidden_by_numbers(op: Op, slot: int) -> bool:
    """With another number in place of one of its arguments (`x ** 0`, `x % 1`) the parent would matter."""
    own = list(variants(op._trace.store.tensor(slot)))

    def numbers(shift: Any) -> Callable[[Any], Any]:
        return lambda a: shift(a) if isinstance(a, (int, float)) and not isinstance(a, bool) else a

    shifts: list[Callable[[Any], Any]] = [lambda n: n + 1, lambda n: n + 2, lambda n: 0 * n, lambda n: n - 1]
    for shift in shifts:
        try:
            baseline = call_again(op, plain=numbers(shift))
            for change in own[:3]:
                found = call_again(op, functools.partial(_exchange_one, slot, change), plain=numbers(shift))
                if not all(map(same, baseline, found)):
                    return True
        except Exception:
            continue
    return False


def _exchange_one(slot: int, change: Perturb, number: int, value: torch.Tensor) -> torch.Tensor:
    return change(value) if number == slot else value


def variants(value: torch.Tensor) -> Iterator[Perturb]:
    """Ways to change a tensor, the most likely to show first."""
    if value.layout is not torch.strided or value.is_nested:
        yield lambda t: t * 1.7 if t.is_floating_point() or t.is_complex() else t * 2
        return
    if value.dtype is torch.bool:
        yield torch.logical_not
        yield _constant(True)
        yield _constant(False)
    elif value.is_floating_point() or value.is_complex():
        yield _affine
        yield _random
        yield lambda t: (t.float() if _narrow(t) else t).neg().mul(31.0).sub(5.0).to(t.dtype)
        yield _constant(0)
        yield _constant(float("nan"))
        yield _constant(float("inf"))
    else:
        yield _shuffled
        yield lambda t: t + 1
        yield lambda t: -t - 1
        yield _constant(0)
        yield lambda t: t + 100_003 if t.dtype.itemsize > 2 else t + 77


def hints(op: Op, slot: int) -> Iterator[Perturb]:
    """Values that make comparisons come out otherwise: the numbers and tensors it is compared with."""
    value = op._trace.store.tensor(slot)
    if value.layout is not torch.strided or value.is_nested or value.dtype is torch.bool:
        return
    for number in (*op.function.plain_args, *op.function.plain_kwargs.values()):
        if isinstance(number, (int, float)):
            for near in (number, number - 1, number + 1):
                yield _constant(near)
    for read in op._raw.reads:
        if isinstance(read, int) and read != slot:
            other = op._trace.store.tensor(read)
            if not other.is_nested and other.shape == value.shape and other.dtype == value.dtype:
                yield functools.partial(_instead, other)
    if not value.is_complex():
        yield _ramp
        yield lambda t: _ramp(t).flip(tuple(range(t.dim())))


def _instead(other: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return other


def _ramp(value: torch.Tensor) -> torch.Tensor:
    return torch.arange(value.numel(), device=value.device).remainder(97).reshape(value.shape).to(value.dtype)


def _narrow(tensor: torch.Tensor) -> bool:
    return tensor.dtype.itemsize < 2 and tensor.is_floating_point()


def _affine(value: torch.Tensor) -> torch.Tensor:
    if value.is_complex():
        return value.mul(-1.37).add(0.61 + 0.43j)
    return (value.float() if _narrow(value) else value).mul(-1.37).add(0.61).to(value.dtype)


def _constant(number: float | bool) -> Perturb:
    return lambda t: torch.full_like(t.float() if _narrow(t) else t, number).to(t.dtype)


def _random(value: torch.Tensor) -> torch.Tensor:
    """Other numbers of the same size, from a generator of our own."""
    generator = torch.Generator(device=value.device).manual_seed(value.numel())
    wide = torch.float32 if value.dtype.itemsize < 4 else value.dtype
    noise = torch.rand(value.shape, generator=generator, device=value.device, dtype=_real(wide))
    detached = value.detach()
    peak = detached.abs().max() if not _narrow(value) else detached.float().abs().max()
    size = float(peak) if bool(torch.isfinite(peak)) and float(peak) > 0 else 1.0
    noise = noise.sub(0.5).mul(2.0 * size + 0.1)
    return (
        torch.complex(noise, noise.flip(0) if noise.dim() else -noise) if value.is_complex() else noise.to(value.dtype)
    )


def _real(dtype: torch.dtype) -> torch.dtype:
    return {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype, dtype)


def _shuffled(value: torch.Tensor) -> torch.Tensor:
    """The same integers in another order: valid as an index where the original was."""
    flat = value.reshape(-1)
    return flat.roll(1).reshape(value.shape)
