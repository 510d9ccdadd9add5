"""A hash of the structure: equal for equal architectures, in every process and every version of Python.

The graph is written down as text, and the text is hashed. It starts at the outputs and goes up, argument by argument,
so the order in which independent branches happened to run does not matter, nor do names, numbers or modules:

    parameter (8, 4)
    input 0
    linear [] 0←1 1←0          type, settings, and for each argument the line that it comes from

What leads to no output follows, in order of execution. Two graphs with the same text are the same graph.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator, Sequence

from endoscope.analysis.structure.contract import Links
from endoscope.schema.graph import GraphNode, Use
from endoscope.schema.ops import Kind

#: Changes when the text below does, so that hashes of two releases are either comparable or different.
_VERSION = "structure 1"
_MADE = (Kind.COMPUTED, Kind.GENERATED)

Read = tuple[str, int, int]  # argument, output of the source, source


def structure_hash(nodes: Sequence[GraphNode], links: Links) -> str:
    """32 hexadecimal digits."""
    inputs = [i for i, node in enumerate(nodes) if node.kind == Kind.INPUT]
    place = {node: i for i, node in enumerate(inputs)}
    line = [0] * len(nodes)
    digest = hashlib.sha256(_VERSION.encode())
    for count, (number, reads) in enumerate(_from_the_outputs(nodes, links)):
        line[number] = count
        node = nodes[number]
        shapes = node.shapes if node.kind == Kind.PARAMETER else ()
        lines = [(argument, output, line[source]) for argument, output, source in reads]
        digest.update(repr((node.type, node.settings, shapes, place.get(number), lines)).encode() + b"\n")
    return digest.hexdigest()[:32]


def _from_the_outputs(nodes: Sequence[GraphNode], links: Links) -> Iterator[tuple[int, list[Read]]]:
    """Every node once, after everything that it reads."""
    seen = bytearray(len(nodes))
    for root in _roots(nodes, links):
        seen[root] = 1
        reads = _reads(links[root])
        waiting = [(root, reads, iter(reads))]
        while waiting:
            node, reads, rest = waiting[-1]
            for _, _, source in rest:
                if not seen[source]:
                    seen[source] = 1
                    above = _reads(links[source])
                    waiting.append((source, above, iter(above)))
                    break
            else:
                waiting.pop()
                yield node, reads


def _roots(nodes: Sequence[GraphNode], links: Links) -> list[int]:
    """Outputs, then all operations that nobody reads."""
    read = {source for own in links for source, _ in own}
    outputs = [i for i, node in enumerate(nodes) if node.kind == Kind.OUTPUT]
    ends = [i for i, node in enumerate(nodes) if i not in read and (links[i] or node.kind in _MADE)]
    return [*outputs, *(i for i in ends if nodes[i].kind != Kind.OUTPUT)]


def _reads(own: Sequence[tuple[int, tuple[Use, ...]]]) -> list[Read]:
    """In the order of the arguments."""
    found = [(argument, output, source) for source, uses in own for argument, output in uses]
    return found if len(found) == 1 else sorted(found, key=_order)


def _order(read: Read) -> tuple[bool, str, tuple[int, ...]]:
    return _argument_order(read[0])


@functools.lru_cache(maxsize=4096)
def _argument_order(argument: str) -> tuple[bool, str, tuple[int, ...]]:
    """Positions by number, then what was no argument, then keywords by name."""
    name = argument.partition("[")[0]
    keyword = not name.isdigit()
    return keyword, name if keyword else "", tuple(map(int, re.findall(r"\d+", argument)))
