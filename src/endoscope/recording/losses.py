"""Gradients, kept apart by loss.

A tensor hook sees the whole gradient of one backward pass, also where a tensor is used several times. It holds the
gradient, which costs nothing but memory.

On a parameter the hook runs before the gradient is added to `.grad`. If there is a `.grad` already, the incoming
gradient is held there, too: so gradients of several losses stay apart exactly. If there is none, autograd hands the
gradient over as the new `.grad` unless somebody else holds it, in which case it makes a copy. To spare that copy,
`.grad` itself is *borrowed* once it is there, and copied only when something is about to write into it:

    another backward pass    the hook sees that `.grad` is borrowed
    clipping, unscaling, …   heard by the recorder, which calls `before_write`
    whoever is not heard     optimizers, hooks, distributed training: `check` sees it, and drops what was borrowed. From
                             then on nothing is borrowed (`hold_all`)

`torch.autograd.grad` hands its results to the user and to nobody else. They are the gradients of a loss only inside of
a block that names it.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from endoscope.capture.regions import storage_key, version_of
from endoscope.recording.grad_hooks import GradHooks, numbers
from endoscope.schema.recording import GRADIENT

if TYPE_CHECKING:
    from endoscope.recording.meter import Meter

_grad_on = torch.is_grad_enabled


def _pass_on(where: str, error: BaseException) -> None:
    raise error


class LossGradients:
    """(slot or parameter, loss) -> what arrived there in this step. Parameters have negative slots."""

    def __init__(self, default: str = "loss", failed: Callable[[str, BaseException], None] | None = None) -> None:
        self.default = default
        self._failed = failed or _pass_on
        self._broken = False
        self.current: str | None = None  # the block `step.gradients(name)` around us
        self._running: str | None = None  # the loss whose `backward()` was heard and is running
        self.found: dict[tuple[int, str], list[Tensor]] = {}
        self.losses: dict[str, None] = {}  # in order of appearance
        self._borrowed: dict[int, tuple[tuple[int, str], int]] = {}  # slot -> place in `found`, version
        self._expected: dict[int, Tensor | None] = {}  # parameters that are about to get a `.grad`, or more of it
        self._versions: dict[int, int] = {}  # of `.grad`, when a gradient had arrived there
        self.hold_all = False  # rather than borrow
        self._handed_over = False  # `torch.autograd.grad` is running
        self._meter: Meter | None = None  # takes the gradients of the backward pass that runs
        self._hooks = GradHooks()
        self.lost: list[int] = []  # slots whose borrowed gradient was overwritten unheard

    @contextlib.contextmanager
    def named(self, name: str) -> Iterator[None]:
        before, self._running = self._running, name
        try:
            yield
        finally:
            self._running = before

    @contextlib.contextmanager
    def handed_over(self) -> Iterator[None]:
        """Around `torch.autograd.grad`."""
        before, self._handed_over = self._handed_over, True
        try:
            yield
        finally:
            self._handed_over = before

    def begin_pass(self, name: str, meter: Meter | None, keeps_graph: bool) -> str | None:
        """A backward pass of a loss was heard; returns what `end_pass` is told.

        Its gradients are complete when they arrive, unless another pass may come that adds to them; and they are needed
        no longer, unless those of another loss are to be compared with them. Then they can be measured at once.
        """
        before, self._running = self._running, name
        if meter is not None and not keeps_graph and not self.losses.keys() - {name}:
            self._meter = meter
        return before

    def end_pass(self, before: str | None) -> None:
        self._running, self._meter = before, None

    @property
    def name(self) -> str:
        return self._running or self.current or self.default

    # ---- hooks -----------------------------------------------------------------------------------

    def watch(self, slot: int, tensor: Tensor) -> None:
        if not tensor.requires_grad or not torch.is_grad_enabled():
            return
        with torch._C.DisableTorchFunction():
            try:
                self._hooks.on_gradient(tensor, partial(self._came, slot))
            except RuntimeError:  # autograd has given it up: a view whose base was overwritten
                return

    def watch_result(self, slot: int, tensor: Tensor, grad_fn: Any) -> None:
        """The same for an ordinary tensor that `grad_fn` has just made, while no function is heard."""
        if _grad_on():
            hooks: Any = tensor._backward_hooks
            if hooks is None:
                hooks = tensor._backward_hooks = OrderedDict()
                grad_fn._register_hook_dict(tensor)
            number = next(numbers)
            hooks[number] = partial(self._came, slot)
            self._hooks.places.append((hooks, number))

    def watch_parameter(self, slot: int, parameter: Tensor) -> None:
        self.watch_parameters([(slot, parameter)])

    def watch_parameters(self, parameters: Iterable[tuple[int, Tensor]]) -> None:
        """Those that learn, by their slots."""
        self._hooks.on_parameters(parameters, self._comes, self._is_there)

    # What autograd calls: whatever is usual in one function each, the rest below. A failure of ours must not end the
    # backward pass.

    def _came(self, slot: int, gradient: Tensor) -> None:
        """The gradient of a value."""
        try:
            meter, place = self._meter, (slot, self._running or self.current or self.default)
            if self._broken:
                return
            if self._handed_over or place in self.found:
                self._store(slot, gradient)
                return
            self.losses[place[1]] = None
            if meter is None or not meter.gradient(slot, GRADIENT + place[1], gradient):
                self.found[place] = [gradient]
        except Exception as error:
            self._break(error)

    def _comes(self, slot: int, parameter: Tensor, gradient: Tensor) -> None:
        """The gradient of a parameter, which will be added to `.grad`."""
        try:
            if parameter.grad is None and not self.hold_all and not self._handed_over:
                self._expected[slot] = None
            elif not self._broken:
                self._arrives(slot, parameter, gradient)
        except Exception as error:
            self._break(error)

    def _is_there(self, slot: int, parameter: Tensor) -> None:
        """A gradient was added to `.grad`."""
        try:
            gradient, place = parameter.grad, (slot, self._running or self.current or self.default)
            if (
                gradient is not None
                and self._expected.get(slot, gradient) is None
                and slot not in self._borrowed
                and place not in self.found
                and not self._handed_over
                and not self._broken
            ):
                del self._expected[slot]
                self.losses[place[1]] = None
                self.found[place] = [gradient]
                version = self._versions[slot] = version_of(gradient)
                self._borrowed[slot] = (place, version)
            elif not self._broken:
                self._arrived(slot, parameter)
        except Exception as error:
            self._break(error)

    def _break(self, error: Exception) -> None:
        """Sums that may lack a part are not kept."""
        self._broken = True
        self.let_go_of_gradients()
        self.losses.clear()
        self._failed("gradients", error)

    def _store(self, slot: int, gradient: Tensor) -> None:
        if self._handed_over and self.current is None:
            return
        name = self.name
        self.losses[name] = None
        if self._meter is None or not self._meter.gradient(slot, GRADIENT + name, gradient):
            self.found.setdefault((slot, name), []).append(gradient)

    def _arrives(self, slot: int, parameter: Tensor, gradient: Tensor) -> None:
        if self._handed_over:
            if self.current is not None:
                self._copy(slot)
                self._borrow(slot, gradient)
        elif parameter.grad is None and not self.hold_all:
            self._expected[slot] = None
        else:
            self._copy(slot)
            self._expected[slot] = gradient

    def _arrived(self, slot: int, parameter: Tensor) -> None:
        if slot not in self._expected:
            return
        gradient = self._expected.pop(slot)
        if gradient is not None:
            self._store(slot, gradient)
        elif parameter.grad is None:  # a hook of somebody else has used it up
            self.lost.append(slot)
            return
        else:
            self._copy(slot)  # `.grad` was cleared since, but whoever has it may write into it
            self._borrow(slot, parameter.grad)
        if parameter.grad is not None:
            self._versions[slot] = version_of(parameter.grad)

    def _borrow(self, slot: int, gradient: Tensor) -> None:
        """Hold what somebody else has, too."""
        self._store(slot, gradient)
        place = (slot, self.name)
        if len(self.found[place]) == 1:
            self._borrowed[slot] = (place, version_of(gradient))
        else:
            with torch.no_grad():
                self.found[place][-1] = gradient.detach().clone()

    # ---- what was borrowed -----------------------------------------------------------------------

    def _copy(self, slot: int) -> None:
        borrowed = self._borrowed.pop(slot, None)
        if borrowed is not None:
            place, version = borrowed
            gradient = self.found[place][0]
            if version_of(gradient) != version:
                del self.found[place]
                self.lost.append(slot)
                return
            with torch.no_grad(), torch._C.DisableTorchFunction():
                self.found[place][0] = gradient.detach().clone()

    def before_write(self, written: Iterable[Tensor]) -> None:
        """Somebody is about to overwrite these tensors."""
        if self._borrowed:
            keys = {storage_key(tensor) for tensor in written}
            for slot, (place, _) in list(self._borrowed.items()):
                if storage_key(self.found[place][0]) in keys:
                    self._copy(slot)

    def check(self) -> bool:
        """Whether what is borrowed is still what it was; what is not is dropped."""
        before = len(self.lost)
        for slot, (place, version) in list(self._borrowed.items()):
            if version_of(self.found[place][0]) != version:
                del self._borrowed[slot], self.found[place]
                self.lost.append(slot)
        return len(self.lost) == before

    def were_cleared(self, slot: int, gradient: Tensor) -> bool:
        """Whether `.grad` was set to zero since a gradient arrived there."""
        if version_of(gradient) == self._versions.get(slot, -1):
            return False
        with torch.no_grad(), torch._C.DisableTorchFunction():
            return gradient.layout is torch.strided and not bool(gradient.any())

    # ---- results ---------------------------------------------------------------------------------

    def total(self, slot: int, name: str) -> Tensor | None:
        """The gradient of a loss, to be read only."""
        found = self.found.get((slot, name))
        if not found:
            return None
        if len(found) == 1:
            return found[0]
        with torch.no_grad():
            total = found[0].detach().clone()
            for other in found[1:]:
                total += other.detach()
        return total

    def stop(self) -> None:
        """Take the hooks off."""
        self._hooks.take_off()

    def let_go(self) -> None:
        self.stop()
        self.let_go_of_gradients()

    def let_go_of_gradients(self) -> None:
        self._borrowed.clear()
        self._expected.clear()
        self.found.clear()
