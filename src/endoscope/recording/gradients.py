"""Gradients of one captured step.

    loss.backward() ─► begin_pass(name) ─► hooks of captured tensors: the gradient of this pass ─► end_pass
    optimizer.step() ─► before_update ─► `.grad` as the optimizer is about to use it ─► after_update

The gradient of a captured tensor comes through a hook on it; several passes of one loss add up. The gradient of a
parameter is read from `.grad` when the optimizer begins: accumulation, unscaling, clipping and whatever a wrapper
reduces have finished with it by then. What was in `.grad` before the first pass of the step, because nobody cleared
it, is copied there and subtracted. A parameter that no optimizer moves in this step has the gradient that the last
pass left.

Where losses are named (`step.gradients(name)`), hooks on the parameters keep the part of each loss apart, before
clipping; `gradient` without a name is then what the optimizer uses. All that is computed in such a block counts, also
by `torch.autograd.grad`. A traced step looks for parameters whose gradient is used up inside of the backward pass;
from then on these have such a hook in each captured step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from endoscope.capture.regions import version_of
from endoscope.recording.quiet import quiet
from endoscope.schema.recording import GRADIENT

if TYPE_CHECKING:
    from endoscope.recording.captured import Entry
    from endoscope.recording.structures import Learned

DEFAULT = "loss"
USED = "gradient"  # of a parameter: what the optimizer uses, where the parts of several losses are kept apart
_GRAD = attrgetter("grad")


class Found(NamedTuple):
    """A gradient of a parameter."""

    position: int
    of: str
    pass_: int  # the n-th update in the step that uses it
    tensor: Tensor
    version: int  # -1: it is ours, so nobody writes into it


class Gradients:
    """What arrived in this step, for captured tensors and for the parameters of the watched models."""

    def __init__(
        self, parameters: Sequence[Tensor], failed: Callable[[str, BaseException], None], learned: Learned
    ) -> None:
        self._parameters = parameters
        self._failed = failed
        self._learned = learned
        self._copies = learned.gradients_are_overwritten
        self.block: str | None = None  # the name that `step.gradients(name)` around us says
        self.name: str | None = None  # of the pass that runs
        self.names: dict[str, None] = {}  # of all passes, in order
        self.passes = 0  # that have begun
        self._start: list[tuple[Tensor | None, int]] | None = None  # `.grad` before the first pass
        self._before: dict[int, Tensor] = {}  # what was not cleared before the step
        self._after: list[Tensor | None] = []  # `.grad` after the last pass
        self._after_versions: list[int] = []
        self.apart = False  # parts of losses are kept apart
        self._hooked: set[int] = set()  # positions of the parameters that have a hook
        self._parts: dict[tuple[int, str], Tensor] = {}  # what came through these hooks, by loss
        self._accumulated: dict[int, tuple[Tensor, int]] = {}  # `.grad` as the running pass has made it
        self._used: list[Found] = []
        self._uses: dict[int, int] = {}  # position -> updates that have used its gradient
        self.lost: set[int] = set()  # positions whose gradient was overwritten before it could be measured
        self._handles: list[Any] = []
        self.clipping: list[tuple[Any, Any]] = []  # norm and limit of each call that clips
        self._fresh: set[int] = set()  # positions whose gradient an optimizer has used since the last pass began
        self._checked = 0  # of `_used`: so many were seen to be intact after their update

    # ---- captured tensors ------------------------------------------------------------------------

    def watch(self, entry: Entry, tensor: Tensor) -> None:
        """The gradients of this tensor, from now on, are those of the entry."""
        try:
            self._handles.append(tensor.register_hook(partial(self._came, entry)))
            entry.is_watched = True
        except RuntimeError:  # autograd has given it up: a view whose base was overwritten
            return

    def _came(self, entry: Entry, gradient: Tensor) -> None:
        name = self.name or self.block
        if name is None:  # `torch.autograd.grad`: a result for the user, and the gradient of no loss
            return
        try:
            known = entry.gradients
            if known is None:
                entry.gradients = {name: (gradient, gradient._version)}
            elif name not in known:
                known[name] = (gradient, gradient._version)
            else:
                known[name] = (_sum(known[name][0], gradient), -1)
        except Exception as error:
            self._failed("a gradient", error)

    # ---- passes ----------------------------------------------------------------------------------

    def restart(self) -> None:
        """What the passes before the running one made was cleared, and belongs to an earlier step."""
        self.passes = min(self.passes, 1)
        self.names = {} if self.name is None else {self.name: None}
        self._start = [(None, -1)] * len(self._parameters)
        self._before, self._parts, self._used, self._uses = {}, {}, [], {}
        self._after, self._after_versions, self._checked = [], [], 0

    def begin_block(self, name: str) -> str | None:
        """What comes from now on belongs to the loss `name`; returns what it belonged to before."""
        before, self.block = self.block, name
        with quiet(), torch.no_grad():
            self._keep_apart()
        self.names[name] = None
        return before

    def begin_pass(self, name: str) -> None:
        with quiet(), torch.no_grad():
            if self._start is None:
                self._start = [(None, -1)] * len(self._parameters)
                self._look_at_start(range(len(self._parameters)))
            else:
                self._forget_what_was_cleared()
                self._look_at_start(self._fresh)
            self._fresh = set()
            if name != DEFAULT:
                self._keep_apart()
            self._hook_parameters(self._learned.used_up)
        self.passes += 1
        self.names[name] = None
        self.name = name

    def end_pass(self) -> None:
        name, self.name = self.name or DEFAULT, None
        with quiet():
            self._after = list(map(_GRAD, self._parameters))
            self._after_versions = [-1 if g is None else version_of(g) for g in self._after]
            for position, (gradient, version) in self._accumulated.items():
                if self._after[position] is None and version_of(gradient) == version:
                    self._learned.used_up.add(position)
                    self._parts[position, name] = gradient
            self._accumulated = {}

    def _look_at_start(self, positions: Iterable[int]) -> None:
        assert self._start is not None
        for position in positions:
            grad = self._parameters[position].grad
            if grad is not None:
                self._start[position] = grad, version_of(grad)
                if _is_filled(grad):  # zeros are what `zero_grad(set_to_none=False)` leaves behind
                    self._before[position] = grad.detach().clone()
            else:
                self._start[position] = None, -1

    def _forget_what_was_cleared(self) -> None:
        """Between two passes somebody may have cleared what was left over from earlier steps."""
        for position in list(self._before):
            grad = self._parameters[position].grad
            if grad is None or not _is_filled(grad):
                del self._before[position]

    def _keep_apart(self) -> None:
        """The first name: what came before it is the part of the losses without one."""
        if self.apart:
            return
        self.apart = True
        for position, parameter in enumerate(self._parameters if self.passes else ()):
            grad = parameter.grad
            if grad is not None and self._arrived(position, grad):
                self._parts.setdefault((position, DEFAULT), self._share(position, grad).clone())
        self._hook_parameters(range(len(self._parameters)))

    def look_for_used_up(self) -> None:
        for position, parameter in enumerate(self._parameters):
            if parameter.requires_grad:
                hook = partial(self._was_accumulated, position)
                self._handles.append(parameter.register_post_accumulate_grad_hook(hook))

    def _was_accumulated(self, position: int, parameter: Tensor) -> None:
        if self.name is None:
            return
        with quiet():
            gradient = parameter.grad
            if gradient is None:  # a hook of the user's has used it up already
                self._learned.used_up.add(position)
                self.lost.add(position)
            else:
                self._accumulated[position] = gradient, version_of(gradient)

    def _hook_parameters(self, positions: Iterable[int]) -> None:
        for position in positions:
            parameter = self._parameters[position]
            if parameter.requires_grad and position not in self._hooked:
                self._hooked.add(position)
                self._handles.append(parameter.register_hook(partial(self._part_came, position)))

    def _part_came(self, position: int, gradient: Tensor) -> None:
        name = self.name or self.block
        if name is None:
            return
        try:
            known = self._parts.get((position, name))
            self._parts[position, name] = gradient if known is None else _sum(known, gradient)
        except Exception as error:
            self._failed("the gradient of a parameter", error)

    # ---- updates ---------------------------------------------------------------------------------

    def before_update(self, positions: Sequence[int], scale: Any) -> None:
        """An optimizer is about to use `.grad`; with `scale`, it divides by that."""
        with quiet(), torch.no_grad():
            for position in positions:
                grad = self._parameters[position].grad
                if grad is None or not self._arrived(position, grad):
                    continue
                if position in self._before and self._was_changed_since_the_pass(position, grad):
                    self.lost.add(position)  # clipped together with what was left over: it cannot be told apart
                    continue
                share = self._share(position, grad)
                if scale is not None:
                    share = share / scale.to(share.device)
                self._use(position, share.detach().clone() if self._copies and share is grad else share, share is grad)

    def closure_returned(self, positions: Sequence[int]) -> None:
        """An optimizer called for gradients once more: those of this call are its own."""
        with quiet(), torch.no_grad():
            for position in positions:
                grad = self._parameters[position].grad
                if grad is not None:
                    self._use(position, grad.detach().clone(), False)

    def _use(self, position: int, gradient: Tensor, is_theirs: bool) -> None:
        number = self._uses[position] = self._uses.get(position, 0) + 1
        version = version_of(gradient) if is_theirs and not self._copies else -1
        self._used.append(Found(position, USED, number, gradient, version))

    def after_update(self) -> None:
        new, self._checked = self._used[self._checked :], len(self._used)
        self._fresh.update([one.position for one in new])
        if any(self._is_overwritten(one) for one in new):
            self._learned.gradients_are_overwritten = True

    def before_write(self, written: Sequence[Tensor]) -> None:
        """In a traced step: somebody is about to write into these tensors, as `zero_grad(set_to_none=False)` does."""
        ids = set(map(id, written))
        for number, one in enumerate(self._used):
            if one.version >= 0 and id(one.tensor) in ids and not self._is_overwritten(one):
                self._used[number] = one._replace(tensor=one.tensor.detach().clone(), version=-1)
                self._learned.gradients_are_overwritten = True

    def _is_overwritten(self, one: Found) -> bool:
        return one.version >= 0 and version_of(one.tensor) != one.version

    # ---- results ---------------------------------------------------------------------------------

    def of_parameters(self, skipped: bool) -> Iterator[Found]:
        """All gradients of parameters that are still what they were."""
        for (position, name), part in self._parts.items():
            if self.apart or position in self._learned.used_up:
                yield Found(position, GRADIENT + name, 1, part, -1)
        of = USED if self.apart else GRADIENT + DEFAULT
        for one in () if skipped else (*self._used, *self._left_by_the_last_pass()):
            if self._is_overwritten(one):
                self.lost.add(one.position)
                self._learned.gradients_are_overwritten = True
            elif self.apart or one.position not in self._learned.used_up:
                yield one._replace(of=of)

    def _left_by_the_last_pass(self) -> Iterator[Found]:
        for position, (grad, version) in enumerate(zip(self._after, self._after_versions, strict=True)):
            if grad is None or position in self._uses or position in self.lost or self.apart:
                continue
            if self._arrived_by(position, grad, version):
                share = self._share(position, grad)
                yield Found(position, USED, 1, share, version if share is grad else -1)

    def reached(self) -> set[int]:
        """Positions of the parameters that got a gradient."""
        found = {position for position, _ in self._parts} | set(self._uses) | self.lost
        return found | {
            position
            for position, (grad, version) in enumerate(zip(self._after, self._after_versions, strict=True))
            if grad is not None and self._arrived_by(position, grad, version)
        }

    def left_over(self) -> dict[int, Tensor]:
        """What was not cleared before the step, by position."""
        return self._before

    def _arrived(self, position: int, grad: Tensor) -> bool:
        return self._arrived_by(position, grad, version_of(grad))

    def _arrived_by(self, position: int, grad: Tensor, version: int) -> bool:
        """Whether something has come since the first pass began."""
        if self._start is None:  # nobody has seen a pass begin
            return True
        before, version_before = self._start[position]
        return before is not grad or version != version_before

    def _was_changed_since_the_pass(self, position: int, grad: Tensor) -> bool:
        return (
            not self._after or self._after[position] is not grad or self._after_versions[position] != version_of(grad)
        )

    def _share(self, position: int, grad: Tensor) -> Tensor:
        before = self._before.get(position)
        return grad if before is None else grad.detach() - before

    # ---- the end ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def let_go(self) -> None:
        self.stop()
        self._start, self._after, self._after_versions = None, [], []
        self._before, self._parts = {}, {}
        self._used = []


def _is_filled(gradient: Tensor) -> bool:
    if gradient.layout is not torch.strided:
        return bool(gradient._nnz()) if gradient.is_sparse else True
    return bool(gradient.any())


def _sum(known: Tensor, other: Tensor) -> Tensor:
    with quiet(), torch.no_grad():
        return known.detach() + other.detach()
