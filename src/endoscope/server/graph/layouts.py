"""Where the user's own arrangement of the graph is kept: page.json, beside the recording it belongs to."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from endoscope.errors import BadArgument, StoreError
from endoscope.server import wire
from endoscope.server.answers import to_json

FILE = "page.json"
MOST_BYTES = 4 << 20


def empty() -> wire.Layout:
    return wire.Layout(version=wire.LAYOUT_VERSION, pins={}, renames={}, groups=[])


def read(trial: Path) -> wire.Layout:
    """What was saved; an empty layout if there is none. A link is not followed: it may lead anywhere."""
    file = trial / FILE
    if file.is_symlink() or not file.is_file():
        return empty()
    try:
        if file.stat().st_size > MOST_BYTES:
            raise BadArgument(f"it has more than {MOST_BYTES} bytes")
        return check(json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise BadArgument(
            f"The layout in {file} cannot be used: {error}. Delete that file to start with an empty one."
        ) from error


def write(trial: Path, layout: wire.Layout) -> None:
    """All or nothing: whoever reads meanwhile gets the old one."""
    unfinished = ""
    try:
        handle, unfinished = tempfile.mkstemp(dir=trial, prefix=f".{FILE}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(to_json(layout))
        os.replace(unfinished, trial / FILE)
    except OSError as error:
        if unfinished:
            Path(unfinished).unlink(missing_ok=True)
        raise StoreError(
            f"The layout cannot be saved in {trial}: {error.strerror or error}. The page keeps it in the browser."
        ) from error


def check(data: Any) -> wire.Layout:
    """A layout and nothing else; what a newer page added is refused rather than lost."""
    if not isinstance(data, dict) or data.get("version") != wire.LAYOUT_VERSION:
        raise BadArgument(f"A layout is an object with version {wire.LAYOUT_VERSION}.")
    unknown = set(data) - set(empty())
    if unknown:
        raise BadArgument(f"A layout has no {sorted(unknown)[0]!r}; it has {', '.join(empty())}.")
    pins, renames, groups = data.get("pins", {}), data.get("renames", {}), data.get("groups", [])
    if not isinstance(pins, dict) or not all(_is_point(point) for point in pins.values()):
        raise BadArgument("pins are an object: name of a node -> [x, y], two finite numbers.")
    if not isinstance(renames, dict) or not all(isinstance(name, str) for name in renames.values()):
        raise BadArgument("renames are an object: name of a node -> text.")
    if not isinstance(groups, list) or not all(isinstance(prefix, str) for prefix in groups):
        raise BadArgument("groups are a list of prefixes, each a text.")
    return wire.Layout(version=wire.LAYOUT_VERSION, pins=pins, renames=renames, groups=groups)


def _is_point(point: Any) -> bool:
    if not isinstance(point, list) or len(point) != 2:
        return False
    return all(isinstance(part, (int, float)) and math.isfinite(part) for part in point)
