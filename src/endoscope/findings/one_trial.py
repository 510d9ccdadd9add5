"""Questions that are asked of one trial: a path may also be a folder with a single one in it."""

from __future__ import annotations

from os import PathLike

from endoscope.errors import BadArgument
from endoscope.query.open import look
from endoscope.query.recording import Recording


def one_trial(path: str | PathLike[str]) -> Recording:
    found = look(path)
    if isinstance(found, Recording):
        return found
    if len(found) == 1:
        return found[next(iter(found))]
    names = ", ".join(map(repr, list(found)[:5])) or "none"
    raise BadArgument(f"{path} is a folder of {len(found)} trials: {names}. Give the path of one of them.")
