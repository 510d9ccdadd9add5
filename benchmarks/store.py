"""How fast recorded steps are written and read back: 1,000 steps of 500 tensors, with samples, units and raw values.

python benchmarks/store.py
python benchmarks/store.py --steps 200 --tensors 100

The numbers are made up, so neither torch nor a training loop takes part. Files go to a temporary folder, about half a
gigabyte, and are read from the system's cache: the speed of the disk is not measured.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from table import print_table

import endoscope
from endoscope.schema.recording import Key, RawValues, StepRecord
from endoscope.schema.stats import COUNTS, SAMPLE, UNIT, WHOLE
from endoscope.store.writer import TrialWriter

SAMPLES, UNITS, BINS, RAW_FLOATS = 8, 16, 40, 64
OPEN_SECS_AT_MOST, SERIES_SECS_AT_MOST, BYTES_PER_RAW_FLOAT_AT_MOST = 1.0, 0.020, 4.3


def measured(tensors: int, chance: np.random.Generator) -> Any:
    """What one step measures, made up."""
    counts = chance.integers(1, 1000, tensors)
    return SimpleNamespace(
        whole={name: counts if name in COUNTS else chance.standard_normal(tensors) for name in WHOLE},
        hist_first=np.full(tensors, 100, np.int16),
        hist_values=np.ones(tensors * BINS, np.uint32),
        hist_offsets=np.arange(tensors + 1, dtype=np.int32) * BINS,
        sample_request=np.repeat(np.arange(tensors, dtype=np.int32), SAMPLES),
        sample_index=np.tile(np.arange(SAMPLES, dtype=np.int32), tensors),
        samples={name: np.ones(tensors * SAMPLES, np.float32) for name in SAMPLE},
        unit_shape=[(UNITS,)] * tensors,
        unit_offsets=np.arange(tensors + 1, dtype=np.int32) * UNITS,
        units={name: np.ones(tensors * UNITS, np.float32) for name in UNIT},
        gaps=[],
    )


def write(root: Path, steps: int, tensors: int) -> tuple[Path, list[float]]:
    """Seconds of each `write_step`; making the numbers up is not counted."""
    writer, chance = TrialWriter.create(root, "trial"), np.random.default_rng(0)
    keys = [writer.key_id(Key(f"layer.{n}", shape=(SAMPLES, UNITS), batch_dim=0)) for n in range(tensors)]
    raw = [RawValues(key, np.ones((4, RAW_FLOATS), np.float32), [0, 1, 2, 3]) for key in keys[:50]]
    seconds = []
    for number in range(steps):
        record = StepRecord(
            number=number, type="train", time=time.time(), graph_hash="g", graph={"nodes": []}, keys=np.array(keys),
            measured=measured(tensors, chance), raw=raw if number % 10 == 0 else [], metrics={"loss": 1.0},
        )  # fmt: skip
        started = time.perf_counter()
        writer.write_step(record)
        seconds.append(time.perf_counter() - started)
    writer.close()
    return writer.path, seconds


def best(action: Callable[[], Any], rounds: int = 5) -> tuple[float, float]:
    """(first, median) seconds; the first call may have to read what later ones find in memory."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    return seconds[0], float(np.median(seconds))


def bytes_per_raw_float(root: Path) -> float:
    """Five samples of fifty tensors of 512 numbers, the whole trial divided by the numbers."""
    writer = TrialWriter.create(root, "raw")
    keys = [writer.key_id(Key(f"layer.{n}", shape=(128, 512), batch_dim=0)) for n in range(50)]
    raw = [RawValues(key, np.ones((5, 512), np.float32), range(5)) for key in keys]
    for number in range(20):
        writer.write_step(StepRecord(number=number, type="train", time=0.0, raw=raw))
    writer.close()
    size = sum(path.stat().st_size for path in writer.path.rglob("*") if path.is_file())
    return size / (20 * 50 * 5 * 512)


def rows(steps: int, tensors: int, root: Path) -> list[list[str]]:
    table = [["what", "first", "median", "limit", ""]]

    def add(what: str, first: str, median: str = "", limit: str = "", missed: bool = False) -> None:
        table.append([what, first, median, limit, "MISSED" if missed else ""])

    path, seconds = write(root, steps, tensors)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    add("write one step", f"{1e3 * seconds[0]:.2f} ms", f"{1e3 * float(np.median(seconds)):.2f} ms")
    add("write rate", f"{size / 1e6 / sum(seconds):.0f} MB/s", f"{steps * tensors / sum(seconds):,.0f} tensors/s")
    add("size", f"{size / 1e6:.0f} MB", f"{size / steps / tensors:.0f} bytes/tensor")
    opened = best(lambda: endoscope.open(path))
    add("open", *[f"{1e3 * secs:.0f} ms" for secs in opened], f"{1e3 * OPEN_SECS_AT_MOST:.0f} ms",
        missed=steps <= 1000 and max(opened) > OPEN_SECS_AT_MOST)  # fmt: skip
    for what, options in {"series": {}, "series of a sample": {"sample": 2}, "series of a unit": {"unit": 3}}.items():
        recording = endoscope.open(path)
        node = iter(range(tensors))
        took = best(lambda: recording.series(f"layer.{next(node)}", "std", **options), 15)  # noqa: B023
        limit = SERIES_SECS_AT_MOST if what == "series" else float("inf")
        shown = f"{1e3 * limit:.0f} ms" if what == "series" else ""
        add(what, *[f"{1e3 * secs:.1f} ms" for secs in took], shown, missed=steps <= 1000 and took[0] > limit)
    recording = endoscope.open(path)
    add("all statistics of one step", *_ms(best(lambda: recording.statistics("layer.1", steps // 2))))
    add("raw values of one tensor", *_ms(best(lambda: recording.tensor("layer.1", 0))))
    add("refresh without news", *_ms(best(recording.refresh)))
    add("to_arrow(), all statistics", *_ms(best(recording.to_arrow, 3)))
    took = best(lambda: recording.sql("select node, max(norm) from stats group by node"), 3)
    add("sql: max(norm) by node", *_ms(took))
    checked = best(recording.verify, 3)
    add("verify", *_ms(checked))
    add("read rate (verify)", f"{size / 1e6 / checked[1]:.0f} MB/s")
    per_float = bytes_per_raw_float(root)
    add("bytes per raw float", f"{per_float:.3f}", "", str(BYTES_PER_RAW_FLOAT_AT_MOST),
        per_float > BYTES_PER_RAW_FLOAT_AT_MOST)  # fmt: skip
    return table


def _ms(seconds: tuple[float, float]) -> list[str]:
    return [f"{1e3 * secs:.1f} ms" for secs in seconds]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--tensors", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="endoscope-") as folder:
        found = rows(options.steps, options.tensors, Path(folder))
    print(f"{options.steps:,} steps of {options.tensors:,} tensors\n")
    print_table(found)
    sys.exit(any(row[-1] for row in found[1:]))
