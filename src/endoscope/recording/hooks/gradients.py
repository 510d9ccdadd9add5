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

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from endoscope.capture.record.parts import here, is_distributed
from endoscope.capture.record.regions import version_of, versions_of
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.ranks.specs import Spec, spec_of, specs_of
from endoscope.schema.recording import GRADIENT, OF_THIS_RANK, USED

if TYPE_CHECKING:
    from endoscope.recording.hooks.entries import Entry
    from endoscope.recording.hooks.stream import Stream
    from endoscope.recording.structure.learned import Learned

DEFAULT = "loss"
OURS = -2  # in the place of a version: a copy, into which nobody else writes; -1 is that of a tensor that counts none
_GRAD = attrgetter("grad")


class Found(NamedTuple):
    """A gradient of a parameter."""

    position: int
    of: str
    pass_: int  # the n-th update in the step that uses it
    tensor: Tensor
    spec: Spec | None = None  # how it lies in the processes, if each has a part


class Update(NamedTuple):
    """What `.grad` of some parameters was when an optimizer began, or when its closure returned."""

    positions: Sequence[int]
    gradients: list[Tensor | None]
    versions: list[int]
    specs: list[Spec | None]


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
        self.active: str | None = None  # what arrives belongs to this loss: that of the pass, or of the block
        self.names: dict[str, None] = {}  # of all passes, in order
        self.passes = 0  # that have begun
        self.apart = False  # parts of losses are kept apart
        self.is_one_of_many = False  # processes of a job, which average their gradients
        self.lost: set[int] = set()  # positions whose gradient was overwritten before it could be measured
        self.clipping: list[tuple[Any, Any]] = []  # norm and limit of each call that clips
        self._start: list[Tensor | None] | None = None  # `.grad` before the first pass
        self._start_versions: list[int] = []
        self._before: dict[int, Tensor] = {}  # what was not cleared before the step
        self._after: list[Tensor | None] = []  # `.grad` after the last pass
        self._after_versions: list[int] = []
        self._hooked: set[int] = set()  # positions of the parameters that have a hook
        self._parts: dict[tuple[int, str], Tensor] = {}  # what came through these hooks, by loss
        self._accumulated: dict[int, tuple[Tensor, int]] = {}  # `.grad` as the running pass has made it
        self._updates: list[Update] = []
        self._checked = 0  # updates that have ended
        self._fresh: list[int] = []  # positions whose gradient an optimizer has used since the last pass began
        self._handles: list[Any] = []
        self.stream: Stream | None = None  # measures the gradients of what is not held

    # ---- captured tensors ------------------------------------------------------------------------

    def watch(self, entry: Entry, tensor: Tensor) -> None:
        """The gradients of this tensor, from now on, are those of the entry."""

        try:
            self._handles.append(tensor.register_hook(partial(self._came, entry)))
            entry.is_watched = True
        except RuntimeError:  # autograd has given it up: a view whose base was overwritten
            return

    def _came(self, entry: Entry, gradient: Tensor) -> None:
        name = self.active
        if name is None:  # `torch.autograd.grad`: a result for the user, and the gradient of no loss
            return
        try:
            known = entry.gradients
            if entry.row >= 0 and self.stream is not None:
                self.stream.gradient(entry, name, gradient)
            elif known is None:
                entry.gradients = {name: (gradient, gradient._version)}
            elif name not in known:
                known[name] = gradient, version_of(gradient)
            else:
                known[name] = _sum(known[name][0], gradient), OURS
        except Exception as error:
            self._failed("a gradient", error)

    # ---- passes ----------------------------------------------------------------------------------

    def begin_block(self, name: str) -> str | None:
        """What comes from now on belongs to the loss `name`; returns what it belonged to before."""
        before, self.block = self.block, name
        self.active = self.name or name
        with quiet(), torch.no_grad():
            self._keep_apart()
        self.names[name] = None
        return before

    def end_block(self, before: str | None) -> None:
        self.block = before
        self.active = self.name or before

    def begin_pass(self, name: str) -> None:
        with quiet(), torch.no_grad():
            if self._start is None:
                self._start = list(map(_GRAD, self._parameters))
                self._start_versions = _versions(self._start)
                self._keep_left_over(position for position, grad in enumerate(self._start) if grad is not None)
            else:
                self._forget_what_was_cleared()
                self._begin_again(self._fresh)
            self._fresh = []
            if name != DEFAULT:
                self._keep_apart()
            elif self.is_one_of_many and not self._hooked:
                whole = [n for n, parameter in enumerate(self._parameters) if not is_distributed(parameter)]
                self._hook_parameters(whole)
            if self._learned.used_up:
                self._hook_parameters(self._learned.used_up)
        self.passes += 1
        self.names[name] = None
        self.name = self.active = name

    def end_pass(self) -> None:
        name, self.name = self.name or DEFAULT, None
        self.active = self.block
        with quiet():
            self._after = list(map(_GRAD, self._parameters))
            self._after_versions = _versions(self._after)
            for position, (gradient, version) in self._accumulated.items():
                if self._after[position] is None and version_of(gradient) == version:
                    self._learned.used_up.add(position)
                    self._parts[position, name] = gradient
            self._accumulated = {}

    def restart(self) -> None:
        """What the passes before the running one made was cleared, and belongs to an earlier step."""
        self.passes = min(self.passes, 1)
        self.names = {} if self.name is None else {self.name: None}
        self._start, self._start_versions = [None] * len(self._parameters), [-1] * len(self._parameters)
        self._before, self._parts, self._updates, self._checked = {}, {}, [], 0
        self._after, self._after_versions = [], []

    def _begin_again(self, positions: Iterable[int]) -> None:
        """An optimizer has used these gradients already: what is there now is left over."""
        assert self._start is not None
        for position in positions:
            grad = self._start[position] = self._parameters[position].grad
            self._start_versions[position] = OURS if grad is None else version_of(grad)
        self._keep_left_over(positions)

    def _keep_left_over(self, positions: Iterable[int]) -> None:
        for position in positions:
            grad = self._parameters[position].grad
            if grad is not None and _is_filled(grad):  # zeros are what `zero_grad(set_to_none=False)` leaves behind
                self._before[position] = here(grad).detach().clone()

    def _forget_what_was_cleared(self) -> None:
        """Between two passes somebody may have cleared what was left over from earlier steps."""
        for position in list(self._before):
            grad = self._parameters[position].grad
            if grad is None or not _is_filled(grad):
                del self._before[position]

    # ---- hooks of parameters ---------------------------------------------------------------------

    def _keep_apart(self) -> None:
        """The first name: what came before it is the part of the losses without one."""
        if self.apart:
            return
        self.apart = True
        for position, parameter in enumerate(self._parameters if self.passes else ()):
            grad = parameter.grad
            if grad is not None and self._has_arrived(position, grad, version_of(grad)):
                self._parts.setdefault((position, DEFAULT), here(self._share(position, grad)).clone())
        self._hook_parameters(range(len(self._parameters)))

    def _hook_parameters(self, positions: Iterable[int]) -> None:
        for position in positions:
            parameter = self._parameters[position]
            if parameter.requires_grad and position not in self._hooked:
                self._hooked.add(position)
                self._handles.append(parameter.register_hook(partial(self._part_came, position)))

    def _part_came(self, position: int, gradient: Tensor) -> None:
        name = self.active
        if name is None:
            return
        try:
            known = self._parts.get((position, name))
            self._parts[position, name] = gradient if known is None else _sum(known, gradient)
        except Exception as error:
            self._failed("the gradient of a parameter", error)

    def look_for_used_up(self) -> None:
        """In a traced step: is `.grad` still there when the pass ends?"""
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
                if (position, self.name) not in self._parts:
                    self.lost.add(position)
            else:
                self._accumulated[position] = gradient, version_of(gradient)

    # ---- updates ---------------------------------------------------------------------------------

    def before_update(self, positions: Sequence[int], scale: Any) -> None:
        """An optimizer is about to use `.grad`; with `scale`, it divides by that."""
        gradients = [self._parameters[position].grad for position in positions]
        update = Update(positions, gradients, _versions(gradients), specs_of(gradients))
        if self._before or scale is not None or self._copies:
            update = self._copied(update, scale)
        self._updates.append(update)

    def _copied(self, update: Update, scale: Any) -> Update:
        """Without what was left over, unscaled, and safe from being overwritten."""
        for place, position in enumerate(update.positions):
            grad = update.gradients[place]
            if grad is None or not self._has_arrived(position, grad, update.versions[place]):
                update.gradients[place] = None
            elif position in self._before and self._was_changed_since_the_pass(position, grad):
                self.lost.add(position)  # clipped together with what was left over: it cannot be told apart
                update.gradients[place] = None
            else:
                share = self._share(position, grad)
                share = share if scale is None else here(share) / scale.to(share.device)
                update.gradients[place] = here(share).detach().clone() if share is grad else share
                update.versions[place] = OURS
        return update

    def closure_returned(self, positions: Sequence[int]) -> None:
        """An optimizer called for gradients once more: those of this call are its own."""
        with quiet(), torch.no_grad():
            found = [self._parameters[position].grad for position in positions]
            copies = [None if grad is None else here(grad).detach().clone() for grad in found]
            self._updates.append(Update(positions, copies, [OURS] * len(copies), specs_of(found)))

    def after_update(self) -> None:
        for update in self._updates[self._checked :]:
            self._fresh += update.positions
            self._learned.gradients_are_overwritten |= bool(_overwritten(update))
        self._checked = len(self._updates)

    def before_write(self, written: Sequence[Tensor]) -> None:
        """In a traced step: somebody is about to write into these tensors, as `zero_grad(set_to_none=False)` does."""
        ids = set(map(id, written))
        for update in self._updates:
            gone = _overwritten(update)
            for place, grad in enumerate(update.gradients):
                if grad is not None and id(grad) in ids and place not in gone and update.versions[place] != OURS:
                    update.gradients[place], update.versions[place] = here(grad).detach().clone(), OURS
                    self._learned.gradients_are_overwritten = True

    # ---- results ---------------------------------------------------------------------------------

    def of_parameters(self, skipped: bool) -> Iterator[Found]:
        """All gradients of parameters that are still what they were."""
        used_up = self._learned.used_up
        for (position, name), part in self._parts.items():
            if self.apart or position in used_up:
                yield Found(position, GRADIENT + name, 1, part, spec_of(part))
        if self.is_one_of_many:
            yield from self._of_this_rank()
        of = USED if self.apart or self.is_one_of_many else GRADIENT + DEFAULT
        passes: Counter[int] = Counter()
        for update in () if skipped else (*self._updates, self._left_by_the_last_pass()):
            gone = _overwritten(update)
            for place, position in enumerate(update.positions):
                gradient = update.gradients[place]
                if place in gone:
                    self.lost.add(position)
                    self._learned.gradients_are_overwritten = True
                elif self._counts(update, place) and (self.apart or position not in used_up):
                    passes[position] += 1
                    yield Found(position, of, passes[position], gradient, update.specs[place])  # type: ignore[arg-type]

    def _of_this_rank(self) -> Iterator[Found]:
        """The sum of all losses, as the backward passes of this process have computed it."""
        sums: dict[int, Tensor] = {}
        for (position, _), part in self._parts.items():
            if not is_distributed(part):
                sums[position] = _sum(sums[position], part) if position in sums else part
        for position, whole in sums.items():
            yield Found(position, OF_THIS_RANK, 1, whole)

    def _counts(self, update: Update, place: int) -> bool:
        """Whether that gradient is of this step: a copy is, anything else if something has arrived there."""
        version, gradient = update.versions[place], update.gradients[place]
        if gradient is None or version == OURS or self._start is None:
            return gradient is not None
        position = update.positions[place]
        return self._start[position] is not gradient or version != self._start_versions[position]

    def _left_by_the_last_pass(self) -> Update:
        """Gradients that no optimizer has used."""
        update = Update([], [], [], [])
        used = {position for one in self._updates for position in one.positions} | self.lost
        for position, (grad, version) in enumerate(zip(self._after, self._after_versions, strict=True)):
            if grad is None or position in used or self.apart or not self._has_arrived(position, grad, version):
                continue
            share = self._share(position, grad)
            update.positions.append(position)  # type: ignore[attr-defined]
            update.gradients.append(share)
            update.versions.append(version if share is grad else OURS)
            update.specs.append(spec_of(grad))
        return update

    def reached(self) -> set[int]:
        """Positions of the parameters that got a gradient."""
        found = {position for position, _ in self._parts} | self.lost
        for update in (*self._updates, self._left_by_the_last_pass()):
            found |= {position for place, position in enumerate(update.positions) if self._counts(update, place)}
        return found

    def left_over(self) -> dict[int, Tensor]:
        """What was not cleared before the step, by position."""
        return self._before

    def _has_arrived(self, position: int, grad: Tensor, version: int) -> bool:
        """Whether something has come since the first pass began."""
        if self._start is None:  # nobody has seen a pass begin
            return True
        return self._start[position] is not grad or version != self._start_versions[position]

    def _was_changed_since_the_pass(self, position: int, grad: Tensor) -> bool:
        return (
            not self._after or self._after[position] is not grad or self._after_versions[position] != version_of(grad)
        )

    def _share(self, position: int, grad: Tensor) -> Tensor:
        before = self._before.get(position)
        return grad if before is None else here(grad).detach() - before

    # ---- the end ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def let_go(self) -> None:
        self.stop()
        self._start, self._after, self._updates = None, [], []
        self._before, self._parts = {}, {}


def _versions(gradients: list[Tensor | None]) -> list[int]:
    """Of tensors that are there; without a turn in Python for each, where all or none are."""
    missing = sum(map(is_, gradients, repeat(None)))
    if missing == len(gradients):
        return [OURS] * missing
    if not missing:
        return versions_of(gradients)  # type: ignore[arg-type]
    return [OURS if gradient is None else version_of(gradient) for gradient in gradients]


def _overwritten(update: Update) -> list[int]:
    """Places of gradients that somebody has written into since they were noted."""
    now = _versions(update.gradients)
    if now == update.versions:
        return []
    noted = update.versions
    return [place for place in range(len(now)) if noted[place] != OURS and now[place] != noted[place]]


def _is_filled(gradient: Tensor) -> bool:
    gradient = here(gradient)
    if gradient.layout is not torch.strided:
        return bool(gradient._nnz()) if gradient.is_sparse else True
    return bool(gradient.any())


def _sum(known: Tensor, other: Tensor) -> Tensor:
    with quiet(), torch.no_grad():
        return here(known).detach() + here(other).detach()
