"""Call an operation of a trace again, on kept values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from endoscope.capture.leaves import argument_tensors, map_arguments
from endoscope.capture.op import Op
from endoscope.capture.regions import unwrapped

Change = Callable[[int, torch.Tensor], torch.Tensor]  # slot, value -> value to use instead


class MissingParent(Exception):
    """An argument was a tensor, but the trace does not say where it came from."""


def call_again(
    op: Op, change: Change | None = None, *, exact: bool = False, plain: Callable[[Any], Any] | None = None
) -> list[torch.Tensor]:
    """Results of the operation on the kept values of its parents; `change` may exchange values, `plain` numbers.

    With `exact` autograd is on or off as it was; without, it is off, which is faster and almost always the same.
    """
    raw = op._raw
    args, kwargs, written = _arguments(op, change)
    if plain is not None:
        args, kwargs = tuple(map(plain, args)), {key: plain(value) for key, value in kwargs.items()}
    generator = op._trace.recorder.rng.get(op.node)
    with _surroundings(raw, exact), _random_state(generator), torch._C.DisableTorchFunctionSubclass():
        out = _in_transforms(op, raw.func)(*args, **kwargs) if _batched(op) else raw.func(*args, **kwargs)
    found: list[torch.Tensor] = []
    argument_tensors(out, found)
    rest = [t for t in written if not any(t is f for f in found)]
    return [t.detach() for t in (found + rest if found else rest)]


def _arguments(op: Op, change: Change | None) -> tuple[Any, Any, list[torch.Tensor]]:
    raw, values = op._raw, op._trace.values
    facts, reads = raw.facts, list(raw.reads)
    fresh = bool(facts.written and facts.written(raw.args, raw.kwargs or {})) or "out" in (raw.kwargs or {})

    def operand(tensor: Any) -> Any:
        if not reads:
            raise MissingParent
        read = reads.pop(0)
        if facts.type == "as_strided" and isinstance(read, int):
            read = (read,)  # it counts in the storage, so the value must lie where it lay
        value = value_seen(values, read, tensor, change)
        return _copy(value) if fresh else value

    args, kwargs = map_arguments(tuple(raw.args), operand), map_arguments(raw.kwargs or {}, operand)
    if reads:
        raise MissingParent
    written = [t for t in facts.written(args, kwargs) if isinstance(t, torch.Tensor)] if facts.written else []
    if kwargs.get("out") is not None:
        written = []
        argument_tensors(kwargs["out"], written)
    return args, kwargs, written


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return tensor.detach().clone()


def value_seen(values: Any, read: Any, tensor: torch.Tensor, change: Change | None) -> torch.Tensor:
    """What an argument held: one kept value, or several laid over each other in one piece of memory."""
    if isinstance(read, int):
        if read < 0:  # only its memory is used: whatever stands in it must not matter
            return _garbage_like(tensor)
        value = values.tensor(read).detach()
        return change(read, value) if change else value
    return compose(values, read, tensor, change)


def _garbage_like(tensor: torch.Tensor) -> torch.Tensor:
    filled = tensor.detach().clone()
    with contextlib.suppress(RuntimeError):
        filled.fill_(1)
    return filled


def compose(values: Any, slots: Any, like: torch.Tensor, change: Change | None) -> torch.Tensor:
    """Write the kept values of `slots` (oldest first) where their tensors lie, and look at `like`'s place."""
    like, objects = unwrapped(like), values.recorder.objects
    memory = torch.zeros(like.untyped_storage().nbytes(), dtype=torch.uint8, device=like.device).untyped_storage()
    with torch.no_grad():
        for slot in slots:
            value = values.tensor(slot).detach()
            if change:
                value = change(slot, value)
            place = _placed(memory, unwrapped(objects[slot]))
            once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in place.stride())
            place[once].copy_(value[once])  # an expanded tensor has one place for many elements
        return _placed(memory, like)


def _placed(memory: Any, like: torch.Tensor) -> torch.Tensor:
    view = torch.empty(0, dtype=like.dtype, device=like.device)
    view.set_(memory, like.storage_offset(), like.size(), like.stride())
    if like.is_conj():
        view = view.conj()
    return torch._neg_view(view) if like.is_neg() else view


@contextlib.contextmanager
def _surroundings(raw: Any, exact: bool) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.set_grad_enabled(raw.grad and exact))
        for device, dtype in raw.context or ():
            stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=False))
        yield


@contextlib.contextmanager
def _random_state(entry: Any) -> Iterator[None]:
    if entry is None:
        yield
        return
    generator, state = entry
    if generator is None:
        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            yield
        finally:
            torch.set_rng_state(now)
    else:
        now = generator.get_state()
        generator.set_state(state)
        try:
            yield
        finally:
            generator.set_state(now)


# ---- inside vmap ---------------------------------------------------------------------------------------------------


def batch_levels(tensor: torch.Tensor) -> dict[int, int]:
    """Level of each `vmap` around a tensor -> the dimension it hides."""
    functorch = torch._C._functorch
    levels: dict[int, int] = {}
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            levels[functorch.maybe_get_level(tensor)] = functorch.maybe_get_bdim(tensor)
        tensor = functorch.get_unwrapped(tensor)
    return levels


def _tensors(op: Op) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    argument_tensors(op._raw.args, found)
    argument_tensors(op._raw.kwargs or {}, found)
    return found


def _batched(op: Op) -> bool:
    objects = op._trace.recorder.objects
    return any(batch_levels(t) for t in [*_tensors(op), *(objects[s] for s in op.slots)])


def _in_transforms(op: Op, func: Any) -> Any:
    """The function inside as many `vmap`s as were around the original call."""
    objects = op._trace.recorder.objects
    inputs = [batch_levels(t) for t in _tensors(op)]
    outputs = [batch_levels(objects[s]) for s in op.slots]
    levels = sorted({level for found in inputs + outputs for level in found})

    def call(*args: Any, **kwargs: Any) -> Any:
        tensors: list[torch.Tensor] = []
        argument_tensors(args, tensors)
        argument_tensors(kwargs, tensors)

        def inner(*given: torch.Tensor) -> Any:
            queue = list(given)
            new_args = map_arguments(args, lambda _: queue.pop(0))
            new_kwargs = map_arguments(kwargs, lambda _: queue.pop(0))
            out = func(*new_args, **new_kwargs)
            found: list[torch.Tensor] = []
            argument_tensors(out, found)
            written = op._raw.facts.written
            return tuple(found or (written(new_args, new_kwargs) if written else ()))

        wrapped: Any = inner
        for level in reversed(levels):
            dims_in = tuple(found.get(level) for found in inputs)
            dims_out = tuple(found.get(level) for found in outputs)
            if all(d is None for d in dims_in):
                continue
            vmap: Any = torch.func.vmap
            wrapped = vmap(wrapped, in_dims=dims_in, out_dims=dims_out, randomness="different")
        return wrapped(*tensors)

    return call
