"""Whole runs with a budget: what they cost by an outside clock, and what they say that they cost.

python benchmarks/budget.py [--quick] [--models NAMES] [--budgets 0.05,0.2] [--secs SECS]

    plain │ recorded          │ other plain │ plain │ recorded          │ other plain │ …     all in one process
    n ÷ 2   n steps · written   n ÷ 2 steps          ── four of these are a tenth of the run ──►

README.md in this folder says how to read the table.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure

measure.one_thread()

import in_a_row  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
from step_clock import Trained  # noqa: E402
from table import print_table  # noqa: E402
from ways_to_record import NotRecorded, open_run, watch  # noqa: E402
from zoo import Net, named  # noqa: E402

import endoscope  # noqa: E402

NETS = ("two Linear of 64", "MLP of 128", "dictionary of heads", "convolutions in place", "ViT by hand")
NETS += ("TransformerEncoder",)
BUDGETS = (0.05, 0.2)
TENTHS, BLOCKS_OF_TENTH = 10, 4
ABOVE_AT_MOST = 1.3  # times the budget
SAID_FROM = 0.2  # budgets from here on must be told truly
SAID_OFF_AT_MOST = 0.2
METRIC_AT_MOST = 1.06


def said_share(report: Mapping[str, Any]) -> float:
    """What a recording says that it added, as a share of training; NaN if it says nothing."""
    for part in (report.get("budget"), report.get("cost"), report):
        for key in ("share", "added_share", "cost_share", "added"):
            if isinstance(part, Mapping) and isinstance(part.get(key), (int, float)):
                return float(part[key])
    return math.nan


@dataclass(frozen=True)
class Outcome:
    """One run with a budget, block by block: CPU seconds of two plain nets and of the recorded one."""

    net: str
    budget: float
    step_secs: float  # of the plain net
    plain: list[tuple[float, float]]
    recorded: list[float]
    start_secs: float  # Run(), watch and the first step, less a plain step
    close_secs: float
    said: float
    steps: int  # that were recorded
    empty_tenths: int

    def added(self) -> float:
        """Of the whole run, without its start and close."""
        return sum(self.recorded) / sum(a + b for a, b in self.plain) - 1

    def added_in_tenths(self) -> list[float]:
        size = BLOCKS_OF_TENTH
        pairs = [(self.recorded[i : i + size], self.plain[i : i + size]) for i in range(0, len(self.plain), size)]
        return [sum(ours) / sum(a + b for a, b in plain) - 1 for ours, plain in pairs]

    def median(self) -> float:
        return statistics.median(self.added_in_tenths())

    def error(self) -> float:
        """From what the tenths differ by, or what two plain copies of the net do."""
        median, tenths = self.median(), self.added_in_tenths()
        spread = statistics.median(abs(share - median) for share in tenths)
        first, second = (sum(pair[i] for pair in self.plain) for i in (0, 1))
        # One copy against the mean of two others: √1.5 of a deviation that is seen as the distance of two ÷ √2.
        of_copies = math.sqrt(1.5 / 2) * abs(first - second) * 2 / (first + second)
        return max(1.4826 * 1.2533 * spread / math.sqrt(len(tenths)), of_copies)

    def cost_verdict(self) -> str:
        limit = ABOVE_AT_MOST * self.budget
        word = "MISSED" if self.median() - self.error() > limit else "ok"
        return f"≤ {limit:.3f} {word}"

    def said_verdict(self) -> str:
        if self.budget < SAID_FROM:
            return f"{self.said:.3f}"
        off, allowed = abs(self.said - self.added()), SAID_OFF_AT_MOST * abs(self.added())
        word = "ok" if off <= allowed else "unsure" if off <= allowed + self.error() else "MISSED"
        return f"{self.said:.3f} {word}"

    def cells(self) -> list[str]:
        return [
            self.net, f"{1e3 * self.step_secs:.2f}", f"{self.budget:g}", f"{self.median():.3f} ± {self.error():.3f}",
            self.cost_verdict(), f"{self.added():.3f}", self.said_verdict(), f"{self.start_secs:.2f}",
            f"{self.close_secs:.2f}", f"{self.steps:,}", f"{self.empty_tenths}{' MISSED' * bool(self.empty_tenths)}",
        ]  # fmt: skip


HEAD = ["net", "plain ms", "budget", "added, median", "target", "in all", "said", "start s", "close s"]
HEAD += ["recorded", "empty tenths"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Added CPU time of whole runs with a budget.")
    parser.add_argument("--quick", action="store_true", help="8 seconds a run instead of 40")
    parser.add_argument("--secs", type=float, help="CPU seconds of the recorded half of a run")
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--models", default="", help="comma-separated words; only nets whose name contains one")
    options = parser.parse_args()
    words = options.models.lower().split(",")
    names = [name for name in NETS if any(word.strip() in name.lower() for word in words)]
    secs = options.secs or (8.0 if options.quick else 40.0)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="budget-") as folder:
        for name in names:
            for budget in map(float, options.budgets.split(",")):
                print(f"{name}, budget={budget:g} ...", file=sys.stderr, flush=True)
                outcomes.append(whole_run(named(name), budget, secs, Path(folder)))
        print(f"\nRuns of {secs:g} s. CPU of all threads, one torch thread.\n")
        print_table([HEAD, *[outcome.cells() for outcome in outcomes]])
        _print_metric(Path(folder), options.quick)


def whole_run(net: Net, budget: float, secs: float, folder: Path) -> Outcome:
    """Train three copies of a net in turns, one of them recorded."""
    _warm_up(net, folder)
    first, second, recorded = net.make(), net.make(), net.make()
    for plain in (first, second):
        _secs(plain.step, 3)
    step_secs = _secs(first.step, 10) / 10
    half = max(1, round(secs / step_secs / (TENTHS * BLOCKS_OF_TENTH) / 2))
    begun = time.process_time()
    run = open_run(folder, "budget", when=1, budget=budget)
    watch(run, recorded)
    recorded.step()
    run.flush()
    start_secs = time.process_time() - begun - step_secs
    plain_secs, recorded_secs = [], []
    for _ in range(TENTHS * BLOCKS_OF_TENTH):
        gc.collect()  # off the clock: garbage of one side is not to be collected on the bill of another
        before = _secs(first.step, half)
        recorded_secs.append(_secs(recorded.step, 2 * half, run.flush))
        plain_secs.append((before, _secs(second.step, half)))
    close_secs = _secs(run.close, 1)
    numbers, said = _what_is_found(run.path)
    all_steps = (1 + 2 * half * len(recorded_secs)) * recorded.updates
    empty = TENTHS - len({number * TENTHS // all_steps for number in numbers})
    return Outcome(
        net.name, budget, step_secs, plain_secs, recorded_secs, start_secs, close_secs, said, len(numbers), empty
    )


def _warm_up(net: Net, folder: Path) -> None:
    """A run that is thrown away: kernels are compiled and loaded, once for a process, not once for a run."""
    training = net.make()
    with open_run(folder, "warm-up", when=1) as run:
        watch(run, training)
        for _ in range(3):
            training.step()


def _secs(step: Callable[[], object], steps: int, settle: Callable[[], object] | None = None) -> float:
    """CPU seconds of some steps in a row, until nothing is left in the background."""
    start = time.process_time()
    for _ in range(steps):
        step()
    if settle is not None:
        settle()
    return time.process_time() - start


def _what_is_found(path: str) -> tuple[list[int], float]:
    recording = endoscope.open(path)
    return [step.number for step in recording.steps], said_share(recording.config.get("endoscope", {}))


class WithMetric(NotRecorded):
    """Not recorded, and the loss is reported at every step."""

    def step(self) -> None:
        loss = self.training.step()
        self.run.metric("loss", loss.detach())
        self.steps += 1


def _print_metric(folder: Path, quick: bool) -> None:
    """A step of a fraction of a millisecond that is not recorded, with one metric."""
    net, one_metric = named(NETS[0]), "one metric"

    @contextlib.contextmanager
    def copy() -> Iterator[Mapping[str, Trained]]:
        ways = {"not recorded": NotRecorded(net, folder, "not"), one_metric: WithMetric(net, folder, "metric")}
        plain = {side: Trained(net.make().step) for side in ("plain", "plain again")}
        yield plain | {side: way.side() for side, way in ways.items()}
        for way in ways.values():
            way.close()

    blocks = in_a_row.compare(copy, 0.0, *((2, 2) if quick else (8, 8)), shape=(25, 200))
    print_table(
        [
            [f"{net.name}, {1e3 * blocks.step_secs('plain'):.2f} ms, not recorded", "÷ plain", "target"],
            *[[side, *_judged(blocks, side, METRIC_AT_MOST if side == one_metric else None)] for side in blocks.secs],
        ]
    )


def _judged(blocks: in_a_row.Blocks, side: str, limit: float | None) -> tuple[str, str]:
    ratio, error = blocks.ratio(side), blocks.error(side)
    word = "" if limit is None else "MISSED" if ratio - error > limit else "unsure" if ratio > limit else "ok"
    return f"{ratio:.3f} ± {error:.3f}", "" if limit is None else f"≤ {limit:g} {word}"


if __name__ == "__main__":
    main()
