"""What the recorder asks of its helpers, so that it need not know who they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    from endoscope.capture.data.functions import FunctionFacts
    from endoscope.capture.data.nodes import Position
    from endoscope.capture.record.records import TorchCall


class Keeps(Protocol):
    """Decides which values are kept."""

    types: dict[str, bool]  # may an operation of this type be kept? A type that is missing may
    idle: bool  # it keeps nothing
    names_modules: bool

    def wants(self, node: int, slot: int, tensor: Tensor) -> bool: ...

    def place(self, call: int) -> str:
        """For operations inside of a call of a module: "in" (keep), "result" (keep what it returns), "no"."""
        ...

    def module_ended(self, call: int) -> None: ...


class AppliesEdits(Protocol):
    """Changes values on their way."""

    def call(
        self, func: Callable[..., Any], facts: FunctionFacts, position: Position, written: list[Tensor],
        args: Any, kwargs: dict[str, Any],
    ) -> Any: ...  # fmt: skip

    def edited(self, call: TorchCall, out: Any, found: list[Tensor]) -> tuple[Any, list[Tensor]]: ...

    def seen(self, tensor: Tensor) -> Tensor: ...

    def source(self, kind: Kind, name: str, tensor: Tensor) -> Tensor: ...

    def begins_with(self, call: int) -> bool: ...


class NotesOutcome(Protocol):
    """Told what becomes of each operation, so that an error of ours is told from one of the operation."""

    def call(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any: ...

    def raised(self, error: BaseException) -> None: ...

    def returned(self, out: Any) -> None: ...
