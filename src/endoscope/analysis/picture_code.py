"""The visual code of the TorchLens paper: green inputs, red outputs, grey for parameters, light grey buffers.

Boxes stand for operations that are a whole module and ovals for all others; frames are modules; dashes mean that no
input leads there; yellow is a value that decided a branch.
"""

from __future__ import annotations

from endoscope.analysis.picture import Box, Look, Node

GREEN, RED = "#98e698", "#ff9c94"
PALE_GREEN, PALE_RED = "#dcf5dc", "#ffdeda"
GREY, LIGHT_GREY, WHITE = "#d0d0d0", "#efefef", "#ffffff"
YELLOW = "#ffe14d"
FRAME, FOLD, CONTROL, LINE = "#7a7a7a", "#2f5fb3", "#c98a00", "#404040"

_FILL = {
    Look.INPUT: GREEN,
    Look.OUTPUT: RED,
    Look.BUFFER: LIGHT_GREY,
    Look.CONSTANT: LIGHT_GREY,
    Look.ENTRANCE: PALE_GREEN,
    Look.EXIT: PALE_RED,
}


def fill(node: Node) -> str:
    """The colour inside."""
    if node.decides:
        return YELLOW
    return _FILL.get(node.look) or (GREY if node.weights else WHITE)


def is_box(node: Node) -> bool:
    """Whether it has corners."""
    return bool(node.whole) or node.look is Look.MODULE


def is_dashed(node: Node) -> bool:
    """Whether its outline is dashed."""
    return node.dashed or node.look is Look.CONSTANT


def frame_color(box: Box) -> str:
    """Frames around repeated blocks are blue."""
    return FOLD if box.times > 1 else FRAME
