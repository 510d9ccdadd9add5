"""Compute a step once more, operation by operation, from what went into it.

    inputs, parameters, buffers, constants ─► every operation that was heard, in order ─► backward of a loss
                                             all of it inside of `tracing`: the result is a trace with every value

Nothing of the user's code runs again, only functions of torch, on copies: no tensor, gradient or random stream of the
training is touched. It costs as much as a traced step, so it is only done for a step in which something went wrong.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from endoscope.capture.data.nodes import Node, Read
from endoscope.capture.record.functions import UNINITIALISED
from endoscope.capture.trace import tracing
from endoscope.capture.views.result import Trace
from endoscope.recording.hooks.captured import Captured
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.structure.learned import Structure
from endoscope.recording.structure.tracer import StepRecorder
from endoscope.replay.operands import repeat
from endoscope.schema.ops import Kind

_LOW = (torch.float16, torch.bfloat16)
_LOOK_BACK = 6  # slots
_CASTS = frozenset("to half float double bfloat16 type type_as".split())
_SHARE = 0.5  # of the memory that is free may be used
_COPIES = 2  # values, and as much for their gradients


class _Lost(Exception):
    """A tensor that would be needed is not there any more."""


class SecondRun:
    """One step, computed again."""

    def __init__(self, captured: Captured, structure: Structure, recorder: StepRecorder) -> None:
        """`recorder` has the operations, of this step or of one that was built the same."""
        self.recorder = recorder
        self._captured = captured
        self._structure = structure
        self._values = self._values_of_this_step()
        data = ("input", "target")
        self._data = {item.slot for item in structure.items if item.kind in data and item.slot in self._values}
        if captured.tracer is not None:  # the operations are those of this very step: it is known how data were made
            self._data = {slot for slot in self._data if recorder.slot_node[slot] in recorder.sources}
        self._tensors: dict[int, Tensor] = {}  # slot of the step -> what stands for it now
        self._slots: dict[int, int] = {}  # slot of the step -> slot of the trace
        self.first: dict[int, int] = {}  # node of the trace -> node of the step
        self.lost: set[int] = set()  # nodes of the step that could not be computed again
        self.trace: Trace

    def _values_of_this_step(self) -> dict[int, Tensor]:
        """Slot of the recorder -> what this step holds there."""
        captured = self._captured
        slots = [entry.slot for entry in captured.entries] if captured.tracer is not None else self._structure.slots
        held = [(slot, captured.value(entry)) for entry, slot in zip(captured.entries, slots, strict=True) if slot >= 0]
        return {slot: value for slot, value in held if value is not None}

    def run(self, loss: str | None) -> SecondRun:
        """Compute everything; with a loss, its gradients, too."""
        state = self._captured.random_state
        with _random_state(state), torch.enable_grad(), tracing(None, gradients=True) as self.trace:
            self._know_sources()
            for number in range(len(self.recorder.nodes)):
                if number not in self.recorder.sources:
                    self._compute(number)
            self._join_outputs()
            if loss is not None:
                self._backward(loss)
        return self

    def value(self, slot: int) -> Tensor | None:
        """The value of a slot of the step, as it was before anything overwrote it."""
        again = self._slots.get(slot)
        return None if again is None else self.trace.store.tensor(again).detach()

    def slots_again(self, slots: Iterable[int]) -> list[int]:
        """The slots of the trace that stand for slots of the step."""
        return [self._slots[slot] for slot in slots if slot in self._slots]

    def _know(self, slot: int, tensor: Tensor) -> None:
        self._tensors[slot] = tensor
        again = self.trace.recorder.ids.get(id(tensor))
        if again is not None:
            self._slots[slot] = again

    # ---- what goes in ----------------------------------------------------------------------------

    def _know_sources(self) -> None:
        names = self._captured.names
        positions = {name: place for place, (name, _) in enumerate(names.parameters)}
        buffers = dict(names.buffers)
        recorder = self.trace.recorder
        for number, source in self.recorder.sources.items():
            slot = self.recorder.nodes[number].slot
            if source.kind is Kind.OUTPUT:
                continue
            with quiet():
                if source.kind is Kind.PARAMETER and source.name in positions:
                    tensor: Tensor | None = self._parameter(positions[source.name])
                elif source.kind is Kind.BUFFER and source.name in buffers:
                    tensor = buffers[source.name].clone()
                else:
                    tensor = self._held(slot)
            if tensor is not None:
                recorder.calls.named[id(tensor)] = (source.kind, source.name, tensor)
                self.first[recorder.slot_node[recorder.read(tensor)]] = number  # type: ignore[index]
                self._know(slot, tensor)
                del recorder.calls.named[id(tensor)]  # a name that is left over would become a source once more

    def _parameter(self, position: int) -> Tensor:
        """As it was before the update."""
        now = self._captured.names.tensors[position]
        before = self._captured.parameters.before.get(position, now)
        return before.detach().clone().requires_grad_(now.requires_grad)

    def _held(self, slot: int) -> Tensor | None:
        """A copy of what the step itself holds there."""
        value = self._values.get(slot)
        if value is None:
            value = self.recorder.dereference(self.recorder.objects[slot])
        if value is None or value.layout is not torch.strided:
            return None
        meta = self.recorder.metas.get(slot)
        return value.detach().clone().requires_grad_(meta is not None and meta.requires_grad)

    # ---- operations ------------------------------------------------------------------------------

    def _compute(self, number: int) -> None:
        raw = self.recorder.nodes[number]
        heard = self.trace.recorder
        before = len(heard.nodes)
        slots = raw.results
        is_data = bool(slots) and all(slot in self._data for slot in slots)
        try:
            found = [] if is_data else self._outputs_held(raw) if _is_the_users(raw) else self._results(number, raw)
        except Exception:  # it cannot be called again on values alone, or one of them is lost
            self.lost.add(number)
            return
        for place, slot in enumerate(slots):
            if slot in self._data:
                self._know(slot, self._data_of_this_step(slot))
            elif place < len(found):
                self._know(slot, found[place])
        made = [node for node in range(before, len(heard.nodes)) if is_data or node not in heard.sources]
        self.first.update(dict.fromkeys(made, number))

    def _outputs_held(self, raw: Node) -> list[Tensor]:
        """What the step itself computed, if that is held."""
        with quiet():
            found = [self._held(slot) for slot in raw.returned]
        there = [tensor for tensor in found if tensor is not None]
        if not there or len(there) < len(found):
            raise _Lost
        for tensor in there:
            self.trace.recorder.read(tensor)
        return there

    def _data_of_this_step(self, slot: int) -> Tensor:
        """Data that the step has made: in another step the same operations may have made it with other numbers."""
        with quiet():
            tensor = self._values[slot].detach().clone()
        self.trace.recorder.read(tensor)
        return tensor

    def _results(self, number: int, raw: Node) -> list[Tensor]:
        given = [self._seen(read, raw) for read in raw.reads]
        raw, waiting = raw._replace(context=raw.context or _autocast(raw, given)), iter(given)
        grad = self._had_gradient(raw, given)
        found = repeat(self.recorder, number, raw, lambda *_: next(waiting), copy=lambda tensor: tensor, grad=grad)
        if raw.facts.type in UNINITIALISED:
            with quiet(), torch.no_grad():
                for tensor in found:
                    tensor.zero_()
        return found

    def _seen(self, read: Read, raw: Node) -> Tensor:
        """What stands for an argument."""
        if read == ():  # only its memory is used
            return self._room(raw)
        tensor = self._tensors.get(read) if isinstance(read, int) else self._overwritten(read)
        if tensor is None:
            raise _Lost
        return tensor

    def _overwritten(self, slots: tuple[int, ...]) -> Tensor | None:
        """A tensor that was written through views: the oldest value tells which, unless it is a view's own."""
        first = self._tensors.get(slots[0])
        wrote = self.recorder.nodes[self.recorder.slot_node[slots[0]]].facts.written is not None
        return first._base if first is not None and wrote and first._base is not None else first

    def _room(self, raw: Node) -> Tensor:
        """What an operation overwrites unread is not noted: most often it is the tensor that was made just before."""
        meta = self.recorder.metas.get(raw.slot)
        if meta is None:
            raise _Lost
        for slot in range(raw.slot - 1, max(raw.slot - _LOOK_BACK, -1), -1):
            tensor = self._tensors.get(slot)
            if tensor is not None and tensor.shape == meta.shape and tensor.dtype == meta.dtype:
                facts = self.recorder.nodes[self.recorder.slot_node[slot]].facts
                if tensor._base is not None or facts.type in UNINITIALISED or facts.written is not None:
                    return tensor
        with quiet():
            return torch.zeros(meta.shape, dtype=meta.dtype, device=meta.device)

    def _had_gradient(self, raw: Node, tensors: list[Tensor]) -> bool:
        if self.recorder.calls.functions(raw.call):  # its own backward is not known: that of its operations instead
            return True
        if raw.slot in self.recorder.metas:
            return raw.grad
        # No gradient although an argument has one: autograd was off.
        return raw.grad_fn is not type(None) or not any(tensor.requires_grad for tensor in tensors)

    # ---- what comes out --------------------------------------------------------------------------

    def _join_outputs(self) -> None:
        """An output that several operations wrote into has a slot of its own."""
        for number, source in self.recorder.sources.items():
            raw = self.recorder.nodes[number]
            if source.kind is Kind.OUTPUT and raw.slot not in self._tensors and raw.reads:
                with contextlib.suppress(_Lost):
                    self._know(raw.slot, self._seen(raw.reads[0], raw))

    def _backward(self, name: str) -> None:
        slots = {i.slot for i in self._structure.items if i.kind == "loss" and name in (i.node, i.node.split(" ")[0])}
        for loss in (self._tensors.get(slot) for slot in slots):
            if loss is not None and loss.requires_grad:
                with quiet():
                    seed = torch.ones_like(loss.detach())
                torch.autograd.backward([loss], [seed], retain_graph=True)


