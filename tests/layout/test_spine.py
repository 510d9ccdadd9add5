"""Which boxes have a row for themselves, and are wide enough for their history."""

from __future__ import annotations

from endoscope.layout.folding import fold
from endoscope.layout.sizes import NODE_HEIGHT, WIDE_HEIGHT, WIDE_WIDTH, sized
from endoscope.layout.spine import alone
from tests.layout.test_folding import Built, stack


def wide(built: Built, *open_: str) -> set[str]:
    folded = fold(built.tree(), open_)
    found = set()
    for box, is_alone in zip(folded.boxes, alone(folded), strict=True):
        if is_alone:
            found.add(built.parts[box.part].name if box.part >= 0 else folded.tree.modules[box.modules[0]].address)
    return found


def test_all_boxes_of_a_chain_are_wide_but_no_chip_and_no_frame() -> None:
    built = Built()
    built.add("input", kind="input")
    built.add("weight", kind="parameter", path="fc")
    built.add("fc", "input", "weight", path="fc")
    built.add("output", "fc", kind="output")
    assert wide(built, "fc") == {"input", "fc", "output"}
    assert wide(built) == {"input", "fc", "output"}


def test_branches_side_by_side_are_not() -> None:
    built = Built()
    built.add("input", kind="input")
    built.add("left", "input")
    built.add("right", "input")
    built.add("sum", "left", "right")
    assert wide(built) == {"input", "sum"}


def test_a_residual_past_a_box_takes_no_room_from_it() -> None:
    built = stack(2)
    assert wide(built, "blocks", "blocks.0", "blocks.1") == {
        "input", "blocks.0.fc", "blocks.0", "blocks.1.fc", "blocks.1", "output",
    }  # fmt: skip


def test_what_reads_nothing_stands_above_its_reader() -> None:
    built = Built()
    built.add("input", kind="input")
    built.add("fc", "input")
    built.add("target", kind="target")
    built.add("loss", "fc", "target", kind="loss")
    assert wide(built) == {"input", "loss"}  # target and fc share a row


def test_sizes() -> None:
    built = stack(1)
    folded = fold(built.tree(), ())
    texts = [("name", "8×8")] * len(folded.boxes)
    scene = sized(folded, texts, [False] * len(texts), {}, wide=[True, False, True])
    assert (scene.width[0], scene.height[0]) == (WIDE_WIDTH, WIDE_HEIGHT)
    assert scene.height[1] == NODE_HEIGHT and scene.width[1] < WIDE_WIDTH
