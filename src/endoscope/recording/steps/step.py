"""`with run.step() as step:` what the user can say about a training step while it runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import torch

from endoscope.errors import BadArgument
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.output.metrics import held_number

if TYPE_CHECKING:
    from endoscope.recording.hooks.captured import Captured
    from endoscope.recording.hooks.hooks import Hooks

KINDS = ("input", "target", "loss", "computed")
_NOT_SAID: Any = object()


class Owner(Protocol):
    """What a step needs of the steps of its run."""

    @property
    def shield(self) -> Callable[[str], contextlib.AbstractContextManager[Any]]: ...

    def enter(self, step: Step) -> None: ...
    def leave(self, step: Step) -> None: ...
    def decided(self, step: Step, late: bool) -> None: ...
    def report(self, name: str, value: Any) -> None: ...


class Step:
    """One training step. Where nothing is captured every method returns at once."""

    captured: Captured | None = None
    hooks: Hooks | None = None
    keep: bool | None = None  # what the user decided
    samples: list[int] | None = None
    categories: list[str] | None = None
    began = 0.0  # by the clock
    forwards = 0
    began_with_part = False  # with a call of a part of a model
    failed = False  # a forward pass of it raised an exception
    moved = False  # an optimizer has stepped, and the step goes on
    ended = False
    in_pause = False
    skipped = False  # its gradients were cleared, or found to be infinite, before an optimizer used them
    iteration = -1  # returns to the first optimizer so far
    updated = ""  # what was moved, where several optimizers take turns: the type of a step that was not given one
    is_in_part = False
    part_from = 0  # captured tensors before the first forward pass after the last backward pass
    part_forwards = 0

    def __init__(self, steps: Owner, number: int, type_: str | None, explicit: bool) -> None:
        self._steps = steps
        self.number = number
        self.type = type_
        self.explicit = explicit
        self.thread = threading.get_ident()
        self.metrics: dict[str, Any] = {}
        self.part_metrics: dict[str, Any] = {}  # reported in that part
        self.settings: dict[str, Any] = {}
        self.optimizers: list[int] = []  # ids of those that have stepped
        self.settings_of: list[dict[str, Any]] = []  # of optimizers, at the first recorded step of each

    @property
    def recording(self) -> bool:
        """Whether values are held, so that this step may be recorded."""
        return self.captured is not None

    # ---- what the user says ----------------------------------------------------------------------

    def tag(
        self, name: str, tensor: Any, *, role: str | None = None, kind: str | None = None, batch_dim: int | None = 0
    ) -> Any:
        """Record `tensor` as (one role of) the node `name`; returns the tensor."""
        with self._steps.shield(f"tag {name!r}"):
            if kind is not None and kind not in KINDS:
                raise BadArgument(f"step.tag({name!r}, kind={kind!r}): a kind is one of {', '.join(KINDS)}.")
            if not isinstance(tensor, torch.Tensor):
                raise BadArgument(f"step.tag({name!r}, …) needs a tensor, not {type(tensor).__name__}.")
            if self.captured is not None:
                self.captured.tag(str(name), "" if role is None else str(role), kind or "computed", tensor, batch_dim)
        return tensor

    def link(self, a: Any, b: Any) -> None:
        """State that `b` depends on `a`: tensors, or names of nodes."""
        if self.captured is not None:
            with self._steps.shield("link"):
                self.captured.link(a, b)

    @contextlib.contextmanager
    def gradients(self, loss: str) -> Iterator[None]:
        """What `backward()` computes in this block are the gradients of `loss`."""
        if self.captured is None:
            yield
            return
        gradients = self.captured.gradients
        before = gradients.begin_block(str(loss))
        try:
            yield
        finally:
            gradients.end_block(before)

    def metric(self, name: str, value: Any) -> None:
        """A number of this step, kept whether the step is recorded or not. Of a tensor per sample the mean is kept."""
        with self._steps.shield(f"metric {name!r}"):
            if self.ended:
                self._steps.report(str(name), value)
            else:
                metrics = self.part_metrics if self.is_in_part else self.metrics
                metrics[str(name)] = held_number(value)

    def config(self, **settings: Any) -> None:
        """Facts about this step, such as the learning rate."""
        self.settings.update(settings)

    def decide(
        self,
        *,
        type: str | None = None,
        keep: Any = _NOT_SAID,
        samples: Sequence[int] | None = None,
        categories: Sequence[Any] | None = None,
    ) -> None:
        """Say, any time before the step ends, what it was and whether it is kept, and which samples of it.

        With `keep=False` its values are let go of at once, so that word is the last one.
        """
        with self._steps.shield("decide"), quiet():
            if type is not None:
                self.type = str(type)
            if keep is not _NOT_SAID:
                self.keep = None if keep is None else bool(keep)
            if samples is not None:
                self.samples = [int(s) for s in _listed(samples)]
            if categories is not None:
                self.categories = [str(c) for c in _listed(categories)]
            self._steps.decided(self, type is not None or keep is not _NOT_SAID)

    # ---- as a block ------------------------------------------------------------------------------

    def __enter__(self) -> Step:
        self._steps.enter(self)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.settings["exception"] = f"{type(error).__name__}: {error}"
        self._steps.leave(self)

    def __repr__(self) -> str:
        state = "recording" if self.captured is not None else "not recorded"
        return f"<Step {self.number}{f' of type {self.type!r}' if self.type else ''}: {state}>"


def _listed(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values
