"""Runs that are written down operation by operation, without torch."""

from __future__ import annotations

from collections.abc import Sequence

from endoscope.analysis.recurrence import OpFacts


class Program:
    """A run with one input. An operation reads the last one unless told otherwise."""

    def __init__(self) -> None:
        self.input = 0
        self.last = 0
        self.parents: list[tuple[int, ...]] = [()]
        self.nodes = [0]
        self.types = ["input"]
        self.statements = [-1]
        self.signatures: list[object] = [None]
        self.modules: list[tuple[str, ...]] = [()]
        self.parameters: dict[str, int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def do(
        self,
        function: str,
        *,
        line: object = None,
        reads: Sequence[int] | None = None,
        parameters: Sequence[str] = (),
        modules: tuple[str, ...] = (),
    ) -> int:
        """Run a function at a line of the source (by default each function has its own); returns the node."""
        used = [self._parameter(name) for name in parameters]
        self.parents.append((*(reads if reads is not None else [self.last]), *used))
        self.last = len(self.parents) - 1
        self.nodes.append(self.last)
        self.types.append(function)
        place = (function, line, modules[-1:])
        self.statements.append(self._numbers.setdefault(place, len(self._numbers)))
        self.signatures.append(function)
        self.modules.append(modules)
        return self.last

    def _parameter(self, name: str) -> int:
        if name not in self.parameters:
            self.parents.append(())
            self.parameters[name] = len(self.parents) - 1
        return self.parameters[name]

    def facts(self) -> OpFacts:
        return OpFacts(
            nodes=self.nodes,
            types=self.types,
            statements=self.statements,
            parents=self.parents,
            parameters=frozenset(self.parameters.values()),
            buffers=frozenset(),
            constants=frozenset(),
            signature=lambda op: self.signatures[op],
            modules=lambda op: self.modules[op],
            reads=lambda op: tuple([(parent, 0) for parent in self.parents[self.nodes[op]]]),
        )
