"""Optimizers that hold none of the parameters of the watched models: usually those of another model, by mistake.

no run.watch                     an optimizer steps again and again ─► said, if no step is open
run.watch(model, optimizer)      said at the first update: parts of a model may be added until then
run.watch(model), and an optimizer steps again and again after backward passes of the model, and none that holds its
parameters does ─► said, and from then on its updates end the steps, or all of them would be one
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from endoscope.recording import forks

if TYPE_CHECKING:
    from endoscope.recording.steps.steps import Steps
    from endoscope.recording.steps.watch import Watch

UNWATCHED = "Call run.watch(model, optimizer) before the loop; until then only metrics and notes are recorded."
_ENOUGH = 3  # updates in one step; in a GAN another optimizer may come first once


def sentence_of(watch: Watch, watches: Sequence[Watch]) -> str:
    """What to say of the optimizers that were named with a model; empty if they train it, or another watched one."""
    own = {id(parameter) for one in watches for parameter in one.module.parameters()}
    foreign = [one for one in watch.optimizers if not _held_by(one) & own]
    return _sentence(foreign[0], watch) if foreign and len(foreign) == len(watch.optimizers) else ""


class Strangers:
    """Looks at updates until one of them is of a watched model."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._handle: Any = None
        self._updates = 0
        self._step: Any = None  # the open one, in which they came
        self._suspects: list[Watch] = []  # whose own optimizers hold nothing of them so far
        self._has_unnamed = False  # a model was watched without an optimizer
        self._is_over = True
        self.said: list[str] = []

    def begin(self) -> None:
        """Before any model is watched."""
        self._is_over = False
        if self._handle is None:
            self._handle = register_optimizer_step_post_hook(_asking(weakref.ref(self)))

    def look(self, watch: Watch) -> None:
        """From now on, unless the model was watched with an optimizer that trains it."""
        if sentence_of(watch, self._steps.watches):
            self._suspects.append(watch)
        self._has_unnamed |= not watch.optimizers
        self._updates = 0
        if self._suspects or self._has_unnamed:
            self.begin()
        else:
            self.end()

    def end(self) -> None:
        """Not from inside of the hook: torch goes through its hooks then, and would raise into the training."""
        self._is_over = True
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def stepped(self, optimizer: Any) -> None:
        steps = self._steps
        if self._is_over or steps.closed or forks.count != steps.born:
            return
        if not steps.watches:
            self._count_unwatched(optimizer)
            return
        for watch in [one for one in self._suspects if optimizer in one.optimizers]:
            self._suspects.remove(watch)
            self._say(sentence_of(watch, steps.watches))
        if steps.optimizers.known:
            self._is_over = not self._suspects
        elif steps.open is not None and not steps.open.explicit and steps.passes.were_seen:
            self._updates = self._updates + 1 if self._step is steps.open else 1
            self._step = steps.open
            if self._updates >= _ENOUGH:
                self._adopt(optimizer)

    def _count_unwatched(self, optimizer: Any) -> None:
        if self._steps.open is not None:  # with run.step(): what is recorded is said by hand
            return
        self._updates += 1
        if self._updates == _ENOUGH:
            name = type(optimizer).__name__
            sentence = f"{name} has made {_ENOUGH} updates, but no model is watched. {UNWATCHED}"
            self._steps.shield.say(sentence, f"Endoscope: {sentence}")

    def _adopt(self, optimizer: Any) -> None:
        self._is_over = True
        self._step = None
        self._say(_sentence(optimizer, self._steps.watches[0]))
        self._steps.optimizers.add([optimizer])

    def _say(self, sentence: str) -> None:
        """Now, in the recording, and once more when the run is closed."""
        if sentence:
            self.said.append(sentence)
            self._steps.shield.note(sentence)
            self._steps.shield.say(sentence, f"Endoscope: {sentence}")


def _asking(reference: weakref.ref[Strangers]) -> Callable[..., None]:
    """The hook. A run that nobody has closed can still be collected."""

    def stepped(optimizer: Any, *_: Any) -> None:
        strangers = reference()
        if strangers is not None:
            strangers.stepped(optimizer)

    return stepped


def _sentence(optimizer: Any, watch: Watch) -> str:
    model = type(watch.module).__name__
    return (
        f"{type(optimizer).__name__} holds none of the parameters of {model}, so it does not train it: is it the "
        "optimizer of another model? Make it from the parameters of the model that is watched: "
        f"{type(optimizer).__name__}(model.parameters(), …)."
    )


def _held_by(optimizer: torch.optim.Optimizer) -> set[int]:
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
