"""Numbers as colours: a small picture with few colours, written into the page itself."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from endoscope.markup.tags import Markup, tag

_STOPS = np.array([(13, 8, 60), (86, 15, 109), (160, 40, 98), (222, 88, 60), (250, 170, 60), (252, 253, 180)])
_LEVELS = 64
_NOTHING, _BROKEN = _LEVELS, _LEVELS + 1  # after the levels: transparent, and a colour that no level has
WIDTH, HEIGHT = 640, 150
LEFT, RIGHT, TOP, BOTTOM = 58, 10, 6, 22


class Tick(NamedTuple):
    """A number beside the picture, at a share of its width or height."""

    share: float
    text: str


def picture(values: np.ndarray, rows: Sequence[Tick], columns: Sequence[Tick], label: str) -> Markup:
    """float[rows, columns] from 0 to 1, the first row on top; NaN is nothing, infinite is broken."""
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    image = tag(
        "image", x=LEFT, y=TOP, width=wide, height=high, href=png(indices(values)), preserveaspectratio="none",
        class_="pixels",
    )  # fmt: skip
    beside = [tag("text", t.text, x=LEFT - 6, y=TOP + t.share * high + 3.5, class_="tick end") for t in rows]
    below = [tag("text", t.text, x=LEFT + t.share * wide, y=HEIGHT - 5, class_="tick middle") for t in columns]
    frame = tag("rect", x=LEFT, y=TOP, width=wide, height=high, class_="frame")
    return tag(
        "svg", tag("title", label), image, frame, beside, below, viewbox=f"0 0 {WIDTH} {HEIGHT}", class_="chart",
        role="img", aria_label=label,
    )  # fmt: skip


def indices(values: np.ndarray) -> np.ndarray:
    """uint8: which of the colours each number has."""
    levels = np.clip(np.where(np.isfinite(values), values, 0.0) * _LEVELS, 0, _LEVELS - 1).astype(np.uint8)
    return np.where(np.isnan(values), _NOTHING, np.where(np.isinf(values), _BROKEN, levels)).astype(np.uint8)


def png(colours: np.ndarray) -> str:
    """An indexed PNG as an address that holds all of it."""
    high, wide = colours.shape
    lines = np.zeros((high, wide + 1), np.uint8)  # every line begins with the number of its filter, which is none
    lines[:, 1:] = colours
    places = np.linspace(0, len(_STOPS) - 1, _LEVELS)
    palette = np.stack([np.interp(places, range(len(_STOPS)), _STOPS[:, channel]) for channel in range(3)], axis=1)
    palette = np.concatenate([palette, [(128, 128, 128), (0, 200, 220)]]).round().astype(np.uint8)
    opacity = bytes([255] * _LEVELS + [40, 255])
    data = b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", palette.tobytes()),
            _chunk(b"tRNS", opacity),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
