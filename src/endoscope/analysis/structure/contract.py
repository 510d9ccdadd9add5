"""Contraction: a graph of chosen nodes only, with an edge wherever a path leads through no other chosen one.

    front of a node that was left out = the chosen nodes that reach it through nodes that were left out
                                      = all fronts of its parents together, in one sweep from top to bottom

A front is a small set or, once it is large, the bits of one whole number: a union then takes a few machine
instructions. Nodes whose parents agree share one front, so a long chain or a residual stream costs nothing extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from endoscope.analysis.structure.reach import Parents
from endoscope.schema.graph import Use

Front = frozenset[int] | int  # members, or a whole number whose bits are the members
#: Per node what it reads: number of the parent, and how.
Links = Sequence[Sequence[tuple[int, tuple[Use, ...]]]]

SMALL = 48  # members; above, bits are faster than sets
_NOTHING: frozenset[int] = frozenset()


def contract(parents: Parents, chosen: Sequence[int]) -> list[tuple[int, ...]]:
    """Parents of the chosen nodes, ascending; numbers are positions in `chosen`, which must ascend, too."""
    position = {node: i for i, node in enumerate(chosen)}
    fronts = _Fronts(parents)
    found: list[tuple[int, ...]] = []
    for node, above in enumerate(parents):
        front = fronts.joined(above)
        if node in position:
            found.append(tuple(members(front)))
            front = frozenset((position[node],))
        fronts.put(node, front)
    return found


def contract_links(links: Links, chosen: Sequence[int]) -> list[list[tuple[int, tuple[Use, ...]]]]:
    """The same with the arguments through which each parent arrives, and the outputs that start on the way.

    Members of the fronts are outputs of chosen nodes here. The work is that of `contract`, and what it hands out.
    """
    position = {node: i for i, node in enumerate(chosen)}
    numbers: dict[tuple[int, int], int] = {}  # output of a chosen node -> its number
    outputs: list[tuple[int, int]] = []
    fronts = _Fronts([[parent for parent, _ in above] for above in links])
    found: list[list[tuple[int, tuple[Use, ...]]]] = []

    def front_of(parent: int, uses: tuple[Use, ...]) -> Front:
        front = fronts.take(parent)
        if parent not in position:
            return front
        ends = dict.fromkeys((position[parent], output) for _, output in uses)
        for end in ends:
            if end not in numbers:
                numbers[end] = len(outputs)
                outputs.append(end)
        return frozenset(numbers[end] for end in ends)

    for node, above in enumerate(links):
        arriving = [(front_of(parent, uses), uses, parent in position) for parent, uses in above]
        if node in position:
            found.append(_gathered(arriving, outputs))
        else:
            fronts.put(node, join([front for front, _, _ in arriving]))
    return found


def _gathered(
    arriving: list[tuple[Front, tuple[Use, ...], bool]], outputs: list[tuple[int, int]]
) -> list[tuple[int, tuple[Use, ...]]]:
    """What one chosen node reads, by chosen parent, ascending."""
    by_parent: dict[int, dict[Use, None]] = {}
    for front, uses, direct in arriving:
        for member in members(front):
            parent, output = outputs[member]
            found = by_parent.setdefault(parent, {})
            for argument, own in uses:
                if not direct or own == output:
                    found[argument, output] = None
    return [(parent, tuple(by_parent[parent])) for parent in sorted(by_parent)]


class _Fronts:
    """Fronts by node, each let go of with its last reader."""

    def __init__(self, parents: Parents) -> None:
        self._waiting = [0] * len(parents)
        for above in parents:
            for parent in above:
                self._waiting[parent] += 1
        self._fronts: dict[int, Front] = {}

    def put(self, node: int, front: Front) -> None:
        if self._waiting[node]:
            self._fronts[node] = front

    def take(self, node: int) -> Front:
        self._waiting[node] -= 1
        if self._waiting[node]:
            return self._fronts.get(node, _NOTHING)
        return self._fronts.pop(node, _NOTHING)

    def joined(self, nodes: Iterable[int]) -> Front:
        return join([self.take(node) for node in nodes])


def join(fronts: Sequence[Front]) -> Front:
    """The union; one of the given objects itself where that is enough."""
    distinct = list({id(front): front for front in fronts if front}.values())
    if len(distinct) < 2:
        return distinct[0] if distinct else _NOTHING
    small = [front for front in distinct if isinstance(front, frozenset)]
    union = _NOTHING.union(*small)
    if len(small) == len(distinct) and len(union) <= SMALL:
        largest = max(small, key=len)
        return largest if len(largest) == len(union) else union
    bits = _bits(union)
    for front in distinct:
        if isinstance(front, int):
            bits |= front
    return bits


def _bits(front: frozenset[int]) -> int:
    if not front:
        return 0
    octets = bytearray(max(front) // 8 + 1)
    for member in front:
        octets[member >> 3] |= 1 << (member & 7)
    return int.from_bytes(octets, "little")


def members(front: Front) -> Iterator[int]:
    """In ascending order."""
    if isinstance(front, frozenset):
        yield from sorted(front)
        return
    text = bin(front)[:1:-1]  # the lowest bit first
    at = text.find("1")
    while at >= 0:
        yield at
        at = text.find("1", at + 1)
