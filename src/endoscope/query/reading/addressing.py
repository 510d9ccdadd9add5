"""From what a user types (node, of, role, pass) to the numbers of keys, or to an error that says what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from endoscope.analysis.selecting.patterns import nearest
from endoscope.errors import BadArgument, LookupFailed
from endoscope.schema.recording import GRADIENT, Key

_MOST_SHOWN = 8


class Keys:
    """All tensors of a recording, by number and by node."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.by_number: dict[int, Key] = {}
        self._of_node: dict[str, list[int]] = {}
        shapes = [tuple(shape) for shape in columns["shape"]]
        fields = (columns["node"], columns["role"], columns["pass"], columns["of"], columns["kind"], shapes,
                  *(columns[name] for name in ("dtype", "batch_dim", "module", "source", "placement")))  # fmt: skip
        for number, *row in zip(columns["key"], *fields, strict=True):
            self.by_number[number] = Key(*row)
            self._of_node.setdefault(row[0], []).append(number)

    @property
    def nodes(self) -> list[str]:
        """Names of nodes, in the order in which they were first recorded."""
        return list(self._of_node)

    @property
    def losses(self) -> list[str]:
        """Names of the losses whose gradients were recorded."""
        of = dict.fromkeys(key.of for key in self.by_number.values())
        return [word.removeprefix(GRADIENT) for word in of if word.startswith(GRADIENT)]

    def of_node(self, node: str) -> list[Key]:
        """Everything that was recorded of a node."""
        return [self.by_number[number] for number in self._numbers(node)]

    def select(self, node: str, of: str, role: str | None, pass_: int | None) -> list[int]:
        """The keys of one tensor: several if its shape changed between steps."""
        numbers = self._numbers(node)
        of = self._which_of(node, of, numbers)
        numbers = [number for number in numbers if self.by_number[number].of == of]
        role = self._which_role(node, of, role, numbers)
        numbers = [number for number in numbers if self.by_number[number].role == role]
        pass_ = self._which_pass(node, of, pass_, numbers)
        return [number for number in numbers if self.by_number[number].pass_ == pass_]

    def _numbers(self, node: str) -> list[int]:
        if not isinstance(node, str):
            raise BadArgument(f"A node is named by a text such as 'encoder.2', not by {node!r}.")
        if node not in self._of_node:
            if not self._of_node:
                raise LookupFailed(f"There is no node {node!r}: no tensor has been recorded.")
            near = ", ".join(repr(name) for name in nearest(node, self._of_node))
            raise LookupFailed(
                f"There is no node {node!r} in this recording. Nearest: {near}. "
                f"`recording.nodes` lists all {len(self._of_node)}."
            )
        return self._of_node[node]

    def _which_of(self, node: str, of: str, numbers: Sequence[int]) -> str:
        """`value` of a parameter is the parameter; `gradient` is the gradient of the only loss."""
        there = list(dict.fromkeys(self.by_number[number].of for number in numbers))
        if of in there:
            return of
        if of == "value" and "parameter" in there:
            return "parameter"
        if of == "gradient":
            gradients = [word for word in there if word.startswith(GRADIENT)]
            if len(gradients) == 1:
                return gradients[0]
            if gradients:
                raise LookupFailed(
                    f"{node!r} has gradients of {len(gradients)} losses. Say which: {_options('of', gradients)}."
                )
        raise LookupFailed(f"Node {node!r} has no {of!r}. It has: {_options('of', there)}.")

    def _which_role(self, node: str, of: str, role: str | None, numbers: Sequence[int]) -> str:
        there = list(dict.fromkeys(self.by_number[number].role for number in numbers))
        if role is None and len(there) == 1:
            return there[0]
        if role is None:
            raise LookupFailed(f"{node!r} ({of}) has {len(there)} roles. Say which: {_options('role', there)}.")
        if role not in there:
            raise LookupFailed(f"{node!r} ({of}) has no role {role!r}. Recorded: {_options('role', there)}.")
        return role

    def _which_pass(self, node: str, of: str, pass_: int | None, numbers: Sequence[int]) -> int:
        there = sorted({self.by_number[number].pass_ for number in numbers})
        if pass_ is None:
            return there[0]
        if pass_ not in there:
            raise LookupFailed(f"{node!r} ({of}) has no pass {pass_!r}. Recorded: {_options('pass_', there)}.")
        return pass_


def _options(parameter: str, values: Sequence[object]) -> str:
    shown = ", ".join(f"{parameter}={value!r}" for value in values[:_MOST_SHOWN])
    return shown + (f" and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else "")
