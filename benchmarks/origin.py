"""Is the origin of what goes wrong named? Thirty planted producers of NaN and infinity, thirty finite outliers.

python benchmarks/origin.py [--only NAME]

Prints one line for each case of tests/origins, asked of a trace and of a recorded training. README.md in this folder
says how to read the tables.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure

measure.one_thread()
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the cases belong to the tests

import numpy as np  # noqa: E402
from table import print_table  # noqa: E402

import endoscope  # noqa: E402
from endoscope.findings.change_point_search import change_points  # noqa: E402
from tests.origins.asking import BAD_STEP, names_outlier, names_producer, recorded, traced  # noqa: E402
from tests.origins.outliers import OUTLIERS, Outlier  # noqa: E402
from tests.origins.outside import OUTSIDE, Outside  # noqa: E402
from tests.origins.producers import CASES, Case  # noqa: E402

OUTLIERS_AT_LEAST = 27


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases with this in their name")
    wanted = parser.parse_args().only
    warnings.simplefilter("ignore")
    _table("producers of NaN and infinity", [case for case in CASES if wanted in case.name], _producer, len(CASES))
    _table("finite outliers", [case for case in OUTLIERS if wanted in case.name], _outlier, OUTLIERS_AT_LEAST)
    _outside([case for case in OUTSIDE if wanted in case.name])
    if not wanted:
        _changes()


def _table(title: str, cases: list[Any], ask: Callable[[Any], list[str]], needed: int) -> None:
    rows = [ask(case) for case in cases]
    print(f"{title}: in a trace {_right(rows, 3)} of {len(rows)} (target {min(needed, len(rows))}), "
          f"in a recording {_right(rows, 5)}\n")  # fmt: skip
    head = ["planted", "operations", "answer", "trace", "secs", "recording", "secs more"]
    if rows and len(rows[0]) > len(head):
        head.append("recording, what='*'")
        print(f"where every operation is recorded: {_right(rows, 7)} of {len(rows)}, with operation and line\n")
    print_table([head, *rows])


def _outside(cases: list[Outside]) -> None:
    """Code outside of any module: what hooks tell, and what a recording of every operation tells."""
    rows = [
        [case.name, *(_answer(case, what) for what in (None, "*") if what is None or case.watched)] for case in cases
    ]
    right = sum(row[1] == "right" for row in rows), sum(row[-1] == "right" for row in rows)
    print(f"made outside of modules: {right[0]} of {len(rows)}; every operation recorded: {right[1]} of {len(rows)}; "
          f"told as certain and wrong: {sum('WRONG' in row for row in rows)}\n")  # fmt: skip
    print_table([["planted", "recording", "recording, what='*'"], *[[*row, *[""] * (3 - len(row))] for row in rows]])


def _answer(case: Outside, what: str | None) -> str:
    with tempfile.TemporaryDirectory() as folder:
        found = endoscope.origin(case.recorded(folder, what))
    if case.is_named(found):
        return "right"
    return "around here" if found and not found[0].exact else "WRONG"


def _right(rows: list[list[str]], column: int) -> int:
    return sum(row[column] == "right" for row in rows)


def _producer(case: Case) -> list[str]:
    trace = traced(case)
    found, secs = _timed(lambda: endoscope.origin(trace))
    with tempfile.TemporaryDirectory() as folder:
        path = recorded(case, folder)
        again = endoscope.origin(path, step=BAD_STEP)
        steps = endoscope.open(path).steps
        more = steps[BAD_STEP].recording_seconds - steps[BAD_STEP - 1].recording_seconds
    said = f"{found[0].operation}, samples {found[0].samples}" if found else "nothing"
    return [
        case.name, str(len(trace.ops)), said, _verdict(names_producer(case, found)), f"{secs:.2f}",
        _verdict(names_producer(case, again, BAD_STEP)), f"{more:.2f}",
    ]  # fmt: skip


def _outlier(case: Outlier) -> list[str]:
    trace = traced(case)
    found, secs = _timed(lambda: endoscope.origin(trace, sample=case.sample))
    with tempfile.TemporaryDirectory() as folder:
        path = recorded(case, folder)
        again, more = _timed(lambda: endoscope.origin(path, step=BAD_STEP, sample=case.sample))
    with tempfile.TemporaryDirectory() as folder:
        every = endoscope.origin(recorded(case, folder, what="*"), step=BAD_STEP, sample=case.sample)
    said = f"{found[0].node}, {found[0].value:.0f} spreads" if found else "nothing"
    return [
        case.name, str(len(trace.ops)), said, _verdict(names_outlier(case, found)), f"{secs:.2f}",
        _verdict(names_outlier(case, again, case.node)), f"{more:.2f}", _verdict(names_outlier(case, every)),
    ]  # fmt: skip


def _timed(ask: Callable[[], list[Any]]) -> tuple[list[Any], float]:
    started = time.perf_counter()
    return ask(), time.perf_counter() - started


def _verdict(right: bool) -> str:
    return "right" if right else "WRONG"


def _changes() -> None:
    """Change points: false alarms in series without any, planted jumps that are found; 1,000 series of 1,000 steps."""
    rng, steps = np.random.default_rng(0), np.arange(1000)
    walk = np.cumsum(rng.normal(0, 0.02, (1000, 1000)), axis=1)
    decay = -2 * (1 - np.exp(-steps / rng.uniform(5, 300, (1000, 1))))
    quiet = {
        "white noise": rng.normal(0, 0.3, (1000, 1000)),
        "heavy tails": 0.3 * rng.standard_t(3, (1000, 1000)),
        "random walk": walk,
        "training that decays": decay + rng.normal(0, 0.02, (1000, 1000)),
        "power law": -rng.uniform(0.2, 1, (1000, 1)) * np.log1p(steps) + rng.normal(0, 0.05, (1000, 1000)),
    }
    rows = [["series", "planted", "found within 3 steps", "other alarms", "secs"]]
    for name, series in quiet.items():
        found, secs = _timed(lambda series=series: change_points(series, np.log(1.25)))  # type: ignore[misc]
        rows.append([name, "nothing", "", str(len(found)), f"{secs:.2f}"])
    for jump in (0.5, 1.0, 2.0):
        at = rng.integers(100, 900, 1000)
        series = decay + rng.normal(0, 0.1, (1000, 1000)) + jump * (steps >= at[:, None])
        found, secs = _timed(lambda series=series: change_points(series, np.log(1.25)))  # type: ignore[misc]
        near = {point.row for point in found if abs(point.place - at[point.row]) <= 3}
        others = sum(abs(point.place - at[point.row]) > 3 for point in found)
        rows.append([f"decay, noise 0.1, jump {jump}", "1000", str(len(near)), str(others), f"{secs:.2f}"])
    print_table(rows)


if __name__ == "__main__":
    main()
