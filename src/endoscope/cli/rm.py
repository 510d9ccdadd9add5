"""`endoscope rm`: the only way in which a trial is deleted."""

import argparse
import sys
from pathlib import Path

SUMMARY = "delete a recorded trial"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which trials, and whether to ask."""
    parser.add_argument("paths", metavar="DIR/trial", nargs="+", help="a trial; several may be given")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(options: argparse.Namespace) -> int:
    """Look at all of them first, then ask, then delete."""
    from endoscope.cli import deletion
    from endoscope.cli.table import human_bytes

    trials = [Path(path) for path in options.paths]
    contents = [deletion.contents_of(trial) for trial in trials]  # an error if any of them is no trial
    for trial, found in zip(trials, contents, strict=True):
        question = f"Delete the trial {trial} ({len(found.files)} files, {human_bytes(found.bytes)})?"
        if found.seems_alive:
            question += " It was written to a moment ago: it may still be running."
        if not options.yes and not _agrees(question):
            print(f"{trial} was kept.")
            return 1
        left = deletion.delete(trial, found)
        print(
            f"{trial} was deleted."
            if not left
            else f"{trial}: deleted, except for files that Endoscope did not write: {left[0]} …"
        )
    return 0


def _agrees(question: str) -> bool:
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print("\nThere is no terminal to ask at. Add --yes to delete without a question.", file=sys.stderr)
        return False
