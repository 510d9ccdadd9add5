"""From what a custom view returned to something that a browser can show.

    Plotly            HTML with the library in it                     ─► frame
    HTML, _repr_html_                                                 ─► frame
    Matplotlib, Altair, Pillow, array of pixels, bytes of an image    ─► image
    anything else                                                     ─► text

None of these libraries is needed, and none is imported here unless the view has returned an object of it.
"""

from __future__ import annotations

import base64
import io
import pprint
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from endoscope.errors import BadArgument, MissingDependencyError

_MAGIC = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
_MAY_RETURN = (
    "a Plotly or Matplotlib figure, an Altair chart, a Pillow image, an array of pixels, the bytes of an image, "
    "HTML or text"
)


class Shown(NamedTuple):
    """Exactly one of these is not empty."""

    text: str = ""
    html: str = ""
    image: str = ""  # as a data: address


def convert(result: Any) -> Shown:
    """What to show; raises BadArgument if nothing was returned."""
    if result is None:
        raise BadArgument(f"The view returned nothing. It may return {_MAY_RETURN}.")
    libraries = {cls.__module__.partition(".")[0] for cls in type(result).__mro__}
    if "plotly" in libraries and hasattr(result, "to_html"):
        return Shown(html=str(result.to_html(full_html=True, include_plotlyjs=True)))
    if "altair" in libraries:
        return _altair(result)
    if "matplotlib" in libraries:
        return _matplotlib(result)
    if isinstance(result, str):
        return Shown(html=result) if _is_html(result) else Shown(text=result or " ")
    if isinstance(result, (bytes, bytearray)):
        return _bytes(bytes(result))
    if isinstance(result, np.ndarray):
        return _pixels(result)
    if "PIL" in libraries:
        return _pillow(result)
    if hasattr(result, "_repr_html_"):
        return Shown(html=str(result._repr_html_()))
    return Shown(text=pprint.pformat(result, width=100))


def _is_html(text: str) -> bool:
    """Text is HTML if it is one from end to end; `<Recording …>` as the whole text would be taken for it."""
    stripped = text.strip()
    return stripped.startswith("<") and stripped.endswith(">") and "</" in stripped


def _altair(chart: Any) -> Shown:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependencyError(
            "An Altair chart is drawn by vl-convert, which is not installed. Install it with:  "
            "pip install vl-convert-python"
        ) from error
    # Nothing that a chart names is fetched: no request leaves the machine.
    svg = vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])
    return Shown(image=_data("svg+xml", svg.encode()))


def _matplotlib(figure: Any) -> Shown:
    figure = getattr(figure, "figure", None) or figure  # axes know their figure
    if not hasattr(figure, "savefig"):
        raise BadArgument(f"The view returned a {type(figure).__name__} of Matplotlib. Return its figure instead.")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=144, bbox_inches="tight")
    return Shown(image=_data("png", out.getvalue()))


def _pillow(image: Any) -> Shown:
    out = io.BytesIO()
    image.save(out, format="PNG")
    return Shown(image=_data("png", out.getvalue()))


def _bytes(data: bytes) -> Shown:
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return Shown(image=_data(kind, data))
    raise BadArgument(f"The view returned {len(data)} bytes that are no PNG, JPEG, GIF or WebP image.")


def _pixels(array: np.ndarray) -> Shown:
    """uint8, or floats from 0 to 1; [height, width] or [height, width, 1, 3 or 4]."""
    if array.dtype.kind == "f":
        array = (np.nan_to_num(array).clip(0, 1) * 255).round().astype(np.uint8)
    channels = 1 if array.ndim == 2 else array.shape[-1] if array.ndim == 3 else 0
    if array.dtype != np.uint8 or channels not in (1, 3, 4) or not array.size:
        raise BadArgument(
            f"The view returned an array of shape {array.shape} and type {array.dtype}. Pixels are uint8, or floats "
            "from 0 to 1, of shape [height, width] or [height, width, 3 or 4]."
        )
    return Shown(image=_data("png", _png(array.reshape(*array.shape[:2], channels))))


def _png(pixels: np.ndarray) -> bytes:
    """A PNG: its head, one compressed block of rows that each begin with a zero, its end."""
    height, width, channels = pixels.shape
    colours = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def _data(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
