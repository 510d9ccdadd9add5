"""The boxes of a trace: which modules can be opened, what is one box, and how boxes are called."""

from __future__ import annotations

from endoscope.layout.folding import fold
from endoscope.server.traces.graph import graph_of
from endoscope.server.traces.shown import ShownTrace
from tests.server.traces import nets


def boxes(shown: ShownTrace, *opened: str, rolled: bool = False) -> list[str]:
    """Labels of the boxes that are no chips, the top level first."""
    tree = shown.tree(rolled)
    return [tree.box_texts(box)[0] for box in fold(tree.tree, set(opened)).boxes if not box.is_chip]


def test_each_call_of_a_module_is_a_box() -> None:
    shown = ShownTrace(nets.loop())
    found = boxes(shown, "cell:2")
    assert [label for label in found if label.startswith("cell")] == ["cell:1", "cell:2", "cell:3"]
    assert found[found.index("cell:2") + 1 :][:2] == ["linear_1_1:2", "tanh_1_2:2"]


def test_rolled_the_calls_of_a_loop_are_one_box_with_passes_inside() -> None:
    shown = ShownTrace(nets.loop())
    assert boxes(shown, "cell", rolled=True)[:4] == ["input_1_0", "cell", "0 · Linear", "tanh_1_2"]
    tree = shown.tree(rolled=True)
    part = next(n for n, part in enumerate(tree.tree.graph.parts) if part.name == "tanh_1_2:1")
    assert len(tree.records[part]) == 3 and tree.part_label(part) == "tanh_1_2"
    assert tree.part_detail(part) == "5×4 · ×3"


def test_a_module_that_is_used_at_two_places_makes_no_loop_when_rolled() -> None:
    shown = ShownTrace(nets.blocks(1))
    tree = shown.tree(rolled=True).tree
    assert all(source < target for source, target in tree.graph.edges)


def test_equal_blocks_are_one_box_and_others_are_not() -> None:
    assert "0…3" in boxes(ShownTrace(nets.blocks(1, 1, 1, 1)), "blocks")
    assert not any("…" in label for label in boxes(ShownTrace(nets.blocks(1, 2, 4, 8)), "blocks"))


def test_a_list_that_is_never_called_holds_its_blocks() -> None:
    shown = ShownTrace(nets.blocks(1, 2))
    assert boxes(shown)[1] == "blocks"
    graph = graph_of(shown, rolled=False)
    assert [module["type"] for module in graph["modules"] if module["address"] in ("blocks", "blocks.0")] == [
        "ModuleList",
        "Block",
    ]


def test_a_parameter_that_nobody_reads_is_told_and_not_drawn() -> None:
    shown = ShownTrace(nets.blocks(1))
    assert shown.read.unused == ["unused"]
    assert "unused" not in graph_of(shown, rolled=False)["label"]


def test_a_closed_module_stands_for_what_it_returns() -> None:
    shown = ShownTrace(nets.blocks(1, 2))
    tree = shown.tree(rolled=False)
    face = tree.face(tree.tree.number_of["blocks.0"])
    trace = shown.trace
    assert tree.tree.graph.parts[face].name == trace["blocks.0"].label


def test_modules_of_the_answer_stand_after_those_around_them() -> None:
    graph = graph_of(ShownTrace(nets.blocks(1, 2)), rolled=False)
    assert all(module["parent"] < place for place, module in enumerate(graph["modules"]))
    homes = dict(zip(graph["label"], graph["module"], strict=True))
    label = nets.blocks(1, 2)["blocks.1.one"].label
    assert graph["modules"][homes[label]]["address"] in ("blocks.1", "blocks.1.one")
