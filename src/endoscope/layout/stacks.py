"""Equal closed modules that follow each other, or stand side by side: three or more are one box."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from endoscope.layout.tree import Tree

LEAST = 3

Kind = tuple[str, int]


def find_stacks(
    kinds: Sequence[Kind | None], children: dict[int, list[int]], edges: Iterable[tuple[int, int]]
) -> list[list[int]]:
    """Boxes that become one, each list in order. `kinds` has one entry for each box: None if it is no closed module."""
    runs = [run for siblings in children.values() for run in _equal_runs(kinds, siblings)]
    if not runs:
        return []
    members = {box for run in runs for box in run}
    sources: dict[int, set[int]] = {box: set() for box in members}
    targets: dict[int, set[int]] = {box: set() for box in members}
    for one, other in edges:
        if one in members:
            targets[one].add(other)
        if other in members:
            sources[other].add(one)
    found = []
    for run in runs:
        found += _chains(run, sources, targets)
    return found


def kind_of(tree: Tree, module: int) -> Kind:
    """What neighbours have in common that may be one box."""
    return tree.modules[module].address.rpartition(".")[0], tree.shapes[module]


def _equal_runs(kinds: Sequence[Kind | None], boxes: list[int]) -> list[list[int]]:
    """Closed modules of the same container and the same structure, one after the other."""
    runs: list[list[int]] = []
    before = None
    for box in boxes:
        kind = kinds[box]
        if kind is not None and kind == before:
            runs[-1].append(box)
        elif kind is not None:
            runs.append([box])
        before = kind
    return [run for run in runs if len(run) >= LEAST]


def _chains(run: list[int], sources: dict[int, set[int]], targets: dict[int, set[int]]) -> list[list[int]]:
    """The parts of a run in which every member goes on where the one before has stopped, or all go the same way."""
    found: list[list[int]] = []
    stack = [run[0]]
    for box in run[1:]:
        if _goes_on(stack, box, sources, targets):
            stack.append(box)
        else:
            found.append(stack)
            stack = [box]
    found.append(stack)
    return [stack for stack in found if len(stack) >= LEAST]


def _goes_on(stack: list[int], box: int, sources: dict[int, set[int]], targets: dict[int, set[int]]) -> bool:
    first, last = stack[0], stack[-1]
    if sources[box] == sources[first] and targets[box] == targets[first] and box not in targets[last]:
        return len(stack) < 2 or stack[1] not in targets[first]  # side by side
    shared = sources[box] - {last}  # what all of them read, such as a mask
    if last not in sources[box] or not shared <= sources[first]:
        return False
    if targets[last] - {box} and not targets[last] - {box} <= targets[box]:
        return False
    return len(stack) < 2 or (last in targets[stack[-2]] and shared == sources[last] - {stack[-2]})
