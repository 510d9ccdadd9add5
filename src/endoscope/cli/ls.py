"""`endoscope ls`: which trials a folder holds."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from endoscope.query.recording import Recording

SUMMARY = "list recorded trials, or say what a saved trace holds"


def add_options(parser: argparse.ArgumentParser) -> None:
    """A folder of trials, or one trial."""
    parser.add_argument(
        "path", metavar="PATH", nargs="?", default="runs", help="folder of trials, or a saved trace (default: runs)"
    )


def run(options: argparse.Namespace) -> int:
    """One line per trial; damage is named below."""
    import warnings

    from endoscope.cli.table import format_table, human_bytes
    from endoscope.query.open import open as open_recordings
    from endoscope.query.places import is_trace
    from endoscope.query.trial import of_folder
    from endoscope.store.paths import is_trial, trials_in

    folder = Path(options.path)
    if is_trace(folder):
        return _list_trace(folder)
    if not is_trial(folder):
        open_recordings(folder)  # says what is wrong, if nothing is there
    rows, damaged = [], []
    for trial in [folder] if is_trial(folder) else trials_in(folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is said below, in fewer words
            recording = of_folder(trial)
            steps, metrics = recording.steps, recording.metrics
            last = max([step.number for step in steps] + [int(metrics[name].steps[-1]) for name in metrics], default="")
        size = sum(path.stat().st_size for path in trial.rglob("*") if path.is_file())
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(recording.created)) if recording.created else "?"
        types = ", ".join(recording.types)
        rows.append([trial.name, started, _state(recording), _ranks(recording), len(steps), last, types,
                     len(recording.nodes), human_bytes(size)])  # fmt: skip
        if recording.problems:
            damaged.append(f"{trial}: {recording.problems[0]}")
    head = ["trial", "started", "state", "ranks", "recorded steps", "last step", "types", "nodes", "size"]
    if not any(row[3] for row in rows):  # of one process each, as most are
        head, rows = _without(head, 3), [_without(row, 3) for row in rows]
    print(format_table(head, rows))
    if damaged:
        print("\nDamaged (the rest can be read):\n  " + "\n  ".join(damaged))
    return 0


def _list_trace(file: Path) -> int:
    import endoscope
    from endoscope.cli.table import format_table, human_bytes

    trace = endoscope.load(file)
    taken = time.strftime("%Y-%m-%d %H:%M", time.localtime(trace.timing.started))
    totals = trace.totals
    row = [file.name, trace.name, taken, "complete" if trace.complete else "incomplete", len(trace), totals.modules,
           f"{totals.kept} of {totals.tensors}", human_bytes(file.stat().st_size)]  # fmt: skip
    head = ["trace", "of", "taken", "state", "operations", "modules", "values kept", "size"]
    print(format_table(head, [row]))
    for warning in trace.warnings:
        print(f"  not seen: {warning}")
    return 0


def _state(recording: Recording) -> str:
    from endoscope.query.liveness import is_running, last_sign
    from endoscope.query.ranks.reasons import named

    early = [rank for rank in recording.ranks if not recording.rank(rank).closed]
    if not early:
        return "finished"
    if is_running(recording):
        return "running"
    who = "" if len(early) == len(recording.ranks) else f"{named(early)} "
    return f"{who}ended early, {_age(time.time() - last_sign(recording))} ago"


def _ranks(recording: Recording) -> str:
    """Empty for one process."""
    there, all_ = len(recording.ranks), recording.world_size
    return "" if all_ == 1 else str(all_) if there == all_ else f"{there} of {all_}"


def _without(row: list[Any], place: int) -> list[Any]:
    return row[:place] + row[place + 1 :]


def _age(seconds: float) -> str:
    """90 -> 1 min"""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
