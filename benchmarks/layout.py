"""How good and how fast the pictures of module graphs are, as page, drawings and reports show them.

python benchmarks/layout.py
python benchmarks/layout.py --only ViT,GPT-2 --pictures folder     draws each picture to look at, as SVG

Every network is recorded (what the page shows) and traced (every operation); everything is open unless said otherwise.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from layout_nets import UNBOUNDED, Net, nets
from layout_quality import moved, quality
from table import print_table

import endoscope
from endoscope.layout.compose import Layout, Memory, Scene, arrange
from endoscope.layout.folding import Folded, fold
from endoscope.layout.opening import opened_at_first
from endoscope.layout.recorded import Recorded, RecordedTree
from endoscope.layout.sizes import sized
from endoscope.layout.tree import STORED, Graph, Part, Tree
from endoscope.query import bulk
from endoscope.query.recording import Recording

LARGE_MS, FOLDED_MS, MOST_CROSSINGS, MOST_MOVED = 150.0, 50.0, 20, 15.0
ROUNDS = 5


class Drawable:
    """A graph that can be folded: recorded or traced."""

    def __init__(self, tree: Tree, texts: Callable[[Folded], list[tuple[str, str]]]) -> None:
        self.tree = tree
        self.texts = texts
        self.memory: Memory = {}

    def folded(self, open_: set[str]) -> tuple[Folded, Scene]:
        found = fold(self.tree, open_)
        return found, sized(found, self.texts(found), [False] * len(found.boxes), {})

    def everything(self) -> set[str]:
        return {module.address for module in self.tree.modules[1:]}


def recorded(name: str, net: Net, folder: Path) -> Drawable:
    run = endoscope.Run(folder, trial=name.replace(" ", "-"), budget=None)
    optimizer = torch.optim.SGD(net.model.parameters(), lr=0.01)
    run.watch(net.model, optimizer)
    for _ in range(2):
        net.loss(net.model(*net.inputs)).backward()
        optimizer.step()
        optimizer.zero_grad()
    run.close()
    recording = endoscope.open(folder / name.replace(" ", "-"))
    assert isinstance(recording, Recording)
    types = {entry["address"]: entry["type"] for entry in recording.modules["modules"]}
    tree = RecordedTree(Recorded.merged([bulk.graph(recording, recording.steps[-1].graph)]), types)
    return Drawable(tree.tree, lambda folded: [tree.box_texts(box) for box in folded.boxes])


def traced(net: Net) -> Drawable:
    graph = endoscope.trace(net.model.eval(), net.inputs).graph.to_dict()
    read = {edge["source"] for edge in graph["edges"]}
    # Drawings leave out parameters and buffers that nothing reads, too.
    nodes = [node for node in graph["nodes"] if node["number"] in read or node["kind"] not in STORED]
    place = {node["number"]: at for at, node in enumerate(nodes)}
    parts = [
        Part(node["label"], node["kind"], tuple(node["calls"]), (node["type"], str(node["shapes"]))) for node in nodes
    ]
    edges = [(place[edge["source"]], place[edge["target"]]) for edge in graph["edges"]]
    tree = Tree(Graph(parts, list(dict.fromkeys(edges))))

    def texts(folded: Folded) -> list[tuple[str, str]]:
        modules = folded.tree.modules
        return [
            (parts[box.part].name if box.part >= 0 else modules[box.modules[0]].address.rpartition(".")[2], "4×17×32")
            for box in folded.boxes
        ]

    return Drawable(tree, texts)


def mean_moved(drawable: Drawable) -> float:
    """Over every closed module of the default view: how far all other boxes move when it is opened."""
    open_ = opened_at_first(drawable.tree)
    before, scene = drawable.folded(open_)
    layout = arrange(scene, drawable.memory)
    found = []
    for number, box in enumerate(before.boxes):
        if not box.modules or box.open:
            continue
        address = drawable.tree.modules[box.modules[len(box.modules) // 2]].address
        after, opened = drawable.folded(open_ | {address})
        found.append(
            moved(
                _places(before, layout, number),
                _places(after, arrange(opened, drawable.memory), -1),
                layout.y[number] + layout.height[number],
            )
        )
    return statistics.fmean(found) if found else 0.0


def _places(folded: Folded, layout: Layout, without: int) -> dict[str, tuple[float, float]]:
    """Middle and top of every box that is not open, by a name that both pictures share."""
    return {
        _key(folded, number): (layout.x[number] + layout.width[number] / 2, layout.y[number])
        for number, box in enumerate(folded.boxes)
        if not box.open and number != without and len(box.modules) < 2
    }


def _key(folded: Folded, number: int) -> str:
    box = folded.boxes[number]
    if box.part < 0:
        return folded.tree.modules[box.modules[0]].address
    reader = next((other for one, other in folded.edges if one == number), -1) if box.is_chip else -1
    return f"{folded.tree.graph.parts[box.part].name} {_key(folded, reader) if reader >= 0 else ''}"


# ---- speed -----------------------------------------------------------------------------------------------------------


def transformer(blocks: int, *, unequal: bool) -> Tree:
    """A recorded transformer, without training one: 40 boxes a block, or widths that differ from block to block."""
    parts: list[Part] = [Part("input", "input")]
    edges: list[tuple[int, int]] = []

    def add(name: str, kind: str, path: tuple[str, ...], *sources: int) -> int:
        form = f"{len(parts)}" if unequal else ""
        parts.append(Part(name, kind, path, form))
        edges.extend((source, len(parts) - 1) for source in sources)
        return len(parts) - 1

    def linear(name: str, path: tuple[str, ...], source: int) -> int:
        path = (*path, name)
        weights = [add(f"{name}.{word}", "parameter", path) for word in ("weight", "bias")]
        return add(name, "computed", path, *weights, source)

    before = 0
    for block in range(blocks):
        home = ("blocks", f"blocks.{block}")
        start, inner = before, (*home, f"{home[1]}.attn")
        norm = linear(f"{home[1]}.norm1", home, start)
        query, key, value = (linear(f"{inner[-1]}.{word}", inner, norm) for word in "qkv")
        scores = add(f"{inner[-1]}.scores", "computed", inner, query, key)
        mixed = add(f"{inner[-1]}.mixed", "computed", inner, scores, value)
        middle = add(f"{home[1]}.add1", "computed", home, linear(f"{inner[-1]}.proj", inner, mixed), start)
        mlp = (*home, f"{home[1]}.mlp")
        up = linear(f"{mlp[-1]}.up", mlp, linear(f"{home[1]}.norm2", home, middle))
        act = add(f"{mlp[-1]}.act", "computed", mlp, up)
        before = add(home[1], "computed", home, linear(f"{mlp[-1]}.down", mlp, act), middle)
    add("output", "output", (), before)
    return Tree(Graph(parts, edges))


def texts_of(tree: Tree, *, unequal: bool) -> Callable[[Folded], list[tuple[str, str]]]:
    def texts(folded: Folded) -> list[tuple[str, str]]:
        names = [
            tree.graph.parts[box.part].name if box.part >= 0 else tree.modules[box.modules[0]].address
            for box in folded.boxes
        ]
        if unequal:
            return [("x" * (number * 7 % 29), "") for number in range(len(names))]
        return [(name.rpartition(".")[2], "4×17×32") for name in names]

    return texts


def milliseconds(work: Callable[[], Any]) -> float:
    """The fastest of a few rounds; memory is collected before, not inside."""
    found = []
    for _ in range(ROUNDS):
        gc.collect()
        begin = time.perf_counter()
        work()
        found.append((time.perf_counter() - begin) * 1e3)
    return min(found)


def speed() -> list[list[str]]:
    large, folded = f"≤ {LARGE_MS:.0f} in all", f"≤ {FOLDED_MS:.0f} in all"
    return [
        ["graph", "boxes", "fold ms", "layout ms, first", "layout ms, again", "bar"],
        timed(98, unequal=False, is_open=True, bar=large),
        timed(98, unequal=True, is_open=True, bar=large),
        timed(345, unequal=False, is_open=False, bar=folded),
        timed(330, unequal=True, is_open=True, bar=""),
    ]


def timed(blocks: int, *, unequal: bool, is_open: bool, bar: str) -> list[str]:
    tree = transformer(blocks, unequal=unequal)
    drawable = Drawable(tree, texts_of(tree, unequal=unequal))
    open_ = drawable.everything() if is_open else {"blocks"}
    len(tree.shapes)  # known from the first look at the graph on
    folding = milliseconds(lambda: drawable.folded(open_))
    _, scene = drawable.folded(open_)
    memory: Memory = {}
    first = milliseconds(lambda: arrange(scene, {}))
    arrange(scene, memory)
    again = milliseconds(lambda: arrange(scene, memory))
    name = f"{len(tree.graph.parts):,} nodes, {'open' if is_open else 'folded'}{', unequal' if unequal else ''}"
    return [name, f"{len(scene.parent):,}", *(f"{ms:.0f}" for ms in (folding, first, again)), bar]


# ---- the table -------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of networks, with commas between")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of all of them")
    asked = parser.parse_args()
    torch.manual_seed(0)
    rows = ["graph,boxes,crossings,through boxes,against the flow,length in 1000 px,width,moved px".split(",")]
    crossings, shifts, bad = 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, make in nets().items():
            if asked.only and name not in asked.only.split(","):
                continue
            net = make()
            for how, drawable in (("recorded", recorded(name, net, Path(folder))), ("traced", traced(net))):
                _, scene = drawable.folded(drawable.everything())
                found = quality(scene, arrange(scene, drawable.memory))
                shift = mean_moved(drawable)
                bad += found.through
                if name != UNBOUNDED:
                    crossings += found.crossings
                    shifts.append(shift)
                rows.append([
                    f"{name}, {how}", f"{len(scene.parent):,}", str(found.crossings), str(found.through),
                    str(found.against), f"{found.length / 1000:.0f}", f"{found.width:.0f}", f"{shift:.1f}",
                ])  # fmt: skip
    rows.append(["all but the last", "", f"{crossings}", f"{bad}", "", "", "", f"{statistics.fmean(shifts):.1f}"])
    rows.append(["bar", "", f"≤ {MOST_CROSSINGS}", "0", "real loops", "", "", f"≤ {MOST_MOVED:.0f}"])
    print_table(rows)
    print_table(speed())
    sys.exit(crossings > MOST_CROSSINGS or bad > 0 or statistics.fmean(shifts) > MOST_MOVED)


if __name__ == "__main__":
    main()
