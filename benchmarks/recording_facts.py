"""Peak memory, start-up, and how fast a recording is written and read: each from processes of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recording_probe import LONG_STEPS

SCRIPT = Path(__file__).with_name("recording.py")
MEMORY_AT_MOST = 100e6  # above a plain training, and the raw bytes of a step
STARTUP_SECS_AT_MOST = 0.3
OPEN_SECS_AT_MOST = 1.0
SERIES_SECS_AT_MOST = 0.02
BYTES_PER_NUMBER_AT_MOST = 4.3


@dataclass(frozen=True)
class Fact:
    """One number, how it is printed, and what it may be at most."""

    what: str
    value: float
    form: str
    limit: float | None = None

    def text(self) -> str:
        return self.form.format(self.value)

    def word(self) -> str:
        if self.limit is None:
            return ""
        # Not `>`, because a number that could not be measured misses as well.
        return "MISSED" if not self.value <= self.limit else "ok"

    def verdict(self) -> str:
        return "" if self.limit is None else f"≤ {self.form.format(self.limit)} {self.word()}"


def measured(folder: Path, quick: bool, say: Callable[[str], None]) -> list[Fact]:
    say("peak memory of the transformer ...")
    facts = _memory(folder)
    say("bytes on disk ...")
    facts += _disk(folder)
    say("start-up ...")
    facts += _startup(folder, 3 if quick else 7)
    say("writing and reading a long recording ...")
    return facts + _rates(folder)


def _memory(folder: Path) -> list[Fact]:
    plain = _probe("memory", "plain", folder)[0]["peak"]
    facts = [Fact("peak memory of the plain transformer", plain / 1e6, "{:.0f} MB")]
    for keep, what in ((0, "all statistics"), (5, "raw values of 5 samples")):
        found = _probe("memory", str(keep), folder)[0]
        limit = (MEMORY_AT_MOST + found["raw"]) / 1e6
        facts.append(Fact(f"  above it, {what}", (found["peak"] - plain) / 1e6, "{:.0f} MB", limit))
        facts.append(Fact("    of which loaded before the first step", found["loaded"] / 1e6, "{:.0f} MB"))
    return facts


def _disk(folder: Path) -> list[Fact]:
    """What a step takes, and what one with raw values takes more, per raw number: heads and rows included."""
    facts = []
    for name in ("MLP", "transformer"):
        found = _probe("disk", name, folder)[0]
        facts.append(Fact(f"a step without raw values, {name}", found["statistics"] / 1e3, "{:.0f} kB"))
        facts.append(Fact(f"bytes per raw number, {name}", found["per_number"], "{:.3f}", BYTES_PER_NUMBER_AT_MOST))
    return facts


def _startup(folder: Path, times: int) -> list[Fact]:
    """The first process finds an empty kernel cache, the others find what it left."""
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    cold, said = _probe("startup", folder, **cache)
    warm = [_probe("startup", folder, **cache) for _ in range(times)]
    talkative = sum(bool(words) for _, words in warm)
    wall, cpu, opening = (statistics.median(run[key] for run, _ in warm) for key in ("wall", "cpu", "opening"))
    return [
        Fact("start-up, warm kernel cache, beyond a later step", wall, "{:.3f} s", STARTUP_SECS_AT_MOST),
        Fact("  CPU time of all threads", cpu, "{:.3f} s"),
        Fact("  of which endoscope.Run() and watch", opening, "{:.3f} s"),
        Fact("  processes that said something, such as that they compile", talkative, "{:.0f}", 0.0),
        Fact(f"start-up, cold cache; it said: {said[:90] or 'nothing'}", cold["wall"], "{:.1f} s"),
    ]


def _rates(folder: Path) -> list[Fact]:
    written = _probe("write", folder)[0]
    read = [_probe("read", written["path"])[0] for _ in range(3)]
    opened, first, series = (statistics.median(run[key] for run in read) for key in ("open", "first_series", "series"))
    steps, tensors, shortest = (read[0][key] for key in ("steps", "tensors", "shortest"))
    size = f"{steps:,} steps of {tensors} tensors"
    return [
        Fact(f"recorded and written per second, {size}", steps / written["wall"], "{:.0f} steps"),
        Fact("  CPU time of a step, training included", 1e3 * written["cpu"] / steps, "{:.1f} ms"),
        Fact("  missing from it, or from a series", LONG_STEPS - min(steps, shortest), "{:.0f}", 0.0),
        Fact("open it, steps and nodes listed", opened, "{:.3f} s", OPEN_SECS_AT_MOST),
        Fact("first series", 1e3 * first, "{:.1f} ms", 1e3 * SERIES_SECS_AT_MOST),
        Fact("another series", 1e3 * series, "{:.1f} ms", 1e3 * SERIES_SECS_AT_MOST),
    ]


def _probe(*arguments: object, **environment: str) -> tuple[dict[str, Any], str]:
    """The answer of a probe and what it said besides."""
    command = [sys.executable, str(SCRIPT), "--probe", *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[1:])} failed:\n{done.stderr}")
    *printed, answer = done.stdout.strip().splitlines()
    return json.loads(answer), " ".join([*printed, *done.stderr.strip().splitlines()])
