"""Which modules are open at first, so that a large graph stays readable."""

from __future__ import annotations

from collections.abc import Iterable

from endoscope.layout.stacks import LEAST, kind_of
from endoscope.layout.tree import STORED, Tree

COMFORTABLE = 28  # boxes: about one and a half screens, one below the other


def opened_at_first(tree: Tree, most: int = COMFORTABLE, wanted: Iterable[int] = (), most_wanted: int = 0) -> set[str]:
    """Modules around the parts that somebody wants to see, as far as `most_wanted` allows; then others up to `most`.

    They are opened outermost first. All equal modules of one depth are treated alike, because one open block among
    eleven closed ones would look like a statement; equal neighbours stay closed, as they are one box. Layers that
    hold nothing but their parameters are opened last, and only if all others are.
    """
    counter = _Counter(tree)
    for part in wanted:
        counter.open([tree.number_of[address] for address in tree.around(part)], most_wanted)
    layers: list[int] = []
    all_fit = True
    level = list(tree.modules[0].modules)
    while level:
        layers += [module for module in level if tree.is_layer(module)]
        deeper: list[int] = []
        for alike in _alike(tree, [module for module in level if not tree.is_layer(module)]):
            if counter.open(alike, most):
                deeper += [inner for module in alike for inner in tree.modules[module].modules]
            else:
                all_fit = False
        level = [module for module in deeper if module not in counter.stacked]
    if all_fit:
        counter.open(layers, most)
    return {tree.modules[module].address for module in counter.opened}


class _Counter:
    """Keeps count of the boxes while modules are opened."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.opened: set[int] = set()
        self.stacked: set[int] = set()  # closed modules that are drawn as one box with others
        self.boxes = self._added(0)

    def open(self, modules: list[int], most: int) -> bool:
        """All of them, or none if there would be too many boxes."""
        fresh = [module for module in modules if module not in self.opened and module not in self.stacked]
        more = sum(self._added(module) for module in fresh)
        if self.boxes + more > most:
            return False
        self.boxes += more
        self.opened.update(fresh)
        return True

    def _added(self, module: int) -> int:
        """Boxes inside, equal neighbours counted once."""
        tree, here = self.tree, self.tree.modules[module]
        plain = sum(tree.graph.parts[part].kind not in STORED for part in here.parts)
        runs: list[list[int]] = []
        for inner in here.modules:
            if runs and kind_of(tree, runs[-1][0]) == kind_of(tree, inner):
                runs[-1].append(inner)
            else:
                runs.append([inner])
        for run in runs:
            if len(run) >= LEAST:
                self.stacked.update(run)
        return plain + sum(1 if len(run) >= LEAST else len(run) for run in runs)


def _alike(tree: Tree, level: list[int]) -> list[list[int]]:
    """Modules of one size together, the smallest groups first."""
    found: dict[tuple[int, int], list[int]] = {}
    for module in level:
        here = tree.modules[module]
        found.setdefault((len(here.modules), len(here.parts)), []).append(module)
    return sorted(found.values(), key=len)