def _is_the_users(raw: Node) -> bool:
    """Whether calling it again would touch something of the user's: a generator of random numbers, a module of
    TorchScript with its buffers, an operator with a body of its own."""
    is_own = getattr(raw.func, "namespace", "aten") not in ("aten", "prims", "prim")
    values = (*raw.args, *(raw.kwargs or {}).values())
    return raw.facts.opaque or is_own or any(isinstance(value, torch.Generator) for value in values)


def _autocast(raw: Node, given: list[Tensor]) -> tuple[tuple[str, torch.dtype], ...]:
    """The fast path of the recorder does not note autocast; a type that arguments alone would not give tells."""
    types, dtype = {tensor.dtype for tensor in given if tensor.is_floating_point()}, raw.dtype
    if dtype is None or not dtype.is_floating_point or raw.facts.type in _CASTS or not types or dtype in types:
        return ()
    low = next((one for one in (dtype, *types) if one in _LOW), None)
    is_asked_for = "dtype" in (raw.kwargs or {}) or any(value is dtype for value in raw.args)
    return () if low is None or is_asked_for else ((given[0].device.type, low),)


@contextlib.contextmanager
def _random_state(state: Tensor | None) -> Iterator[None]:
    """Random numbers as in the step, if that is known; the training's own streams stay where they are."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        if state is not None:
            torch.set_rng_state(state)
        yield


# ---- is there memory for it? ---------------------------------------------------------------------


def shortage(recorder: StepRecorder) -> str:
    """Why a second run is not attempted; "" if there is room for it."""
    needed: Counter[torch.device] = Counter()
    device = torch.device("cpu")
    for raw in recorder.nodes:
        device = raw.device or device  # most lie where the one before lay
        if raw.shape is not None:
            needed[device] += _COPIES * raw.shape.numel() * raw.dtype.itemsize
    for where, count in needed.items():
        free = _free_bytes(where)
        if free is not None and count > _SHARE * free:
            return f"a second run would take about {count / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free on {where}"
    return ""


def _free_bytes(device: torch.device) -> int | None:
    """None if it cannot be told."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):  # another system
        return None
