"""All that was written down of one run. A `Recorder` fills it while code runs, `file/load.py` from a file.

A trace reads this and nothing else. Functions and modules themselves are in a recorder only: `live` is the one way to
them, and says what to type where there are none.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from endoscope.analysis.branching.branches import Decision
from endoscope.capture.data.calls import Calls
from endoscope.capture.data.nodes import Departure, Draw, Meta, Node, Read, Source
from endoscope.schema.ops import Notice


class Overwritten(Exception):
    """The kept tensor is not what it was."""


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What is told of a module beside its calls."""

    address: str
    type: str
    children: tuple[str, ...]  # addresses of the modules directly inside
    parameters: int  # how many numbers, with everything inside
    trainable: int
    bytes: int
    training: bool


class Record:
    """The lists and tables by node number (order of execution) and slot number (order of creation)."""

    nodes: list[Node]
    calls: Calls
    rng: dict[int, Draw]  # node -> where it drew random numbers from
    sources: dict[int, Source]  # node -> where it came from
    sequences: set[int]  # nodes whose function returned a list or tuple
    hidden_reads: dict[int, list[Read]]  # node -> what an opaque body reads besides its arguments
    edited: dict[int, list[Any]]  # node -> edit.Applied, in order
    slot_node: list[int]  # slot -> node
    departures: list[Departure]
    notices: list[Notice]
    full: bool  # all values were kept
    save_text = "'all'"  # what the user asked to keep
    chosen: set[int] | None = None  # nodes that `save` selected; None for all

    file: Path | None = None  # from which it was loaded

    # What is told by code and modules, which a file does not hold; None: they are here to be asked.
    statements: dict[int, int] | None = None  # node -> number, equal where the same statement ran again
    decisions: list[Decision[int]] | None = None
    modules: list[ModuleFacts] | None = None

    def learned(self) -> Set[int]:
        """Constants and inputs that can learn: weights that belong to no module."""
        raise NotImplementedError

    def live(self, trace: Any) -> Any:
        """`trace`, or the same trace with functions and modules; an error that says what to type if nobody has them."""
        raise NotImplementedError


class Values(Protocol):
    """Values, gradients and tensor facts of a trace, by slot."""

    def value(self, slot: int, label: str, layer: str, kept: bool) -> Any:
        """The value of an operation, or an error that names it."""
        ...

    def tensor(self, slot: int) -> Any:
        """The kept value itself; raises KeyError if there is none and `Overwritten` if it is gone."""
        ...

    def gradient(self, slot: int) -> Any: ...

    def random_state(self, node: int) -> Any:
        """State of the random generator before a call that draws from it; None for all others."""
        ...

    def meta(self, slot: int) -> Meta: ...

    def shape(self, slot: int) -> tuple[int, ...]:
        """Like that of `meta`, without looking at anything else."""
        ...

    def shape_of(self, argument: Any) -> tuple[int, ...] | None:
        """The shape of a tensor among the arguments of a call; None if it is that of the value which was read."""
        ...

    def freeze(self) -> None:
        """Copy what others might still change."""
        ...
