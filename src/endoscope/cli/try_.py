"""`endoscope try`: run a training script as it is, and record the model that it trains.

    script.py imports torch ─► Search looks at every call of a module ─► the first training step is about to begin
    ─► a run is made, the model is watched ─► the page opens at the first recorded step ─► the lines to add are printed

Everything that Endoscope says goes to stderr; output, exit status and exceptions are those of the script.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from endoscope.errors import BadArgument

if TYPE_CHECKING:
    from endoscope.cli.trying.attempt import Attempt
    from endoscope.cli.trying.script import Script

SUMMARY = "run a training script unchanged, record it, and show it"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where to record, and what to run."""
    parser.add_argument("--root", metavar="DIR", default="runs", help="folder for the trial (default: runs)")
    parser.add_argument("--no-show", action="store_true", help="open no page; end together with the script")
    parser.add_argument("script", metavar="script.py", help="the training script")
    parser.add_argument("arguments", metavar="args", nargs=argparse.REMAINDER, help="what the script itself is given")


def run(options: argparse.Namespace) -> int:
    """Run the script to its end, whatever that is."""
    from endoscope.cli.trying.attempt import Attempt
    from endoscope.cli.trying.script import Script

    if not os.path.isfile(options.script):
        raise BadArgument(_no_script(options.script))
    script = Script(options.script, options.arguments)
    attempt = Attempt(options.root, script, shows_page=not options.no_show)
    attempt.begin()
    return _run_to_its_end(script, attempt)


def _run_to_its_end(script: Script, attempt: Attempt) -> int:
    try:
        status = script.run()
    except SystemExit:
        attempt.end()
        attempt.keep_serving()
        raise
    except BaseException:  # Ctrl+C: nobody wants to wait any longer
        attempt.end()
        raise
    attempt.end()
    attempt.keep_serving()
    return status


def _no_script(path: str) -> str:
    if os.path.isdir(path):
        return f"{path} is a folder. Type the script that trains: endoscope try {os.path.join(path, 'train.py')}"
    return (
        f"There is no file {path} in {os.getcwd()}. Type the script that trains, and its own arguments behind it: "
        "endoscope try train.py --epochs 3"
    )
