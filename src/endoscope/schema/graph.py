"""Nodes and edges of a dependency graph, as plain data: of a trace, of a recording, of the page that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from endoscope.schema.ops import SourceLine

#: Which argument takes it ("0", "0[2]" inside a list, "mask" by keyword), and which output of the parent it is.
Use = tuple[str, int]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operation or source tensor."""

    number: int  # in the graph that it was first part of; contraction keeps it
    label: str
    type: str  # plain name of the function
    kind: str  # one of schema.ops.Kind, or a word of a recording
    keys: tuple[str, ...] = ()  # every text under which it is found
    shapes: tuple[tuple[int, ...], ...] = ()  # of everything it returned
    calls: tuple[str, ...] = ()  # calls of modules around it, outermost first: encoder:1, encoder.2:1
    source: SourceLine | None = None
    settings: str = ""  # arguments that are no tensors, as text that is the same for every batch size

    @property
    def modules(self) -> tuple[str, ...]:
        """The same as `calls`, without the number of the call."""
        return tuple([call.rpartition(":")[0] for call in self.calls])


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class GraphEdge(Generic[Item]):
    """`target` reads `source`, directly or, in a contracted graph, through nodes that were left out."""

    source: Item
    target: Item
    uses: tuple[Use, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Where it arrives: "0", "1", "0[2]", "mask"; "" if it was read without being an argument."""
        return tuple(dict.fromkeys(argument for argument, _ in self.uses))

    @property
    def outputs(self) -> tuple[int, ...]:
        """Which of the tensors that the source returned are read."""
        return tuple(dict.fromkeys(output for _, output in self.uses))

    def __str__(self) -> str:
        ends = [str(getattr(end, "label", end)) for end in (self.source, self.target)]
        return f"{ends[0]} -> {ends[1]} ({', '.join(self.arguments)})"
