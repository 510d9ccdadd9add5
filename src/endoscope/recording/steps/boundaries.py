"""The life of a step in a plain loop: which forward, backward and update belong to which step.

                 forward pass of a watched module, training, with gradients
        (no step) ──────────────────────────► STEP ◄─── more forward and backward passes, however many
            ▲                                   │
            ├── an optimizer has stepped ───────┤   the usual end. Where several optimizers are known, the step waits
            │                                   │   for those that are seen to follow without a forward pass between
            ├── a forward pass begins, and ─────┤   the last one raised an exception
            │                                   │   or: an optimizer has stepped inside of `backward`
            │                                   │   or: no optimizer is known and somebody has moved the parameters
            │                                   │   or: all gradients of the last backward were cleared, unused: SKIPPED
            └── run.close() ────────────────────┘

Gradients may be cleared only after the next forward pass has begun (`zero_grad` before `backward`): that is seen when
the next gradient arrives. The step is then divided before that forward pass, and its first part is SKIPPED.

Gradients count as cleared, unused, if no optimizer has stepped and no parameter was moved since the backward pass that
made them, and none of them is left. So the critic of a GAN, filled by the generator's backward pass and then cleared,
is no skipped update, and neither is the first step of SAM.

The same few facts are looked at in every step, recorded or not, so step numbers never depend on what is recorded:
forward passes begin and end, a gradient arrives at a probe (a parameter or two of each model), optimizers step.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.record.parts import here
from endoscope.capture.record.regions import version_of
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.steps.watch import OwnHook


class Probe:
    """One parameter whose `.grad` is looked at."""

    __slots__ = ("gradient", "moved_at", "parameter", "version")

    def __init__(self, parameter: Tensor) -> None:
        self.parameter = weakref.ref(parameter)
        self.gradient: weakref.ref[Tensor] | None = None  # what a pass of this step has left in `.grad`
        self.version = -1  # of it
        self.moved_at = -1  # version of the parameter then, or when the step began

    def begin(self) -> None:
        self.gradient = None
        parameter = self.parameter()
        self.moved_at = -1 if parameter is None else version_of(parameter)

    def note(self, parameter: Tensor, gradient: Tensor) -> None:
        self.gradient, self.version = weakref.ref(gradient), version_of(gradient)
        self.moved_at = version_of(parameter)

    def is_cleared(self) -> bool:
        """Whether nothing is left of the gradient. Clipping and unscaling change it, wrappers may replace it."""
        parameter = self.parameter()
        gradient = None if parameter is None else parameter.grad
        if gradient is None:
            return True
        assert self.gradient is not None
        if self.gradient() is gradient and version_of(gradient) == self.version:
            return False
        self.gradient, self.version = weakref.ref(gradient), version_of(gradient)
        with torch.no_grad():
            return gradient.layout is torch.strided and not bool(here(gradient).any())

    def was_moved(self) -> bool:
        parameter = self.parameter()
        return parameter is not None and version_of(parameter) != self.moved_at


class Passes:
    """Backward passes of the open step, as the probes see them."""

    def __init__(self, divided: Callable[[], None]) -> None:
        self._probes: list[Probe] = []
        self._handles: list[Any] = []
        self._divided = divided  # called when the gradients of earlier passes turn out to be cleared, unused
        self.stepped = False  # an optimizer has stepped since the last pass
        self._forward_since = False  # a forward pass has begun since the last backward pass

    def watch(self, parameters: Iterable[Tensor]) -> None:
        for parameter in parameters:
            probe = Probe(parameter)
            hook = OwnHook(partial(self._arrived, probe))
            self._handles.append(parameter.register_post_accumulate_grad_hook(hook))
            self._probes.append(probe)

    def unwatch(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles, self._probes = [], []

    @property
    def were_seen(self) -> bool:
        """Whether a gradient has arrived in this step."""
        return any(probe.gradient is not None for probe in self._probes)

    def begin_step(self) -> None:
        with quiet():
            for probe in self._probes:
                probe.begin()
        self.stepped = self._forward_since = False

    def forward_begins(self) -> None:
        self._forward_since = True

    @property
    def came_since_forward(self) -> bool:
        """Whether a gradient has arrived since the last forward pass began."""
        return not self._forward_since

    def are_cleared(self) -> bool:
        """Whether all gradients of this step are gone, and nobody has used them."""
        reached = [probe for probe in self._probes if probe.gradient is not None]
        with quiet():
            cleared = [probe.is_cleared() for probe in reached]  # each looks at its gradient as it is now
            return bool(cleared) and not self.stepped and all(cleared) and not any(p.was_moved() for p in reached)

    def were_moved_by_hand(self) -> bool:
        with quiet():
            return not self.stepped and any(probe.was_moved() for probe in self._probes)

    def _arrived(self, probe: Probe, parameter: Tensor) -> None:
        with quiet():
            gradient = parameter.grad
            if gradient is None:  # moved and cleared by a hook of the user's, as soon as it arrived
                return
            if probe.gradient is not None and self._forward_since and self._was_renewed(probe, gradient):
                others = [p for p in self._probes if p is not probe and p.gradient is not None]
                unused = not self.stepped and not probe.was_moved()
                if unused and all(p.is_cleared() and not p.was_moved() for p in others):
                    for other in self._probes:
                        other.gradient = None
                    self._divided()
            probe.note(parameter, gradient)
            self.stepped = self._forward_since = False

    def _was_renewed(self, probe: Probe, gradient: Tensor) -> bool:
        """Whether the gradient that has just arrived was not added to the one before."""
        assert probe.gradient is not None
        if probe.gradient() is not gradient:
            return True
        return version_of(gradient) > probe.version + 1


def probes_of(model: torch.nn.Module, optimizers: Sequence[Any]) -> list[Tensor]:
    """The last parameter of each optimizer that learns, or else that of the model."""
    own = [p for p in model.parameters() if p.requires_grad and not torch.nn.parameter.is_lazy(p)]
    ids = {id(p) for p in own}
    held = [[p for g in o.param_groups for p in g["params"] if id(p) in ids] for o in optimizers]
    found = [params[-1] for params in held if params]
    return list({id(p): p for p in found or own[-1:]}.values())
