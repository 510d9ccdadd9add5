"""Call an operation of a trace again, on kept values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import torch

from endoscope.capture.data.arguments import map_arguments
from endoscope.capture.data.nodes import Draw, Node, Read
from endoscope.capture.patch.torch_private import DisableTorchFunctionSubclass, neg_view
from endoscope.capture.record.functions import overwritten
from endoscope.capture.record.leaves import tensors_in
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.regions import unwrapped
from endoscope.capture.views.op import Op
from endoscope.replay.batched import in_transforms, is_batched

Change = Callable[[int, torch.Tensor], torch.Tensor]  # slot, value -> value to use instead
Seen = Callable[[Read, torch.Tensor], torch.Tensor]  # what an argument reads, and what it was -> what it holds


class KeptValues(Protocol):
    """The values of the slots of one recorder."""

    @property
    def recorder(self) -> Recorder: ...

    def tensor(self, slot: int) -> torch.Tensor: ...


class MissingParent(Exception):
    """An argument was a tensor, but the trace does not say where it came from."""


def call_again(
    op: Op, change: Change | None = None, *, exact: bool = False, plain: Callable[[Any], Any] | None = None
) -> list[torch.Tensor]:
    """Results of the operation on the kept values of its parents; `change` may exchange values, `plain` numbers.

    With `exact` autograd is on or off as it was; without, it is off, which is faster and almost always the same.
    """
    raw, values = op._raw, op._trace.store

    def seen(read: Read, tensor: torch.Tensor) -> torch.Tensor:
        return value_seen(values, read, tensor, change)

    found = repeat(values.recorder, op.node, raw, seen, copy=_copy, grad=raw.grad and exact, plain=plain)
    return [tensor.detach() for tensor in found]


def repeat(
    recorder: Recorder,
    node: int,
    raw: Node,
    seen: Seen,
    *,
    copy: Callable[[torch.Tensor], torch.Tensor],
    grad: bool,
    plain: Callable[[Any], Any] | None = None,
) -> list[torch.Tensor]:
    """Call the function of a node once more. `seen` says what an argument holds, `copy` spares what is written to.

    What it returned comes first, then what it overwrote besides.
    """
    args, kwargs, written = _arguments(raw, seen, copy)
    if plain is not None:
        args, kwargs = tuple(map(plain, args)), {key: plain(value) for key, value in kwargs.items()}
    func = in_transforms(recorder, node, raw) if is_batched(recorder, raw) else raw.func
    draw = recorder.rng.get(node)
    with _surroundings(raw, grad, draw if draw and draw.state is not None else None), DisableTorchFunctionSubclass():
        out = func(*args, **kwargs)
    found = tensors_in(out)
    rest = [t for t in written if not any(t is f for f in found)]
    if len(rest) < raw.written:  # a subclass returned what it had overwritten as another object
        rest += [t for t in written if any(t is f for f in found)][: raw.written - len(rest)]
    return found + rest if found else rest


def _arguments(
    raw: Node, seen: Seen, copy: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[Any, Any, list[torch.Tensor]]:
    facts, reads = raw.facts, list(raw.reads)
    fresh = bool(facts.written and facts.written(raw.args, raw.kwargs or {})) or "out" in (raw.kwargs or {})

    def operand(tensor: torch.Tensor) -> torch.Tensor:
        if not reads:
            raise MissingParent
        read = reads.pop(0)
        if facts.type == "as_strided" and isinstance(read, int):
            read = (read,)  # it counts in the storage, so the value must lie where it lay
        value = seen(read, tensor)
        return copy(value) if fresh else value

    args, kwargs = map_arguments(tuple(raw.args), operand), map_arguments(raw.kwargs or {}, operand)
    if reads:
        raise MissingParent
    return args, kwargs, overwritten(facts, args, kwargs)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return tensor.detach().clone()


def value_seen(values: KeptValues, read: Read, tensor: torch.Tensor, change: Change | None) -> torch.Tensor:
    """What an argument held: one kept value, or several laid over each other in one piece of memory."""
    if isinstance(read, int):
        value = values.tensor(read).detach()
        return change(read, value) if change else value
    if not read:  # only its memory is used: whatever stands in it must not matter
        return _garbage_like(tensor)
    return compose(values, read, tensor, change)


def _garbage_like(tensor: torch.Tensor) -> torch.Tensor:
    filled = unwrapped(tensor).detach().clone()
    with contextlib.suppress(RuntimeError):
        filled.fill_(1)
    return filled


def compose(values: KeptValues, slots: Iterable[int], like: torch.Tensor, change: Change | None) -> torch.Tensor:
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


def _placed(memory: torch.UntypedStorage, like: torch.Tensor) -> torch.Tensor:
    view = torch.empty(0, dtype=like.dtype, device=like.device)
    view.set_(memory, like.storage_offset(), like.size(), like.stride())
    if like.is_conj():
        view = view.conj()
    return neg_view(view) if like.is_neg() else view


def _surroundings(raw: Node, grad: bool, random: Draw | None) -> contextlib.AbstractContextManager[object]:
    """Autograd, autocast and random numbers as they were."""
    if not raw.context and random is None and grad == torch.is_grad_enabled():
        return contextlib.nullcontext()
    stack = contextlib.ExitStack()
    stack.enter_context(torch.set_grad_enabled(grad))
    for device, dtype in raw.context or ():
        stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=False))
    if random is not None:
        stack.enter_context(_random_state(random))
    return stack


@contextlib.contextmanager
def _random_state(draw: Draw) -> Iterator[None]:
    generator, state = draw.generator, draw.state
    assert state is not None
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
