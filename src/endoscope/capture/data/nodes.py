"""Operations, sources, values that left: what is written down of a run. Everything else is derived from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from endoscope.capture.data.functions import FunctionFacts
from endoscope.schema.ops import Kind, SourceLine

if TYPE_CHECKING:
    import torch

#: One read: the slot that is seen; or a tuple (oldest first) where values have to be laid over each other in memory.
#: The tuple is empty where only the memory is used, whatever stands in it.
Read = int | tuple[int, ...]


def slots_of(read: Read) -> tuple[int, ...]:
    """The slots behind one read."""
    return (read,) if isinstance(read, int) else read


class Position(NamedTuple):
    """Where in the user's code something happened; turned into a line only when somebody asks."""

    code: CodeType | SourceLine | None  # a file holds no code, but the line
    instruction: int

    @property
    def place(self) -> tuple[CodeType | None, int]:
        """The code itself, if it is there."""
        return (None if isinstance(self.code, SourceLine) else self.code), self.instruction

    @property
    def line(self) -> SourceLine | None:
        code = self.code
        if code is None or isinstance(code, SourceLine):
            return code
        line = code.co_firstlineno
        for start, stop, number in code.co_lines():
            if start <= self.instruction < stop and number is not None:
                line = number
                break
        return SourceLine(code.co_filename, line, code.co_qualname)


NO_POSITION = Position(None, -1)


class Node(NamedTuple):
    """One operation or source tensor, in the order of execution. The hot path makes it with `tuple.__new__`."""

    facts: FunctionFacts
    func: Any  # None in a trace from a file, and for what is no operation
    args: Any  # as given; where tensors are not held they are replaced by `TENSOR`
    kwargs: Any
    reads: list[Read]  # one per tensor argument, in order
    slot: int  # first slot
    outputs: int  # how many slots were returned
    written: int  # how many more slots were overwritten without being returned
    started: int
    ended: int
    code: CodeType | SourceLine | None
    instruction: int
    call: int  # index into the calls, -1 outside every module
    context: Any  # autocast settings, None without autocast
    grad: bool  # whether autograd was on
    # Where the tensor is not held and there is just one:
    shape: Any = None
    dtype: Any = None
    device: Any = None  # None: the device of its first tensor argument
    grad_fn: Any = None  # class of the backward function

    @property
    def position(self) -> Position:
        return Position(self.code, self.instruction)

    @property
    def returned(self) -> range:
        """The slots of what it returned."""
        return range(self.slot, self.slot + self.outputs)

    @property
    def results(self) -> range:
        """The slots of what it returned or overwrote."""
        return range(self.slot, self.slot + self.outputs + self.written)


class Draw(NamedTuple):
    """Where an operation drew its random numbers from."""

    generator: torch.Generator | None  # None for the one of the CPU
    state: Any  # before the call, as a tensor; None: as it is now
    vmaps: dict[int, str]  # level of each `vmap` around -> "different", "same" or "error"


class Applied(NamedTuple):
    """One edit of one operation, with all that is needed to apply it once more."""

    edit: Any  # change.edit.Edit; in a file how it is shown
    label: str
    forward: int = 0


class Source(NamedTuple):
    """How a tensor that no operation made came in, or went out."""

    kind: Kind
    name: str  # dotted name of a parameter or buffer, path of an input or output
    call: int


class Departure(NamedTuple):
    """A value that left torch for Python."""

    name: str
    reads: tuple[Read, ...]  # the tensors it came from
    position: Position
    call: int
    control: bool  # it can only steer control flow
    node: int  # how many nodes there were by then
    value: Any  # the number or bool that Python got; None for anything larger
    callers: tuple[tuple[CodeType, int], ...]  # the user's frames around, innermost first; none in a file


class Meta(NamedTuple):
    """What is remembered of a tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    grad_fn: str | None
    elements: int = -1  # said only where the shape cannot tell

    @property
    def numel(self) -> int:
        return int(self.elements) if self.elements >= 0 else math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.numel * self.dtype.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class RandomState:
    """One random generator as it was when the traced code began."""

    generator: str  # cpu, cuda:0, python, numpy; or the place of a `torch.Generator` among those that were used
    state: Any  # as the generator itself gives it
    used: bool  # the traced code drew from it

    def __repr__(self) -> str:
        return f"<RandomState of {self.generator}{', used' if self.used else ''}>"
