"""`endoscope demo`: train a small network twice, once with a bug, and show what was recorded.

    a trial begins ─► the page is there from now on ─► it is trained ─► the second trial ─► served until Ctrl+C

With the environment variable DEMO_SERVE=0 there is no page, and the command ends after recording.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from endoscope.errors import BadArgument, NotARecording

if TYPE_CHECKING:
    from endoscope.demo.training import Settings
    from endoscope.server.launch import Viewer

SUMMARY = "record a small training with a bug, and show it"
_STOPPED = 130  # exit code of a command that ended by Ctrl+C


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where to record, how long to train, where to show it."""
    folder = "folder for the trials (default: runs/demo)"
    parser.add_argument("path", metavar="DIR", nargs="?", default="runs/demo", help=folder)
    parser.add_argument("--steps", type=int, default=1200, help="how long each trial is trained (default: 1200)")
    parser.add_argument("--port", type=int, help="0: any that is free (default: the first free one from 6280 on)")
    parser.add_argument("--open", action="store_true", help="open the browser, too")


def run(options: argparse.Namespace) -> int:
    """Record what is not there yet, and serve it meanwhile and afterwards."""
    import endoscope

    _ = endoscope.Run  # before torch itself, so that a missing torch gets our message
    from endoscope.demo.training import TRIALS, Settings

    if options.steps < 1:
        raise BadArgument(f"--steps is {options.steps}, but there must be at least one step. Leave it out for 1200.")
    root, settings = Path(options.path), Settings(steps=options.steps)
    page = _Page(root, options)
    try:
        for trial in TRIALS:
            earlier = _find(root, trial, settings)
            if earlier is None:
                _record(root, trial, settings, page)
            else:
                _say(f"{earlier} was recorded earlier and is kept. To train again, type: endoscope demo ANOTHER_FOLDER")
    except KeyboardInterrupt:
        _say(f"Stopped. What was recorded so far is in {root}.")
        return _STOPPED
    page.serve()
    return 0


class _Page:
    """The page, which can be looked at as soon as the first trial has begun; nothing if DEMO_SERVE is 0."""

    def __init__(self, root: Path, options: argparse.Namespace) -> None:
        self.root, self.options = root, options
        self.viewer: Viewer | None = None
        self.is_wanted = os.environ.get("DEMO_SERVE", "1") != "0"

    def open(self) -> None:
        import endoscope

        if self.is_wanted and self.viewer is None:
            port, browser = self.options.port, self.options.open
            self.viewer = endoscope.show(self.root, port=port, views=_views(), browser=browser)
            _say(f"The page is at  {self.viewer.address}")

    def serve(self) -> None:
        """Until Ctrl+C."""
        self.open()
        if self.viewer is None:
            _say(f"Recorded in {self.root}. To look at it:  endoscope show {self.root} --views {_views()}")
            return
        _say(f"The training has ended. What looks wrong:  endoscope check {self.root}")
        _say(f"The page is at  {self.viewer.address}")
        _say("One of the two networks has a bug. The tutorial, docs/tutorial.md in the sources, finds it step by step.")
        _say("Press Ctrl+C to stop.")
        self.viewer.wait()


def _record(root: Path, trial: str, settings: Settings, page: _Page) -> None:
    import torch

    from endoscope.demo import training

    torch.set_num_threads(1)  # so small a network gains nothing from more, and the page can have the other cores
    with training.begin_run(root, trial, settings) as begun:
        page.open()
        _say(f"Training {begun.path}, {settings.steps} steps")
        started = time.perf_counter()
        training.train(begun, settings, activate_last=training.TRIALS[trial], say=lambda text: _say(f"    {text}"))
    _say(f"    done in {time.perf_counter() - started:.0f} s")


def _find(root: Path, trial: str, settings: Settings) -> Path | None:
    """An earlier recording of this trial that was trained to its end; one that was broken off does not count."""
    from dataclasses import asdict

    from endoscope.query.open import look
    from endoscope.query.recording import Recording

    try:
        found = look(root)
    except NotARecording:
        return None
    if isinstance(found, Recording):
        raise BadArgument(f"{root} is a trial itself. Type a folder for the trials of the demo, or none.")
    for name in found:
        if re.fullmatch(rf"{trial}(-\d+)?", name):
            recording = Recording(root / name)
            accuracy = recording.metrics.get("accuracy")
            was_same = asdict(settings).items() <= recording.config.items()
            if was_same and accuracy is not None and len(accuracy.steps) == settings.steps:
                return root / name
    return None


def _views() -> Path:
    import endoscope.demo

    return Path(endoscope.demo.__file__).with_name("views.py")


def _say(text: str) -> None:
    print(text, flush=True)
