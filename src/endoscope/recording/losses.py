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

Parameters get their hooks when the first backward pass begins (`engine_starts`), not before: many a step is decided
against when its loss is known. A parameter that has no `.grad` then needs only the hook that sees it arrive there, and
what that means is thought about later (`drain`). If a pass is not announced, the gradient of a value, or of the model's
result, tells of it.

Values of a step whose recorder postpones everything have no slots yet: what comes for them waits in `cells.py` until
they are watched.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from endoscope.capture.observers import passes_are_heard
from endoscope.capture.regions import storage_key, version_of
from endoscope.recording.cells import Cells
from endoscope.recording.following import NOBODY
from endoscope.recording.grad_hooks import GradHooks, numbers
from endoscope.recording.unhooked import Arrival, Unhooked
from endoscope.schema.recording import GRADIENT

if TYPE_CHECKING:
    from endoscope.recording.meter import Meter

_grad_on = torch.is_grad_enabled


def _pass_on(where: str, error: BaseException) -> None:
    raise error


class LossGradients:
    """(slot or parameter, loss) -> what arrived there in this step. Parameters have negative slots."""

    def __init__(
        self,
        default: str = "loss",
        failed: Callable[[str, BaseException], None] | None = None,
        reliable: dict[int, int] | None = None,
    ) -> None:
        self.default = default
        self.unhooked = Unhooked({} if reliable is None else reliable)
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
        self.hooks = GradHooks()
        self._arrivals: list[Arrival] = []
        self._unseen: list[tuple[int, Tensor]] = []  # parameters that are looked at when the pass has ended
        self._seen_after: set[int] = set()  # parameters with a hook that sees a gradient in `.grad`
        self._seen_before: set[int] = set()  # those with a hook that sees it come, too
        self._depth = 0  # of backward passes that run inside of each other
        self._passes = 0  # that have begun
        self.before_pass: Callable[[bool], None] | None = None  # told when one begins, and whether chains are followed
        self.following: Set[int] = NOBODY  # chains whose gradients follow from each other
        self.cells = Cells()
        self.cells.failed = partial(self._failed, "gradients")
        self.looks_back = False  # what is watched now was there before the passes of this step
        self._pass_name: str | None = None  # the loss of the pass that began last; None if nobody is to have it
        self.may_have_come = False  # something, since it was drained
        self.is_stopped = False
        self.alone = True  # nobody else has hooks on parameters, which could write into them unheard
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

    def begin_pass(self, name: str, meter: Meter | None) -> str | None:
        """A backward pass of a loss was heard; returns what `end_pass` is told.

        There is a meter if its gradients are complete when they arrive, because no other pass may come that adds to
        them. They are needed no longer, unless those of another loss are to be compared with them: then they can be
        measured at once.
        """
        if self.may_have_come:
            self.drain()
        before, self._running = self._running, name
        if meter is not None and not self.losses.keys() - {name}:
            self._meter = meter
        return before

    def end_pass(self, before: str | None) -> None:
        self._running, self._meter = before, None

    @property
    def name(self) -> str:
        return self._running or self.current or self.default

    # ---- backward passes -------------------------------------------------------------------------

    def engine_starts(self, limited: bool = False) -> None:
        """A backward pass begins, perhaps inside of another one; `limited` if it is for some leaves only."""
        self._depth += 1
        if self._unseen or self._arrivals:
            self._look_at_unseen()
        self._prepare(limited)

    def engine_stopped(self, failed: bool = False) -> None:
        if failed:
            self.cells.unfollow()
        if self._unseen or self._arrivals:
            self._look_at_unseen()
        self._depth -= 1
        if self._depth:  # what comes from now on belongs to the pass around it
            self.drain()
            self._pass_name = self._name_of_pass()

    def _prepare(self, limited: bool = True) -> None:
        """It may be `limited` if nobody has said that it is not."""
        if self._broken or self.is_stopped:
            return
        try:
            with torch._C.DisableTorchFunction():
                if self.may_have_come:
                    self.drain()
                handed_over = self._handed_over and self.current is None  # `_name_of_pass`, in the same function
                self._pass_name = None if handed_over else self._running or self.current or self.default
                self.may_have_come = True
                self._hook_parameters()
                first, self._passes = not self._passes and self._depth == 1, self._passes + 1
                if not first and self._depth <= 1:
                    self.cells.settle(self.hooks.places)
                if self.before_pass is not None:
                    # Hooks on parameters may write into them before their gradients are looked at.
                    follows = bool(self.following) and first and not limited
                    self.before_pass(follows and (self.alone or not self.unhooked.have_hooks_of_others()))
        except Exception as error:
            self._break(error)

    def _look_at_unseen(self) -> None:
        """Gradients that are in `.grad` now; and who can be relied on to have it there in the next passes."""
        try:
            with torch._C.DisableTorchFunction():
                if self._arrivals:
                    self.unhooked.learn_from(self._arrivals)
                unseen, self._unseen = self._unseen, []
                self._arrivals += self.unhooked.arrived(unseen)
        except Exception as error:
            self._break(error)

    def _name_of_pass(self) -> str | None:
        return None if self._handed_over and self.current is None else self.name

    def _hook_parameters(self) -> None:
        """One that has no `.grad` is looked at when it has got one; of others the gradient must be seen coming.

        Those that had their gradient when an earlier pass had ended are looked at then, and need no hook at all.
        """
        alone = self._depth == 1 and not self.hold_all and not self._handed_over
        unhooked, after, before, unseen = self.unhooked, self._seen_after, self._seen_before, self._unseen
        if alone and not (after or before) and unhooked.relies_on_all():
            self._unseen = unhooked.parameters
            return
        self.alone = False  # or it would have to be asked
        if alone and unhooked.versions and unhooked.have_hooks_of_others():
            unhooked.versions.clear()  # nobody knows what they do with gradients
        for slot, parameter in unhooked.parameters:
            if not parameter.requires_grad or slot in before:
                continue
            plain = alone and parameter.grad is None
            if plain and unhooked.relies_on(slot) and slot not in after:
                unseen.append((slot, parameter))
                continue
            if slot not in after:
                after.add(slot)
                self.hooks.after_accumulation(parameter, partial(self._is_there, slot))
            if not plain:
                before.add(slot)
                self.hooks.on_gradient(parameter, partial(self._comes, slot, parameter))

    def hook_all_parameters(self) -> None:
        """Nobody will tell when a pass begins."""
        before, self.hold_all = self.hold_all, True
        self._hook_parameters()
        self.hold_all = before

    # ---- hooks -----------------------------------------------------------------------------------

    def watch(self, slot: int, tensor: Tensor) -> None:
        if self.cells.has(tensor):
            for name, came in self.cells.give_slot(slot, tensor, past=self.looks_back):
                self.found.setdefault((slot, name), []).extend(came)
            return
        if self.is_stopped or not tensor.requires_grad or not torch.is_grad_enabled():
            return
        with torch._C.DisableTorchFunction():
            try:
                self.hooks.on_gradient(tensor, partial(self._came, slot))
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
            self.hooks.places.append((hooks, number))

    def watch_parameter(self, slot: int, parameter: Tensor) -> None:
        """At once, also if nobody tells when a pass begins."""
        self.unhooked.know([(slot, parameter)])
        self.hook_all_parameters()

    def watch_parameters(self, parameters: Iterable[tuple[int, Tensor]]) -> None:
        """Those that learn, by their slots."""
        self.unhooked.know(parameters)
        if not passes_are_heard():
            self.hook_all_parameters()

    # ---- values that have no slot yet ------------------------------------------------------------

    def tell_of_pass(self, tensor: Tensor) -> None:
        """The gradient of this one tells of passes that nobody announces; it is gathered by the same hook."""
        self.cells.tell(tensor, self._felt, self.hooks)

    def _felt(self, cell: list[Tensor], gradient: Tensor) -> None:
        if not self._depth:
            self._prepare()
        cell.append(gradient)

    def drain(self) -> None:
        """Whatever has come belongs to the pass that began last."""
        if not self.may_have_come:
            return
        self.may_have_come = self._depth > 0
        try:
            arrivals = self._arrivals.copy()
            self._arrivals.clear()
            for slot, gradient, version in arrivals:
                self._has_arrived(slot, gradient, version, self._pass_name or self.name)
            name = self._pass_name
            came, placed = self.cells.empty(name)
            if name is not None and came:
                self.losses[name] = None
                for slot, gradients in placed:
                    self.found.setdefault((slot, name), []).extend(gradients)
        except Exception as error:
            self._break(error)

    # What autograd calls: whatever is usual in one function each, the rest below. A failure of ours must not end the
    # backward pass.

    def _came(self, slot: int, gradient: Tensor) -> None:
        """The gradient of a value."""
        if not self._depth:
            self._prepare()
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
            if slot in self._seen_before:
                if not self._broken:
                    self._arrived(slot, parameter)
            else:
                gradient = parameter.grad
                self._arrivals.append((slot, gradient, -1 if gradient is None else gradient._version))
        except Exception as error:
            self._break(error)

    def _has_arrived(self, slot: int, gradient: Tensor | None, version: int, name: str) -> None:
        """The gradient of a parameter that had none before."""
        if gradient is None:  # a hook of somebody else has used it up
            self.lost.append(slot)
            return
        self._copy(slot)  # `.grad` was cleared since, but whoever has it may write into it
        self._borrow(slot, gradient, name, version)
        self._versions[slot] = version

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
                self._borrow(slot, gradient, self.name, version_of(gradient))
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
            self._borrow(slot, parameter.grad, self.name, version_of(parameter.grad))
        if parameter.grad is not None:
            self._versions[slot] = version_of(parameter.grad)

    def _borrow(self, slot: int, gradient: Tensor, name: str, version: int) -> None:
        """Hold what somebody else has, too."""
        self.losses[name] = None
        found = self.found.setdefault((slot, name), [])
        if found:
            with torch.no_grad():
                found.append(gradient.detach().clone())
        else:
            found.append(gradient)
            self._borrowed[slot] = ((slot, name), version)

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
        self.drain()
        if self._borrowed:
            keys = {storage_key(tensor) for tensor in written}
            for slot, (place, _) in list(self._borrowed.items()):
                if storage_key(self.found[place][0]) in keys:
                    self._copy(slot)

    def check(self) -> bool:
        """Whether what is borrowed is still what it was; what is not is dropped."""
        self.drain()
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
        """Take the hooks off; there will be no others."""
        if not self.is_stopped:
            self.is_stopped = True
            self.hooks.take_off()

    def let_go(self) -> None:
        """As if nothing had ever been watched but the parameters."""
        if not self.is_stopped:
            self.stop()
        self._broken = self.hold_all = self._handed_over = self.looks_back = self.may_have_come = False
        self.alone = True
        self.current = self._running = self._pass_name = self._meter = None
        self._depth, self._passes, self._unseen = 0, 0, []
        self._arrivals.clear()
        self.cells.clear()
        for kept in (
            self.found, self._borrowed, self._expected, self.losses, self._versions, self._seen_after,
            self._seen_before, self.lost,
        ):  # fmt: skip
            if kept:  # mostly there are only gradients that nobody has looked at
                kept.clear()

    def let_go_of_gradients(self) -> None:
        self._borrowed.clear()
        self._expected.clear()
        self.found.clear()
        self._arrivals.clear()
        self.cells.clear()


def keeps_graph(args: Any, kwargs: Mapping[str, Any]) -> bool:
    """Whether `backward(gradient, retain_graph, create_graph)` may be followed by another one on the same graph."""
    for value in (*args[2:4], kwargs.get("retain_graph"), kwargs.get("create_graph")):
        if value is not None and value is not False:
            return True
    return False
