"""What correlations are worth: planted ones are found with the right strength, chance is not reported, and it is fast.

python benchmarks/correlation.py [--runs 100] [--quick] [--large FOLDER]

Recordings are made up, so the truth is known. README.md in this folder says how to read the tables.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure

measure.one_thread()
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the recordings are those of the tests

import numpy as np  # noqa: E402
from table import print_table  # noqa: E402

import endoscope  # noqa: E402
from tests.findings.made_up import write  # noqa: E402

NODES, STEPS, SAMPLES = 30, 250, 16
ALARMS_AT_MOST = 0.05
#: Share of a, share of b among those with a, share of b among the others.
PLANTED = (
    (0.05, 0.9, 0.05),
    (0.05, 0.6, 0.06),
    (0.03, 0.5, 0.02),
    (0.05, 0.35, 0.05),
    (0.1, 0.3, 0.08),
    (0.05, 0.15, 0.05),
)
Chance = np.random.Generator


def usual(chance: Chance, nodes: int = NODES, steps: int = STEPS, samples: int = SAMPLES) -> np.ndarray:
    """Norms of samples without anything to find in them."""
    return np.exp(0.2 * chance.standard_normal((nodes, steps, samples)))


# ---- planted ------------------------------------------------------------------------------------------------------


def planted(root: Path, runs: int) -> list[list[str]]:
    """Each strength over many recordings: how often it is found, with which lift, and whether its interval is right."""
    rows = [["b with a", "b without", "true lift", "found", "median lift", "interval holds", "median interval"]]
    for rate, with_a, without in PLANTED:
        truth = with_a / (rate * with_a + (1 - rate) * without)
        found = [_plant(root / f"{run}", np.random.default_rng([run, 7]), rate, with_a, without) for run in range(runs)]
        seen = [one for one in found if one is not None]
        holds = np.mean([one.interval.lift[0] <= truth <= one.interval.lift[1] for one in seen]) if seen else np.nan
        ends = np.median([one.interval.lift for one in seen], axis=0) if seen else (np.nan, np.nan)
        lift = np.median([one.lift for one in seen]) if seen else np.nan
        rows.append([f"{with_a:.0%}", f"{without:.0%}", f"{truth:.2f}", f"{len(seen)} of {runs}", f"{lift:.2f}",
                     f"{holds:.2f}", f"{ends[0]:.2f} to {ends[1]:.2f}"])  # fmt: skip
    return rows


def _plant(root: Path, chance: Chance, rate: float, with_a: float, without: float) -> Any | None:
    norms = usual(chance)
    a = chance.random((STEPS, SAMPLES)) < rate
    b = chance.random((STEPS, SAMPLES)) < np.where(a, with_a, without)
    norms[9][a] *= 8
    norms[4][b] *= 8
    path = write(root, norms)
    names = {"n9 unusually large", "n4 unusually large"}
    found = [one for one in endoscope.correlate(path) if {one.a, one.b} == names]
    shutil.rmtree(root)
    return found[0] if found else None


# ---- chance -------------------------------------------------------------------------------------------------------


def _with_events(chance: Chance) -> np.ndarray:
    norms = usual(chance)
    for node in range(0, NODES, 2):
        norms[node][chance.random((STEPS, SAMPLES)) < 0.05] *= 8
    return norms


def shuffled(root: Path, chance: Chance) -> Path:
    """Events at half of the nodes, categories, types and a loss; every number in a place of chance."""
    norms = _with_events(chance)
    categories = chance.choice(["a", "b", "c"], (STEPS, SAMPLES)).tolist()
    types = chance.choice(["long", "short"], STEPS).tolist()
    loss = np.exp(0.3 * chance.standard_normal(STEPS))
    of_samples = np.exp(chance.standard_normal((STEPS, SAMPLES)))
    shuffled_norms = np.stack([chance.permutation(node.ravel()).reshape(node.shape) for node in norms])
    return write(root, shuffled_norms, losses=of_samples, types=types, categories=categories, metrics={"loss": loss})


def drifting(root: Path, chance: Chance) -> Path:
    """Each node by itself has stretches of steps with many events, and a loss that falls: neighbours are alike."""
    norms = usual(chance)
    for node in range(NODES):
        level = _smooth(chance, STEPS, 15)
        norms[node][chance.random((STEPS, SAMPLES)) < 0.08 * np.exp(level)[:, None]] *= 8
    loss = np.exp(-np.arange(STEPS) / 80) + 0.05 * np.exp(_smooth(chance, STEPS, 8))
    return write(root, norms, metrics={"loss": loss})


def in_bursts(root: Path, chance: Chance) -> Path:
    """Whole batches go wrong for some steps in a row, at each node by itself, a few times."""
    norms = usual(chance)
    for node in range(NODES):
        for start in chance.integers(0, STEPS - 12, 3):
            norms[node, start : start + chance.integers(2, 12)] *= 6
    return write(root, norms, metrics={"loss": np.exp(0.2 * _smooth(chance, STEPS, 5))})


def same_samples(root: Path, chance: Chance) -> Path:
    """The same batch at every step: each place has its own habits at every node, independent between nodes."""
    habits = chance.choice([0.01, 0.3], (NODES, 1, SAMPLES), p=[0.8, 0.2])
    norms = usual(chance)
    norms[chance.random(norms.shape) < habits] *= 8
    return write(root, norms)


def samples_again(root: Path, chance: Chance) -> Path:
    """A hundred samples in batches of chance: each has its own habits at every node, independent between nodes."""
    which = np.stack([chance.choice(100, SAMPLES, replace=False) for _ in range(STEPS)])
    habits = chance.choice([0.01, 0.5], (NODES, 100), p=[0.9, 0.1])
    norms = usual(chance)
    norms[chance.random(norms.shape) < habits[:, which]] *= 8
    return write(root, norms, inputs=np.exp(0.1 * chance.standard_normal(100))[which])


def _smooth(chance: Chance, steps: int, width: int) -> np.ndarray:
    noise = chance.standard_normal(steps + 6 * width)
    kernel = np.exp(-0.5 * (np.arange(-3 * width, 3 * width + 1) / width) ** 2)
    return np.convolve(noise, kernel / np.sqrt((kernel**2).sum()), mode="valid")[:steps]


def alarms(root: Path, make: Callable[[Path, Chance], Path], runs: int) -> tuple[int, int]:
    """Recordings with at least one pair that is reported, and the most pairs of one."""
    counts = []
    for run in range(runs):
        path = make(root / f"{run}", np.random.default_rng([run, 3]))
        found = endoscope.correlate(path, events=["losses", "types", "categories", "outliers"])
        counts.append(len(found))
        shutil.rmtree(root / f"{run}")
    return sum(count > 0 for count in counts), max(counts)


# ---- speed --------------------------------------------------------------------------------------------------------


def large(folder: Path, nodes: int, steps: int) -> list[list[str]]:
    path = folder / "large"
    if not path.exists():
        chance = np.random.default_rng(0)
        norms = usual(chance, nodes, steps)
        for node in range(nodes):
            norms[node][chance.random((steps, SAMPLES)) < 0.02] *= 8
        both = chance.random((steps, SAMPLES)) < 0.02
        norms[nodes // 2][both] *= 8
        norms[nodes // 4][both] *= 8
        loss = np.exp(0.3 * chance.standard_normal((steps, SAMPLES)))
        write(folder, norms, trial="large", losses=loss, metrics={"loss": loss.mean(axis=1)})
    rows = [["recording", "secs", "CPU secs", "peak MB", "reported"]]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall, cpu = time.perf_counter(), time.process_time()
    found = endoscope.correlate(path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append([f"{nodes} nodes x {steps} steps x {SAMPLES} samples", f"{wall:.1f}", f"{cpu:.1f}",
                 f"{peak:.0f} (before: {before:.0f})", str(len(found))])  # fmt: skip
    for one in found[:3]:
        print(one.sentence)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="recordings for each line")
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--large", type=Path, help="keep the large recording in this folder")
    parser.add_argument("--only", choices=["planted", "chance", "large"], action="append")
    options = parser.parse_args()
    runs = max(options.runs // 10, 5) if options.quick else options.runs
    parts = options.only or ["planted", "chance", "large"]
    with tempfile.TemporaryDirectory() as folder:
        if "large" in parts:  # first: the peak of memory is that of the whole process
            nodes, steps = (200, 200) if options.quick else (1000, 1000)
            print_table(large(options.large or Path(folder), nodes, steps))
        if "planted" in parts:
            print_table(planted(Path(folder) / "planted", max(runs // 4, 5)))
        if "chance" in parts:
            rows = [["nothing happens together:", "runs", "with a report", "most in one", "at most 0.05"]]
            for make in (shuffled, drifting, in_bursts, same_samples, samples_again):
                wrong, most = alarms(Path(folder) / make.__name__, make, runs)
                verdict = "ok" if wrong / runs <= ALARMS_AT_MOST else "MISSED"
                rows.append([make.__name__, str(runs), str(wrong), str(most), verdict])
            print_table(rows)


if __name__ == "__main__":
    main()
