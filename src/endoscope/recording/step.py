"""`with run.step() as step:` what the user can say about a training step while it runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from endoscope.errors import BadArgument

if TYPE_CHECKING:
    from endoscope.recording.capture import Capture
    from endoscope.recording.run import Run

KINDS = ("input", "target", "loss", "computed")
_NOT_SAID: Any = object()


class Step:
    """One training step. Where nothing is captured every method returns at once."""

    def __init__(self, run: Run, number: int, type_: str | None, explicit: bool) -> None:
        self._run = run
        self.number = number
        self.type = type_
        self.explicit = explicit
        self.thread = threading.get_ident()
        self.capture: Capture | None = None
        self.metrics: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}
        self.keep: bool | None = None  # what the user decided
        self.samples: list[int] | None = None
        self.categories: list[str] | None = None
        self.forwards = 0
        self.spent = 0.0  # seconds of the training thread that went into recording it
        self.failed = False  # a forward pass of it raised an exception
        self.moved = False  # an optimizer has stepped, and the step goes on

    @property
    def recording(self) -> bool:
        """Whether values are held, so that this step may be recorded."""
        return self.capture is not None

    # ---- what the user says ----------------------------------------------------------------------

    def tag(
        self, name: str, tensor: Any, *, role: str | None = None, kind: str | None = None, batch_dim: int | None = 0
    ) -> Any:
        """Record `tensor` as (one role of) the node `name`; returns the tensor."""
        with self._run.shield(f"tag {name!r}"):
            if kind is not None and kind not in KINDS:
                raise BadArgument(f"step.tag({name!r}, kind={kind!r}): a kind is one of {', '.join(KINDS)}.")
            if not isinstance(tensor, torch.Tensor):
                raise BadArgument(f"step.tag({name!r}, …) needs a tensor, not {type(tensor).__name__}.")
            if self.capture is not None:
                self.capture.tag(str(name), "" if role is None else str(role), kind or "computed", tensor, batch_dim)
        return tensor

    def link(self, a: Any, b: Any) -> None:
        """State that `b` depends on `a`: tensors, or names of nodes."""
        if self.capture is not None:
            with self._run.shield("link"):
                self.capture.link(a, b)

    @contextlib.contextmanager
    def gradients(self, loss: str) -> Iterator[None]:
        """What `backward()` computes in this block are the gradients of `loss`."""
        if self.capture is None:
            yield
            return
        gradients = self.capture.gradients
        before, gradients.current = gradients.current, str(loss)
        try:
            yield
        finally:
            gradients.current = before

    def metric(self, name: str, value: Any) -> None:
        """A number of this step, kept whether the step is recorded or not. Of a tensor per sample the mean is kept."""
        with self._run.shield(f"metric {name!r}"):
            self.metrics[str(name)] = plain_number(value)

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
        try:
            with torch._C.DisableTorchFunction():
                if type is not None:
                    self.type = str(type)
                if keep is not _NOT_SAID:
                    self.keep = None if keep is None else bool(keep)
                if samples is not None:
                    self.samples = [int(s) for s in _listed(samples)]
                if categories is not None:
                    self.categories = [str(c) for c in _listed(categories)]
                if type is not None or keep is not _NOT_SAID:
                    self._run._schedule.user_decides = True
                if self.keep is False and self.capture is not None:
                    self._run._decided_against(self, self.capture)
        except Exception as error:
            self._run.shield.failed("decide", error)

    # ---- as a block ------------------------------------------------------------------------------

    def __enter__(self) -> Step:
        run = self._run
        try:
            if run._open is not None:
                run._make_way(run._open)
            run._begin(self)
        except Exception as error:
            run.shield.failed("the beginning of a step", error)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        run = self._run
        if run._open is not self:
            return
        if error is not None:
            self.settings["exception"] = f"{type(error).__name__}: {error}"
        try:
            run._finish(self)
        except Exception as problem:
            run.shield.failed("the end of a step", problem)

    def __repr__(self) -> str:
        state = "recording" if self.capture is not None else "not recorded"
        return f"<Step {self.number}{f' of type {self.type!r}' if self.type else ''}: {state}>"


def _listed(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values


def plain_number(value: Any) -> Any:
    """A float; of several numbers a numpy array, one element per sample."""
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction(), torch.no_grad():
            value = value.detach()
            if value.numel() == 1:
                return float(value.item())
            value = value.to(torch.float64).cpu().numpy()
    if hasattr(value, "shape") or isinstance(value, (list, tuple)):
        value = np.array(value, dtype=np.float64)  # a copy
        if value.size == 0:
            raise BadArgument("a metric is a number, or one number for each sample; this one is empty.")
        return value if value.size > 1 else float(value.item())
    return float(value)
