"""Recorded graphs as parts: names, labels, passes."""

from __future__ import annotations

from typing import Any

from endoscope.layout.folding import fold
from endoscope.layout.recorded import Recorded, RecordedTree


def node(name: str, module: str = "", kind: str = "computed", pass_: int = 1, **more: Any) -> dict[str, Any]:
    modules = [".".join(module.split(".")[: n + 1]) for n in range(len(module.split(".")))] if module else []
    return {
        "node": name, "role": "", "pass": pass_, "kind": kind, "module": module, "modules": modules, "source": "",
        "type": "relu", "shape": [4, 8], **more,
    }  # fmt: skip


def tree_of(nodes: list[dict[str, Any]], edges: list[tuple[int, int]], **more: Any) -> RecordedTree:
    return RecordedTree(Recorded.merged([{"nodes": nodes, "edges": [[*edge, []] for edge in edges]}]), **more)


def labels(tree: RecordedTree, open_: set[str]) -> list[str]:
    return [tree.box_texts(box)[0] for box in fold(tree.tree, open_).boxes]


def test_graphs_of_several_steps_are_one() -> None:
    first = {"nodes": [node("a"), node("b")], "edges": [[0, 1, []]]}
    second = {"nodes": [node("b"), node("c")], "edges": [[0, 1, []]]}
    merged = Recorded.merged([first, second])
    assert [found["node"] for found in merged.nodes] == ["a", "b", "c"] and merged.edges == [(0, 1), (1, 2)]


def test_names_read_inside_of_what_is_around_them() -> None:
    nodes = [node("fc.weight", "fc", "parameter"), node("fc", "fc"), node("6.a", "6"), node("6", "6"), node("7", "7")]
    tree = tree_of(nodes, [(0, 1), (1, 2), (2, 3), (3, 4)], types={"6": "Block"})
    assert labels(tree, {"fc", "6"}) == ["fc", "weight", "output", "6 · Block", "a", "output", "7 · relu"]
    assert labels(tree, set()) == ["fc", "6 · Block", "7 · relu"]


def test_names_of_the_users_own_and_groups_by_prefix() -> None:
    nodes = [node("x", kind="input"), node("loss_a"), node("loss_b"), node("y")]
    tree = tree_of(nodes, [(0, 1), (0, 2), (2, 3)], renames={"y": "result"}, prefixes=["loss_"])
    assert labels(tree, set()) == ["x", "loss_…", "result"]
    assert labels(tree, {"/loss_…"}) == ["x", "loss_…", "loss_a", "loss_b", "result"]


def test_passes_of_one_name_are_one_part_with_a_count() -> None:
    nodes = [node("x", kind="input"), *(node("cell", "cell", pass_=n) for n in (1, 2, 3))]
    tree = tree_of(nodes, [(0, 1), (1, 2), (2, 3)])
    assert [tree.box_texts(box) for box in fold(tree.tree, set()).boxes][1] == ("cell", "4×8 · ×3")


def test_a_module_without_weights_that_is_called_at_several_places_is_one_node_per_call() -> None:
    nodes = [
        node("x", kind="input"), node("conv1", "conv1"), node("act", "act"), node("conv2", "conv2"),
        node("act", "act", pass_=2),
    ]  # fmt: skip
    tree = tree_of(nodes, [(0, 1), (1, 2), (2, 3), (3, 4)])
    folded = fold(tree.tree, set())
    assert labels(tree, set()) == ["x", "conv1", "act", "conv2", "act:2"]
    assert all(one < other for one, other in folded.edges)


def test_a_real_loop_stays_one() -> None:
    nodes = [node("x", kind="input")]
    edges = []
    for pass_ in range(1, 5):
        nodes += [node("cell", "cell", pass_=pass_), node("act", "act", pass_=pass_)]
        edges += [(len(nodes) - 3 if pass_ > 1 else 0, len(nodes) - 2), (len(nodes) - 2, len(nodes) - 1)]
    tree = tree_of(nodes, edges)
    assert labels(tree, set()) == ["x", "cell", "act"]
    assert (2, 1) in fold(tree.tree, set()).edges


def test_a_module_that_reads_its_own_result_is_no_loop() -> None:
    """A cache of keys: a result of the model, and read inside of it."""
    nodes = [
        node("x", kind="input"), node("m.key", "m.key"), node("m", "m", role="keys"), node("m.attend", "m.attend"),
        node("m", "m"), node("output", kind="output"), node("out.keys", kind="output"),
    ]  # fmt: skip
    tree = tree_of(nodes, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (2, 6), (6, 3)])
    folded = fold(tree.tree, {"m"})
    assert all(one < other for one, other in folded.edges)
    attend = next(n for n, box in enumerate(folded.boxes) if tree.box_texts(box)[0] == "attend")
    assert [tree.box_texts(folded.boxes[one])[0] for one, other in folded.edges if other == attend] == ["key"]


def test_a_closed_module_shows_what_it_returns() -> None:
    nodes = [node("m.a", "m", shape=[1]), node("m", "m", shape=[2]), node("m.late", "m", shape=[3])]
    tree = tree_of(nodes, [(0, 1), (1, 2)])
    assert [tree.box_texts(box) for box in fold(tree.tree, set()).boxes] == [("m", "2")]


def test_a_tag_lives_where_it_was_made() -> None:
    nodes = [node("m.a", "m.a"), node("sums", "", modules=["m"]), node("m", "m")]
    assert labels(tree_of(nodes, [(0, 1), (1, 2)]), {"m"}) == ["m", "a", "sums", "output"]
