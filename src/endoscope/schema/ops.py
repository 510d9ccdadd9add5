"""What an operation of a traced forward pass is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Where the tensor of a node comes from."""

    INPUT = "input"  # handed to the target by its caller
    OUTPUT = "output"  # returned by the target
    PARAMETER = "parameter"  # a trainable (or frozen) nn.Parameter of the target
    BUFFER = "buffer"  # a registered buffer of the target
    COMPUTED = "computed"  # made by an operation from other tensors
    GENERATED = "generated"  # made by an operation from no tensor: zeros, rand, arange, tensor([...])
    CONSTANT = "constant"  # existed before, or came from code that could not be seen


#: Kinds that take a number in the naming scheme and stand in ``trace.ops``.
NUMBERED = frozenset({Kind.INPUT, Kind.OUTPUT, Kind.COMPUTED, Kind.GENERATED})


@dataclass(frozen=True, slots=True)
class SourceLine:
    """The user's line that asked for an operation."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the trace could not see, or saw and wants known."""

    kind: str  # script, left, thread, generator, overwritten, opaque
    message: str
    source: SourceLine | None = None

    def __str__(self) -> str:
        return f"{self.message} ({self.source})" if self.source else self.message
