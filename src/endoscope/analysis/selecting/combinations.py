"""Patterns combined: both, either, not, and relations in the graph.

Each answers two questions. `mark`: which operations of a finished graph match? `early`: will this operation match, as
far as can be told the moment it has run? The answer is yes, no, or None for "not known yet".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from endoscope.analysis.selecting.plain_patterns import Early, Pattern, Selectable
from endoscope.errors import BadArgument

Parents = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class _Several:
    """What `a & b` and `a | b` have in common."""

    text: str
    parts: tuple[Selector, ...]

    @property
    def related(self) -> bool:
        return any(part.related for part in self.parts)

    def atoms(self) -> Iterator[Pattern]:
        return (atom for part in self.parts for atom in part.atoms())

    def _joined(self, join: Callable[[int, int], int], ops: Sequence[Selectable], parents: Parents) -> bytearray:
        return functools.reduce(
            lambda a, b: bytearray(map(join, a, b)), (part.mark(ops, parents) for part in self.parts)
        )


class Every(_Several):
    """`a & b`"""

    __slots__ = ()

    def matches(self, op: Selectable) -> bool:
        return all(part.matches(op) for part in self.parts)

    def mark(self, ops: Sequence[Selectable], parents: Parents) -> bytearray:
        return self._joined(int.__and__, ops, parents)

    def early(self, op: Early) -> bool | None:
        answers = _answers(self.parts, op, decisive=False)
        return False if False in answers else None if None in answers else True


class Either(_Several):
    """`a | b`"""

    __slots__ = ()

    def matches(self, op: Selectable) -> bool:
        return any(part.matches(op) for part in self.parts)

    def mark(self, ops: Sequence[Selectable], parents: Parents) -> bytearray:
        return self._joined(int.__or__, ops, parents)

    def early(self, op: Early) -> bool | None:
        answers = _answers(self.parts, op, decisive=True)
        return True if True in answers else None if None in answers else False


def _answers(parts: tuple[Selector, ...], op: Early, decisive: bool) -> list[bool | None]:
    """What the parts say, up to the first that settles it."""
    answers: list[bool | None] = []
    for part in parts:
        answers.append(part.early(op))
        if answers[-1] is decisive:
            break
    return answers


@dataclass(frozen=True, slots=True)
class Not:
    """`!a`"""

    text: str
    inner: Selector

    @property
    def related(self) -> bool:
        return self.inner.related

    def matches(self, op: Selectable) -> bool:
        return not self.inner.matches(op)

    def mark(self, ops: Sequence[Selectable], parents: Parents) -> bytearray:
        return bytearray(map((1).__sub__, self.inner.mark(ops, parents)))

    def early(self, op: Early) -> bool | None:
        inner = self.inner.early(op)
        return None if inner is None else not inner

    def atoms(self) -> Iterator[Pattern]:
        yield from self.inner.atoms()


@dataclass(frozen=True, slots=True)
class Related:
    """`child_of(a)` and the like"""

    text: str
    relation: str
    inner: Selector

    related = True

    def matches(self, op: Selectable) -> bool:
        raise BadArgument(
            f"The pattern {self.text!r} uses relations such as child_of(…), which are not known here. Use names, "
            "type:, in: and kind:, or a finished trace: trace.graph.select()."
        )

    def mark(self, ops: Sequence[Selectable], parents: Parents) -> bytearray:
        return RELATIONS[self.relation](self.inner.mark(ops, parents), parents)

    def early(self, op: Early) -> bool | None:
        """Parents are known when an operation runs; children, siblings and far ancestors have to wait."""
        if self.relation != "child_of" or op.parents is None:
            return None
        found = [self.inner.early(parent) for parent in op.parents]
        return True if True in found else None if None in found else False

    def atoms(self) -> Iterator[Pattern]:
        yield from self.inner.atoms()


Selector = Pattern | Every | Either | Not | Related


# ---- relations: marks of some nodes in, marks of their relatives out ----------------------------------------------


def _children(marks: bytearray, parents: Parents) -> bytearray:
    return bytearray(any(marks[p] for p in above) for above in parents)


def _parents(marks: bytearray, parents: Parents) -> bytearray:
    found = bytearray(len(parents))
    for node, above in enumerate(parents):
        if marks[node]:
            for parent in above:
                found[parent] = 1
    return found


def _descendants(marks: bytearray, parents: Parents) -> bytearray:
    found = bytearray(len(parents))
    for node, above in enumerate(parents):
        for parent in above:
            if marks[parent] or found[parent]:
                found[node] = 1
                break
    return found


def _ancestors(marks: bytearray, parents: Parents) -> bytearray:
    found = bytearray(len(parents))
    for node in range(len(parents) - 1, -1, -1):
        if marks[node] or found[node]:
            for parent in parents[node]:
                found[parent] = 1
    return found


def _siblings(marks: bytearray, parents: Parents) -> bytearray:
    """Nodes that share a parent with a marked one other than themselves."""
    marked_children = [0] * len(parents)
    for node, above in enumerate(parents):
        if marks[node]:
            for parent in above:
                marked_children[parent] += 1
    return bytearray(any(marked_children[p] > marks[node] for p in above) for node, above in enumerate(parents))


RELATIONS: dict[str, Callable[[bytearray, Parents], bytearray]] = {
    "child_of": _children,
    "parent_of": _parents,
    "descendant_of": _descendants,
    "ancestor_of": _ancestors,
    "sibling_of": _siblings,
}
