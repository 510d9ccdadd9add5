"""Losses of one captured step: the tensors that `backward` is called on, and what results were compared with.

an outermost call ended ─► outside.py looks at what follows ─► backward_begins ─► targets and the loss are held
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from endoscope.capture.record.leaves import argument_tensors
from endoscope.capture.record.source import position_outside
from endoscope.recording.hooks.gradients import DEFAULT
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.hooks.outside import Known, Op, OutsideMode, data_of, targets_of

if TYPE_CHECKING:
    from endoscope.recording.hooks.captured import Captured


class Losses:
    """What happens outside of the outermost calls of watched modules."""

    def __init__(self, captured: Captured) -> None:
        self._captured = captured
        self.thread = captured.thread
        self.calls = 0  # outermost calls that have ended
        self.address = ""  # of the last one
        self.mode = OutsideMode()
        self._made: list[Tensor] = []  # what outermost calls returned, so that their ids stay their own
        self._derived: set[Any] = set()  # ids, or slots of a traced step, of what came of that
        self._stranger: torch.nn.Module | None = None  # a module of nobody's that the mode does not look into
        self._buffers: set[int] = set()  # of criteria, such as weights of classes
        self._calls_before = 0  # outermost calls before the first forward pass after the last backward pass
        self._places: list[tuple[str, int, int]] = []  # where something may have been computed outside of modules
        self._looked_at = 0  # nodes of a traced step that are done with

    # ---- where the mode is on --------------------------------------------------------------------

    def begin(self) -> None:
        """The step begins outside of any call."""
        self._look_if_known()

    def outermost_begins(self) -> None:
        self.mode.stop()

    def outermost_ended(self, address: str, out: Any) -> None:
        self.calls += 1
        self.address = address
        self._captured.count_bytes()
        found: list[Tensor] = []
        argument_tensors(out, found) if isinstance(out, (Tensor, tuple, list, dict)) else None
        self._made += found
        self._look_if_known()

    def _look_if_known(self) -> None:
        captured, place = self._captured, self._place()
        self._places.append(place)
        if captured.tracer is None and place in captured.learned.outside:
            self.mode.start()

    def _place(self) -> tuple[str, int, int]:
        """Where in the step we are: after which outermost call and which backward pass."""
        return self.address, self.calls, self._captured.gradients.passes

    def stranger_begins(self, module: torch.nn.Module, args: Any) -> None:
        """A module that nobody watches: a criterion is looked into, a frozen teacher is not."""
        if self.mode.is_on and self._stranger is None:
            found: list[Tensor] = []
            argument_tensors(args, found)
            ids = {id(t) for t in self._made} | {id(e.who) for e in self._captured.entries if e.kind != "input"}
            if not any(id(t) in ids for t in found) and not self.mode.reaches(ids, found):
                self._stranger = module
                self.mode.stop()
            else:
                self._buffers.update(map(id, module.buffers()))

    def stranger_ended(self, module: torch.nn.Module) -> None:
        if self._stranger is module:
            self._stranger = None
            self.mode.start()

    def pause(self) -> None:
        self.mode.stop()

    def begin_part(self) -> None:
        """Another step may begin here: see `boundaries.py`."""
        self._calls_before = self.calls

    def restart(self) -> None:
        """It did."""
        self.calls -= self._calls_before
        self._calls_before = 0

    # ---- data and targets ------------------------------------------------------------------------

    def enters(self, tensors: list[Tensor]) -> None:
        """An outermost call begins with these tensors: where do they come from, if that was seen?"""
        if self.calls or not self._has_seen_operations():
            return
        ops, read = self._ops()
        keys = [self._key(t) for t in tensors]
        for key in data_of(ops, keys, self._known(read)):
            self._hold("data", "input", key, read(key))

    def backward_begins(self, tensors: Any) -> None:
        captured = self._captured
        captured.count_operations()
        self.mode.stop()
        losses = [t for t in ([tensors] if isinstance(tensors, Tensor) else tensors) if isinstance(t, Tensor)]
        name = captured.gradients.block
        if name is None:
            name = next((captured.losses[id(t)] for t in losses if id(t) in captured.losses), DEFAULT)
        try:
            with quiet():
                self._hold_targets()
                self._hold_losses(losses, name)
        finally:
            captured.gradients.begin_pass(name)

    def stopped(self) -> None:
        """Training ends before `backward`: the last number that was computed of what the model said is the loss.

        Without a watched model nothing says what is a loss; there it is the last number with a gradient if that is not
        finite, for then it was probably looked at.
        """
        captured = self._captured
        if captured.gradients.passes or not self._has_seen_operations():
            return
        captured.count_operations()
        self.mode.stop()
        with quiet():
            ops, read = self._hold_targets()
            last = (key for op in reversed(ops) for key in op.results)
            numbers = (read(key) for key in last if key in self._derived or not self._derived)
            loss = next((t for t in numbers if t is not None and t.numel() == 1 and t.requires_grad), None)
            if loss is not None and (self._derived or not math.isfinite(loss.item())):
                self._hold_losses([loss], DEFAULT)

    def backward_ends(self) -> None:
        self._captured.gradients.end_pass()
        self._look_if_known()

    def clipped(self, norm: Any, limit: Any) -> None:
        self._captured.gradients.clipping.append((norm, limit))

    def declared(self, tensor: Tensor, distributed: Tensor) -> None:
        self._captured.declare(tensor, distributed)

    def failed(self, where: str, error: BaseException) -> None:
        self._captured.failed(where, error)

    def _hold_targets(self) -> tuple[list[Op], Callable[[Any], Tensor | None]]:
        """Returns the operations in which they were found, and how their tensors are read."""
        if not self._has_seen_operations():
            return [], lambda key: None
        ops, read = self._ops()
        for key in targets_of(ops, self._derived, self._known(read)):
            tensor = read(key)
            if tensor is None or not tensor.dim():  # a weight of a loss is no target
                continue
            if tensor.grad_fn is not None and self._captured.ran_transformed and self._captured.tracer is None:
                continue  # what `jacrev` and the like return comes from the model, and hooks do not see how
            self._hold("target", "target", key, tensor)
        return ops, read

    def _hold(self, node: str, kind: str, key: int, tensor: Tensor | None) -> None:
        captured = self._captured
        if tensor is None:
            return
        if captured.tracer is None:
            captured.hold(captured.names.free(node), "", kind, tensor)
            return
        captured.hold(captured.names.free(node), "", kind, tensor, slot=key)
        captured.learned.outside.update(self._places)

    def _hold_losses(self, losses: list[Tensor], name: str) -> None:
        captured = self._captured
        for number, loss in enumerate(losses):
            known = captured.entry_of(loss)
            if known is not None and known.kind == "loss":
                continue
            node = self._node_of(loss, name)
            captured.hold(node, str(number) if len(losses) > 1 else "", "loss", loss)
            if (
                captured.tracer is not None and not captured.gradients.passes
            ):  # a step that ends before `backward` has a loss, too: see `stopped`
                captured.learned.outside.update(self._places[-1:])

    def _node_of(self, loss: Tensor, name: str) -> str:
        """`loss`, and `loss 2`, … for those that come from somewhere else; micro-batches come from the same place."""
        if name != DEFAULT:
            return name
        names = self._captured.loss_names
        place = (*position_outside(sys._getframe(5)), type(loss.grad_fn).__name__)
        if place not in names:
            names[place] = f"{DEFAULT} {len(names) + 1}" if names else DEFAULT
        return names[place]

    # ---- operations ------------------------------------------------------------------------------

    def _has_seen_operations(self) -> bool:
        return bool(self.mode.calls) or self._captured.tracer is not None

    def _ops(self) -> tuple[list[Op], Callable[[Any], Tensor | None]]:
        tracer = self._captured.tracer
        if tracer is not None:
            ops = tracer.outside_ops(self._looked_at, self._derived)
            self._looked_at = len(tracer.recorder.nodes)
            return ops, tracer.tensor_at
        ops, tensors = self.mode.take()
        self._derived |= {id(t) for t in self._made}
        self._derived |= {id(e.who) for e in self._captured.entries if e.kind not in ("input", "target")}
        return ops, tensors.get

    def _key(self, tensor: Tensor) -> Any:
        tracer = self._captured.tracer
        return id(tensor) if tracer is None else tracer.slot_known(tensor)

    def _known(self, read: Callable[[Any], Tensor | None]) -> Known:
        tracer, captured, names = self._captured.tracer, self._captured, self._captured.names
        if tracer is not None:
            return Known(lambda key: key in captured.slots or tracer.is_owned_slot(key), tracer.is_owned_slot)

        def is_owned(key: int) -> bool:
            if key in names.positions or key in names.buffer_ids or key in self._buffers:
                return True
            return isinstance(read(key), torch.nn.Parameter)

        return Known(lambda key: is_owned(key) or captured.is_captured(key), is_owned)

    def end(self) -> None:
        self.mode.stop()
        self.mode.calls.clear()
        self._made.clear()
        self._derived.clear()
