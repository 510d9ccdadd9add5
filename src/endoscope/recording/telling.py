"""What a run says on stderr: one line when it begins, and a few when it ends."""

from __future__ import annotations

import os
import sys

NO_MODEL = (
    "no model was watched, so only what was reported was recorded. Call run.watch(model, optimizer) before the loop."
)
NO_STEP = (
    "no training step was recorded. A step begins when the watched model is called in training mode, model(x), and not "
    "under torch.no_grad(); `endoscope check` says more."
)
WITHDRAWN = "the script ended before anything was recorded, so the empty trial was removed."


def say(text: str) -> None:
    sys.stderr.write(f"Endoscope: {text}\n")


def beginning(path: str, wanted: str, resumed: bool) -> str:
    """Which folder, and how to look at it."""
    root, name = os.path.split(path)
    taken = f" as {name}, because there is a {wanted} already" if name != wanted else ""
    verb = "going on with" if resumed else "recording into"
    return f"{verb} {path}{taken}. To look at it:  endoscope show {shortest(root)}"


def commands(path: str) -> str:
    """The last line."""
    return f"what looks wrong:  endoscope check {shortest(path)}    the page:  endoscope show {shortest(path)}"


def shortest(path: str) -> str:
    """As short as it can be typed here."""
    try:
        return min(path, os.path.relpath(path), key=len)
    except (OSError, ValueError):  # the current folder is gone, or is on another drive
        return path
