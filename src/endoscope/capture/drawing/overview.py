"""A picture that can be looked at as a whole: modules are closed until it is small enough."""

from __future__ import annotations

from endoscope.analysis.picture import Picture
from endoscope.analysis.picture_close import close
from endoscope.analysis.picture_fold import fold
from endoscope.analysis.picture_svg import svg_text
from endoscope.analysis.picture_zoom import absorb
from endoscope.capture.drawing.scene import picture_of
from endoscope.capture.views.trace_views import TraceViews

_DEPTHS = (None, 3, 2, 1)  # how many levels of modules are open


def overview(trace: TraceViews, most: int) -> str | None:
    """SVG of at most so many nodes; None if even the outermost modules are more."""
    whole = absorb(picture_of(trace))
    for depth in _DEPTHS:
        picture = _folded(whole, depth)
        if len(picture.nodes) <= most:
            return svg_text(picture, "down")
    return None


def _folded(whole: Picture, depth: int | None) -> Picture:
    picture = fold(whole if depth is None else close(whole, depth))
    left_out = len(whole.nodes) - len(picture.nodes)
    if left_out:
        picture = picture.with_fact(f"{left_out:,} nodes inside of closed modules or repeated blocks not drawn")
    return picture
