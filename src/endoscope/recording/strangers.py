"""Optimizers that hold none of the parameters of the watched models: usually those of another model, by mistake.

run.watch(model, optimizer)      said at once
run.watch(model), and an optimizer steps again and again after backward passes of the model, and none that holds its
parameters does ─► said, and from then on its updates end the steps, or all of them would be one
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from endoscope.recording import forks

if TYPE_CHECKING:
    from endoscope.recording.steps import Steps
    from endoscope.recording.watch import Watch

_ENOUGH = 3  # updates in one step; in a GAN another optimizer may come first once


def sentence_of(watch: Watch) -> str:
    """What to say of the optimizers that were named with a model; empty if all is well."""
    own = {id(parameter) for parameter in watch.module.parameters()}
    foreign = [one for one in watch.optimizers if not _held_by(one) & own]
    return _sentence(foreign[0], watch) if foreign and len(foreign) == len(watch.optimizers) else ""


class Strangers:
    """Looks at updates until one of them is of a watched model."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._handle: Any = None
        self._updates = 0
        self._step: Any = None  # the open one, in which they came
        self.said = ""

    def look(self) -> None:
        """From now on; once is enough."""
        if self._handle is None:
            self._handle = register_optimizer_step_post_hook(self._stepped)

    def end(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        steps = self._steps
        if steps.closed or steps.optimizers.known or forks.count != steps.born:
            self.end()
        elif steps.open is not None and not steps.open.explicit and steps.passes.were_seen:
            self._updates = self._updates + 1 if self._step is steps.open else 1
            self._step = steps.open
            if self._updates >= _ENOUGH:
                self._adopt(optimizer)

    def _adopt(self, optimizer: Any) -> None:
        self.end()
        self._step = None
        self.said = _sentence(optimizer, self._steps.watches[0])
        self._steps.shield.note(self.said)
        self._steps.shield.say("strangers", f"Endoscope: {self.said}")
        self._steps.optimizers.add([optimizer])


def _sentence(optimizer: Any, watch: Watch) -> str:
    model = type(watch.module).__name__
    return (
        f"{type(optimizer).__name__} holds none of the parameters of {model}, so it does not train it: is it the "
        "optimizer of another model? Make it from the parameters of the model that is watched: "
        f"{type(optimizer).__name__}(model.parameters(), …)."
    )


def _held_by(optimizer: torch.optim.Optimizer) -> set[int]:
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
