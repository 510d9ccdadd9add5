"""Which modules are open, where that is too long for an address: kept beside the recording under a short name.

The page's address then holds `open=@name`. The name follows from the list, so the same list is kept once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from pathlib import Path

from endoscope.errors import BadArgument
from endoscope.server.answers import to_json

MOST_BYTES = 4 << 20
_NAME = re.compile(r"[0-9a-f]{12}")


class Opened:
    """Lists by trial and name. Where the folder cannot be written, they last as long as the server."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], list[str]] = {}

    def keep(self, trial: Path, addresses: object) -> str:
        """The name of a list; written beside the recording if it can be."""
        name, known = named(addresses)
        self._kept[str(trial), name] = known
        _write(trial / _file(name), to_json(sorted(known)))
        return name

    def read(self, trial: Path, name: str) -> list[str]:
        """The list; a name that nobody has kept is an error that says so."""
        found = self._kept.get((str(trial), name))
        if found is None:
            file = trial / _file(name) if _NAME.fullmatch(name) else None
            if file is None or file.is_symlink() or not file.is_file() or file.stat().st_size > MOST_BYTES:
                raise BadArgument(f"The trial {trial.name} has no list of open modules {name!r}.")
            found = self._kept[str(trial), name] = [str(address) for address in json.loads(file.read_bytes())]
        return found


def named(addresses: object) -> tuple[str, list[str]]:
    """The short name of a list that was sent, and the list; an error if it is none."""
    if not isinstance(addresses, list) or not all(isinstance(address, str) for address in addresses):
        raise BadArgument("Open modules are a list of their addresses, each a text.")
    return hashlib.sha256(to_json(sorted(addresses)).encode()).hexdigest()[:12], addresses


def _file(name: str) -> str:
    return f"page-open-{name}.json"


def _write(file: Path, text: str) -> None:
    """All or nothing; a folder that cannot be written is no reason not to show the picture."""
    if file.exists():
        return
    unfinished = ""
    try:
        handle, unfinished = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
        os.replace(unfinished, file)
    except OSError:
        if unfinished:
            Path(unfinished).unlink(missing_ok=True)
