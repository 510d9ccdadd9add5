"""Draw a trace: check what was asked, simplify the picture, write it as SVG, or as what is made of SVG."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

from endoscope.analysis.dot import DIRECTIONS, dot_text
from endoscope.analysis.picture import ENDS, Picture
from endoscope.analysis.picture_close import close
from endoscope.analysis.picture_fold import fold as fold_repeats
from endoscope.analysis.picture_repeats import LARGE
from endoscope.analysis.picture_roll import roll
from endoscope.analysis.picture_svg import svg_text
from endoscope.analysis.picture_zoom import absorb, inside, zoom
from endoscope.analysis.selecting.patterns import nearest
from endoscope.capture.drawing.scene import picture_of, totals_text
from endoscope.capture.views.trace_views import TraceViews
from endoscope.errors import BadArgument, MissingDependencyError

FORMATS = ("svg", "png", "pdf", "dot")
_PIXELS = 2.0  # of a PNG for each unit of the drawing
_MOST_PIXELS = 8000.0  # in either direction


class DotSource(str):
    """Text in the DOT language. A notebook shows the picture."""

    __slots__ = ("_svg",)
    _svg: str

    def __new__(cls, source: str, svg: str = "") -> DotSource:
        made = super().__new__(cls, source)
        made._svg = svg
        return made

    def _repr_svg_(self) -> str | None:
        return self._svg or None


def draw(
    trace: TraceViews,
    path: str | os.PathLike[str] | None = None,
    *,
    rolled: bool = False,
    depth: int | None = None,
    module: str | None = None,
    direction: str = "down",
    fold: bool = True,
) -> DotSource | Path:
    """Draw to an SVG, PNG, PDF or DOT file, or return the DOT source; see `docs/reference/draw.md`."""
    _check(depth, direction)
    format_ = None if path is None else _format(Path(path))
    picture = simplified(trace, rolled=rolled, depth=depth, module=module, fold=fold)
    if path is None or format_ is None:
        return DotSource(dot_text(picture, direction), svg_text(picture, direction))
    if format_ == "dot":
        content = dot_text(picture, direction).encode()
    else:
        svg = svg_text(picture, direction)
        content = _png(svg) if format_ == "png" else _pdf(svg) if format_ == "pdf" else svg.encode()
    Path(path).write_bytes(content)
    return Path(path)


def _png(svg: str) -> bytes:
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise MissingDependencyError(
            "A PNG needs the package resvg-py, which is not installed: pip install resvg-py. "
            "An SVG needs nothing: let the name of the file end in .svg."
        ) from error
    width, height = (float(part) for part in svg.partition('viewBox="0 0 ')[2].partition('"')[0].split())
    zoom = min(_PIXELS, _MOST_PIXELS / max(width, height))
    if width > height:
        return bytes(svg_to_bytes(svg_string=svg, width=round(width * zoom)))
    return bytes(svg_to_bytes(svg_string=svg, height=round(height * zoom)))


def _pdf(svg: str) -> bytes:
    try:
        from cairosvg import svg2pdf
    except (ImportError, OSError) as error:  # OSError: the package is there, the library cairo is not
        raise MissingDependencyError(
            "A PDF needs the package cairosvg, which cannot be used here "
            f"({error}): pip install cairosvg. An SVG needs nothing: let the name of the file end in .svg."
        ) from error
    return bytes(svg2pdf(bytestring=svg.encode()))


def _check(depth: int | None, direction: str) -> None:
    if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 1):
        raise BadArgument(
            f"depth={depth!r} cannot be drawn: it says how many levels of modules are open, so it is a whole number "
            "from 1 (only what the model itself does, its modules closed), or None (everything open)."
        )
    if direction not in DIRECTIONS:
        raise BadArgument(f"direction={direction!r} is none of {', '.join(map(repr, DIRECTIONS))}.")


def _format(path: Path) -> str:
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        said = f"{path.name!r} ends in {path.suffix!r}" if path.suffix else f"{path.name!r} has no ending"
        known = ", ".join(f".{known}" for known in FORMATS)
        raise BadArgument(f"{said}, which says no format that can be drawn. Use one of {known}.")
    if not path.parent.is_dir():
        raise BadArgument(f"The folder {str(path.parent)!r} does not exist; create it before drawing into it.")
    return ending


def simplified(trace: TraceViews, *, rolled: bool, depth: int | None, module: str | None, fold: bool) -> Picture:
    """The picture that is drawn in the end."""
    picture = picture_of(trace)
    if module:
        picture = _zoomed(trace, picture, module)
    picture = absorb(picture)
    if rolled:
        picture = roll(picture)
    if depth is not None:
        picture = close(picture, depth)
    everything = len(picture.nodes)
    if fold:
        picture = fold_repeats(picture)
    if len(picture.nodes) < everything:
        picture = picture.with_fact(f"{everything - len(picture.nodes):,} nodes of repeated blocks (×) are not drawn")
    if len(picture.nodes) > LARGE:
        warnings.warn(
            f"The picture of {trace.name} has {len(picture.nodes):,} nodes, which is hard to read. "
            "Draw less of it: rolled=True, depth=1, module='...'" + ("" if fold else ", fold=True") + ".",
            stacklevel=4,
        )
    return picture


def _zoomed(trace: TraceViews, picture: Picture, module: str) -> Picture:
    chosen = inside(picture, module)
    if not chosen:
        raise BadArgument(_unknown_module(trace, module))
    part = zoom(picture, module)
    own = [node for node in part.nodes if node.look not in ENDS]
    if not own:
        raise BadArgument(f"The module {module!r} ran, but no operation that can be drawn happened inside it.")
    weights = {weight.name: weight for node in own for weight in node.weights}
    facts = totals_text(
        len(own),
        sum(n.bytes for n in own),
        sum(w.count for w in weights.values()),
        sum(w.bytes for w in weights.values()),
    )
    types = {picture.boxes[key].type for key in chosen if picture.boxes[key].address == module.partition(":")[0]}
    name = f"@{module} ({types.pop()})" if len(types) == 1 else f"@{module}"
    return replace(part, title=f"{name} in {trace.name}", facts=facts)


def _unknown_module(trace: TraceViews, module: str) -> str:
    known = [address for address, _ in trace.record.calls.addresses.values() if address]
    if module in known:
        return f"The module {module!r} never ran in this trace, so there is nothing to draw inside it."
    near = nearest(module, known)
    if not near:
        return f"There is no module {module!r}: {trace.name} has no modules."
    return f"{trace.name} has no module {module!r}. Nearest: {', '.join(near)}. print(trace) lists all of them."
