"""Whether a file is still the same, without reading it."""

from __future__ import annotations

from pathlib import Path


def stamp(file: Path) -> tuple[int, int, int] | None:
    """Changes when the file is written, or another takes its place; None if there is none."""
    try:
        found = file.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
