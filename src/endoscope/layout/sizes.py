"""How large boxes are. Sizes come in a few steps, so that equal structures get equal layouts whatever their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from endoscope.layout.compose import Scene
from endoscope.layout.folding import Box, Folded
from endoscope.layout.pins import Pin

NODE_HEIGHT = 36.0
WIDE_WIDTH = 312.0  # of a box that draws its history
WIDE_HEIGHT = 28.0
STRIP = 9.0  # of cells, in boxes that hold several tensors
CHIP_HEIGHT = 22.0
WIDEST_CHIP = 120.0
WIDTHS = (96.0, 120.0, 144.0, 168.0, 192.0, 216.0)
_LETTER = 6.6  # of a label, on average; long ones are cut where they are drawn
_DIGIT = 6.4  # of a shape, which is set in a fixed width
_AROUND = 26.0
_AROUND_CHIP = 22.0
_TITLE = 40.0  # around the title of an open module


def width_of(label: str, detail: str, room: int = 0) -> float:
    """Of a box with two lines; `room` letters are left free beside the second."""
    wanted = max(len(label) * _LETTER, (len(detail) + room) * _DIGIT) + _AROUND
    return next((width for width in WIDTHS if width >= wanted), WIDTHS[-1])


def chip_width(label: str, detail: str, room: int = 0) -> float:
    """Of a box with one line, in which a number of `room` letters may take the place of the detail."""
    return min(WIDEST_CHIP, len(label) * _LETTER + max(len(detail), room) * _DIGIT * 0.85 + _AROUND_CHIP)


def sized(
    folded: Folded,
    texts: Sequence[tuple[str, str]],
    strips: Sequence[bool],
    pins: Mapping[int, Pin],
    room: int = 0,
    wide: Sequence[bool] = (),
) -> Scene:
    """`texts` are label and detail of each box, `strips` whether it shows several tensors, `wide` its history."""
    widths, heights = [], []
    wide = wide or [False] * len(folded.boxes)
    for box, (label, detail), has_strip, is_wide in zip(folded.boxes, texts, strips, wide, strict=True):
        width, height = (WIDE_WIDTH, WIDE_HEIGHT) if is_wide else _size(box, label, detail, room)
        widths.append(width)
        heights.append(height + (STRIP if has_strip else 0.0))
    return Scene(
        parent=[box.parent for box in folded.boxes],
        open=[box.open for box in folded.boxes],
        width=widths,
        height=heights,
        edges=folded.edges,
        chips=folded.chips,
        pins=pins,
    )


def _size(box: Box, label: str, detail: str, room: int) -> tuple[float, float]:
    if box.open:
        return len(label) * _LETTER + _TITLE, 0.0
    if box.is_chip:
        return chip_width(label, detail, room), CHIP_HEIGHT
    return width_of(label, detail, room), NODE_HEIGHT
