"""Which boxes a drawing has, so that a large graph stays readable.

A module is drawn closed, as one box, or open, as what is in it. Modules with findings are opened first, then others,
while there is room. Equal neighbours without findings, such as blocks 3 to 11 of a stack, are one box.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from endoscope.report.network import Network, Part

MOST_BOXES = 40
MOST_WITH_FINDINGS = 60  # where findings ask for more
_STACK = 4  # of so many equal siblings or more only the first is opened, if no finding asks for others
_NUMBERED = re.compile(r"(.*\.)?(\d+)")


@dataclass(slots=True)
class Box:
    """One node, one closed module, or several equal modules."""

    key: str
    title: str
    note: str
    kind: str
    position: int
    members: list[str] = field(default_factory=list)  # names of nodes


@dataclass(frozen=True, slots=True)
class Folded:
    """What is drawn."""

    boxes: dict[str, Box]
    edges: list[tuple[str, str]]
    box_of: dict[str, str]  # name of a node -> its box


def fold(network: Network, flagged: Iterable[str]) -> Folded:
    """`flagged` are names of nodes with findings, the most important first."""
    marked = [place for name in flagged if (place := network.place_of(name))]
    inside = _contents(network)
    opened: set[str] = set()
    for address in _wanted(network, inside, marked):
        enough = MOST_WITH_FINDINGS if any(name in inside[address] for name in marked) else MOST_BOXES
        attempt = opened | {address}
        if (
            set(_around(address, inside)) <= opened
            and len(set(_keys(network, inside, attempt, marked).values())) <= enough
        ):
            opened = attempt
    return _build(network, _keys(network, inside, opened, marked))


def _contents(network: Network) -> dict[str, dict[str, None]]:
    """Module -> names of all nodes in it; of modules that hold more than one node."""
    found: dict[str, dict[str, None]] = {}
    for part in network.parts.values():
        for address in part.modules:
            found.setdefault(address, {})[part.name] = None
    return {address: names for address, names in found.items() if len(names) > 1}


def _around(address: str, inside: dict[str, dict[str, None]]) -> list[str]:
    """Modules around a module, by its address."""
    pieces = address.split(".")
    return [outer for n in range(1, len(pieces)) if (outer := ".".join(pieces[:n])) in inside]


def _wanted(network: Network, inside: dict[str, dict[str, None]], marked: list[str]) -> list[str]:
    """Modules in the order in which they should be opened; those around others come before them."""
    asked = dict.fromkeys(address for name in marked for address in network.parts[name].modules if address in inside)
    stacks: dict[tuple[str, str], int] = {}
    others = []
    for address in sorted(inside, key=lambda name: (name.count("."), -len(inside[name]), natural(name))):
        numbered = _NUMBERED.fullmatch(address)
        if numbered:
            stack = (numbered[1] or "", network.types.get(address, ""))
            stacks[stack] = stacks.get(stack, 0) + 1
    first: set[tuple[str, str]] = set()
    for address in sorted(inside, key=lambda name: (name.count("."), natural(name))):
        numbered = _NUMBERED.fullmatch(address)
        stack = ((numbered[1] or ""), network.types.get(address, "")) if numbered else ("", "")
        if numbered and stacks[stack] > _STACK:
            if stack in first:
                continue
            first.add(stack)
        others.append(address)
    return [*asked, *(address for address in others if address not in asked)]


def natural(address: str) -> tuple[tuple[int, int | str], ...]:
    """For sorting: layers.2 before layers.10."""
    return tuple((0, int(piece)) if piece.isdigit() else (1, piece) for piece in address.split("."))


def _keys(network: Network, inside: dict[str, dict[str, None]], opened: set[str], marked: list[str]) -> dict[str, str]:
    """Name of a node -> key of its box."""
    closed = {
        part.name: next((address for address in part.modules if address in inside and address not in opened), "")
        for part in network.parts.values()
    }
    merged = _stacks(network, inside, {address for address in closed.values() if address}, marked)
    return {
        name: merged.get(address, f"module {address}") if address else f"node {name}"
        for name, address in closed.items()
    }


def _stacks(
    network: Network, inside: dict[str, dict[str, None]], closed: set[str], marked: list[str]
) -> dict[str, str]:
    """Closed module -> key of the stack of equal ones that it is drawn in."""
    runs: list[list[str]] = []
    for address in sorted(closed, key=natural):
        numbered = _NUMBERED.fullmatch(address)
        if not numbered or any(name in inside[address] for name in marked):
            continue
        last = _NUMBERED.fullmatch(runs[-1][-1]) if runs else None
        follows = last is not None and last[1] == numbered[1] and int(last[2]) + 1 == int(numbered[2])
        if follows and _form(network, inside, runs[-1][-1]) == _form(network, inside, address):
            runs[-1].append(address)
        else:
            runs.append([address])
    return {address: f"stack {run[0]} {run[-1]}" for run in runs if len(run) > 1 for address in run}


def _form(network: Network, inside: dict[str, dict[str, None]], address: str) -> tuple[str, int]:
    return network.types.get(address, ""), len(inside[address])


def _build(network: Network, keys: dict[str, str]) -> Folded:
    boxes: dict[str, Box] = {}
    for name, part in sorted(network.parts.items(), key=lambda item: item[1].position):
        key = keys[name]
        if key not in boxes:
            boxes[key] = Box(key, "", "", part.kind, part.position)
        boxes[key].members.append(name)
    for box in boxes.values():
        _describe(box, network)
    edges = {
        (keys[source], keys[target]): None
        for source, targets in network.edges.items()
        for target in targets
        if source in keys and target in keys and keys[source] != keys[target]
    }
    return Folded(boxes, list(edges), keys)


def _describe(box: Box, network: Network) -> None:
    sort, _, rest = box.key.partition(" ")
    if sort == "node":
        part = network.parts[box.members[0]]
        box.title, box.note = part.name, _about(part)
        return
    box.kind = "module"
    if sort == "stack":
        first, _, last = rest.partition(" ")
        count = int(last.rpartition(".")[2]) - int(first.rpartition(".")[2]) + 1
        box.title = f"{first} … {last.rpartition('.')[2]}"
        box.note = f"{network.types.get(first, '')} ×{count}".strip()
        return
    box.title = rest
    box.note = f"{network.types.get(rest, '')} · {len(box.members)} nodes".removeprefix(" · ")


def _about(part: Part) -> str:
    shape = "×".join(map(str, part.shape)) or "scalar"
    times = f" · {len(part.passes)} passes" if len(part.passes) > 1 else ""
    roles = f" · {len(part.roles)} roles" if len(part.roles) > 1 else ""
    return shape + times + roles
