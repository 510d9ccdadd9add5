"""Whose error is it that is raised while an operation of the user is heard? Ours must not reach training."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from endoscope.capture.record.protocols import NotesOutcome


class Outcome:
    """What has become of the operation that is being heard: the recorder says so around its call."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Errors hold frames, and these hold tensors."""
        self.error: BaseException | None = None  # that the operation has raised
        self.is_done = False
        self.result: Any = None

    def call(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """The operation itself."""
        try:
            out = func(*args, **kwargs)
        except BaseException as error:
            self.raised(error)
            raise
        self.returned(out)
        return out

    def raised(self, error: BaseException) -> None:
        self.error = error

    def returned(self, out: Any) -> None:
        self.is_done, self.result = True, out


class Hearing(Protocol):
    """The recorder of a traced step."""

    outcome: NotesOutcome | None
    given_up: bool
    resting: bool

    def give_up(self, where: str, error: BaseException) -> None: ...


def shielded(recorder: Hearing, hear: Callable[..., Any]) -> Callable[..., Any]:
    """If an error in `hear` is ours, the operation's own result is handed on, and the recorder stops hearing."""
    outcome = recorder.outcome = Outcome()

    def shielded(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if recorder.given_up or recorder.resting:
            return func(*args, **(kwargs or {}))
        outcome.forget()
        try:
            return hear(mode, func, types, args, kwargs)
        except Exception as error:
            if error is outcome.error:
                raise
            recorder.give_up(f"torch.{getattr(func, '__name__', func)}", error)
            return outcome.result if outcome.is_done else func(*args, **(kwargs or {}))
        finally:
            outcome.forget()

    return shielded
