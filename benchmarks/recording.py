"""What recording costs: a recorded training step ÷ the plain one, ours and Comgra side by side; memory, disk, start-up.

python benchmarks/recording.py [--quick] [--no-peer] [--models NAMES] [--only PARTS] [--folder FOLDER]

README.md in this folder says how to read the tables.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import measure

measure.one_thread()

import peer  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
import recording_facts  # noqa: E402
import step_clock  # noqa: E402
import torch  # noqa: E402
from recording_probe import PROBES  # noqa: E402
from table import print_table  # noqa: E402
from training import TrainingCase, select  # noqa: E402
from ways_to_record import NOT_RECORDED, RECORDED, Budgeted, NotRecorded, Recorded, Way, opened  # noqa: E402

AT_MOST = {
    "all statistics": {"MLP": 1.5, "transformer": 1.1},
    "+ raw values of 5 samples": {"MLP": 1.8, "transformer": 1.3},
    "not recorded": {"MLP": 1.01, "transformer": 1.01},
    "decided against": {"MLP": 1.05, "transformer": 1.05},
    "decided against early": {"MLP": 1.05, "transformer": 1.05},
    "budget=0.05": {"MLP": 1.06, "transformer": 1.06},
}
BYTES_PER_NUMBER_AT_MOST = 4.3
COPIES = {"MLP": 12, "transformer": 4}  # of each network, where the ratio is close to one
LEARNED_FROM = {"MLP": 80, "transformer": 4}  # steps: the first ones of a run are not like the others
BUDGET = 0.05
BUDGET_STEPS = 300
MINUTES = ("transformer",)  # where so many steps take minutes: once, and not in a quick run
PARTS = ("steps", "budget", "facts")
HEAD = ["model", "plain ms", "training step ÷ plain", "CPU", "best", "wall", "best", "target", "kB/step"]
HEAD += ["Comgra CPU", "wall", "kB/step"]


@dataclass(frozen=True)
class Ratio:
    """A median over the rounds, how far it may be off, and the best round ÷ the best plain round."""

    median: float
    error: float
    best: float

    @classmethod
    def of(cls, comparison: measure.Comparison, side: str) -> Ratio:
        best = comparison.best_ratio(side, "plain")
        return cls(comparison.ratio(side, "plain"), comparison.error(side, "plain"), best)


@dataclass(frozen=True)
class Line:
    """One way of recording on one model; `complaint` says if it did not record what it should have."""

    what: str
    cpu: Ratio
    wall: Ratio
    limit: float | None = None
    bytes_per_step: float = 0.0
    complaint: str = ""

    def verdict(self) -> str:
        """Missed if a median is above the limit by more than its own error."""
        if self.complaint:
            return f"MISSED: {self.complaint}"
        if self.limit is None:
            return ""
        ratios = {"CPU": self.cpu, "wall": self.wall}
        missed = [clock for clock, ratio in ratios.items() if ratio.median - ratio.error > self.limit]
        above = [clock for clock, ratio in ratios.items() if ratio.median > self.limit and clock not in missed]
        words = [f"MISSED ({', '.join(missed)})"] * bool(missed) + [f"unsure ({', '.join(above)})"] * bool(above)
        return f"≤ {self.limit:g}  {'  '.join(words)}".strip()


@dataclass(frozen=True)
class Block:
    """All lines of one model."""

    name: str
    plain_ms: float
    lines: list[Line]
    bytes_per_number: float | None = None
    added_micros: float | None = None  # to a step that is not recorded


def main() -> None:
    options = _options()
    if options.probe:
        name, *arguments = options.probe
        print(json.dumps(PROBES[name](*arguments)))
        return
    parts = options.only.split(",") if options.only else list(PARTS)
    with tempfile.TemporaryDirectory(prefix="recording-", dir=options.folder) as name:
        folder = Path(name)
        blocks = [_measured(case, folder / case.name, parts, options.quick) for case in select(options.models)]
        facts = recording_facts.measured(folder, options.quick, _say) if "facts" in parts else []
    theirs = _peer(options)
    blocks = [block for block in blocks if block.lines]
    if blocks:
        _print_blocks(blocks, theirs)
    facts = [fact for block in blocks for fact in _block_facts(block)] + facts
    _print_facts(facts)
    verdicts = [line.verdict() for block in blocks for line in block.lines] + [fact.verdict() for fact in facts]
    _print_verdict(verdicts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Recorded training step ÷ plain training step.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and steps")
    parser.add_argument("--no-peer", action="store_true", help="do not install and measure Comgra")
    parser.add_argument("--peer-python", help="use this interpreter, which has the peer already")
    parser.add_argument("--models", help="comma-separated words; only models whose name contains one of them")
    parser.add_argument("--only", help=f"comma-separated parts: {', '.join(PARTS)}")
    parser.add_argument("--folder", help="where the recordings go while they are needed: up to 3 GB")
    parser.add_argument("--probe", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measured(case: TrainingCase, folder: Path, parts: list[str], quick: bool) -> Block:
    plain, lines, per_number, added = case.make(), [], None, None
    folder.mkdir()
    if "steps" in parts:
        cheap = measure.Effort(8.0, 5, 15) if quick else measure.Effort(60.0, 16, 96)
        dear = measure.Effort(8.0, 3, 9) if quick else measure.Effort(70.0, 9, 25)
        _say(f"{case.name}: steps that are not recorded ...")
        copies = 1 if quick else COPIES[case.name]
        first, _ = _compared(NOT_RECORDED, case, folder, max(1, case.steps // 3), cheap, copies)
        _say(f"{case.name}: recorded steps ...")
        second, recorded = _compared(RECORDED, case, folder, case.steps, dear)
        lines = [*first, *second]
        per_number = _bytes_per_number(*recorded.values())
        added = _added_micros(case, folder, measure.Effort(10.0, 100, 400))
    if "budget" in parts and not (quick and case.name in MINUTES):
        _say(f"{case.name}: whole runs with a budget ...")
        lines.append(_whole_runs(case, folder, rounds=1 if quick or case.name in MINUTES else 5))
    plain_ms = 1e3 * step_clock.sample(step_clock.Trained(plain.step), case.steps)[0]
    return Block(case.name, plain_ms, lines, per_number, added)


def _compared(
    ways: dict[str, Way], case: TrainingCase, folder: Path, steps: int, effort: measure.Effort, copies: int = 1
) -> tuple[list[Line], dict[str, Recorded]]:
    """The given ways and the plain step in turns; "plain again" is the plain step as if it were a way to record.

    Where the numbers of a network happen to lie in memory makes it one percent faster or slower, for as long as it
    lives. Small ratios are therefore taken over several copies of every side.
    """
    timings, complaints = [], dict.fromkeys(ways, "")
    for number in range(copies):
        with opened(ways, case, folder / f"copy {number}") as recorded:
            sides = {name: step_clock.Trained(case.make().step) for name in ("plain", "plain again")}
            sides |= {name: way.side() for name, way in recorded.items()}
            timings.append(step_clock.compare(sides, steps, effort.part(copies), LEARNED_FROM[case.name]))
        complaints |= {name: complaints[name] or way.complaint() for name, way in recorded.items()}
    timing = step_clock.joined(timings)
    lines = [_line(case, "plain again", timing)]
    for name, way in recorded.items():
        size = way.bytes_per_step() if way.expected() == way.steps else 0.0
        lines.append(replace(_line(case, name, timing), complaint=complaints[name], bytes_per_step=size))
    return lines, recorded


def _line(case: TrainingCase, way: str, timing: step_clock.Timing) -> Line:
    cpu, wall = Ratio.of(timing.cpu, way), Ratio.of(timing.wall, way)
    return Line(way, cpu, wall, AT_MOST.get(way, {}).get(case.name))


def _added_micros(case: TrainingCase, folder: Path, effort: measure.Effort) -> float:
    """What watching adds to a step that is not recorded. It touches no tensor, so a network of the same modules, but
    with hardly any numbers, shows it without the noise of the arithmetic."""
    tiny = case.tiny()
    with opened({"tiny": lambda case, folder: NotRecorded(case, folder, "tiny")}, tiny, folder) as recorded:
        sides = {"plain": step_clock.Trained(tiny.make().step), "watched": recorded["tiny"].side()}
        cpu = step_clock.compare(sides, 5, effort).cpu
    # The fastest of many short samples: noise only adds, and here it is larger than what is looked for.
    return 1e6 * (min(cpu.secs["watched"]) - min(cpu.secs["plain"]))


def _whole_runs(case: TrainingCase, folder: Path, rounds: int) -> Line:
    """Runs up to `close()` against as many plain steps, half of them before and half after.

    Not in turns step by step: the budget counts all time between two steps as training.
    """
    plain = step_clock.Trained(case.make().step)
    step_clock.sample(plain, 3)
    runs, secs = [], []
    for _ in range(rounds):
        before = step_clock.sample(plain, BUDGET_STEPS // 2)
        budgeted = Budgeted(case, folder, "budget", when=lambda info: True, keep=0, budget=BUDGET)
        runs.append(budgeted)
        whole = step_clock.sample(step_clock.Trained(budgeted.steps_and_close(BUDGET_STEPS)), 1)
        after = step_clock.sample(plain, BUDGET_STEPS // 2)
        secs.append([(before[clock], whole[clock] / BUDGET_STEPS, after[clock]) for clock in (0, 1)])
    cpu, wall = (_whole_ratio([found[clock] for found in secs]) for clock in (0, 1))
    found = min(run.found() for run in runs)
    what = f"budget={BUDGET:g}, {found} of {BUDGET_STEPS} steps"
    complaint = "" if found else "nothing was recorded"
    return Line(what, cpu, wall, AT_MOST["budget=0.05"][case.name], runs[0].bytes_per_step(), complaint)


def _whole_ratio(rounds: list[tuple[float, float, float]]) -> Ratio:
    """The plain halves before and after differ only by noise, so half their distance is the error of a round."""
    ratios = [2 * whole / (before + after) for before, whole, after in rounds]
    errors = [abs(before - after) / (before + after) for before, _, after in rounds]
    best = min(whole for _, whole, _ in rounds) / min(min(before, after) for before, _, after in rounds)
    return Ratio(statistics.median(ratios), statistics.median(errors), best)


def _bytes_per_number(statistics: Recorded, raw: Recorded) -> float:
    """What a step with raw values takes more on disk than one without, per raw number: heads and rows included."""
    numbers = raw.raw_numbers_per_step()
    return (raw.bytes_per_step() - statistics.bytes_per_step()) / numbers if numbers else float("nan")


def _block_facts(block: Block) -> list[recording_facts.Fact]:
    if block.bytes_per_number is None or block.added_micros is None:
        return []
    allowed = 1e3 * block.plain_ms * (AT_MOST["not recorded"][block.name] - 1)
    bytes_, added = f"bytes per raw number, {block.name}", f"added to a step that is not recorded, {block.name}"
    return [
        recording_facts.Fact(bytes_, block.bytes_per_number, "{:.3f}", BYTES_PER_NUMBER_AT_MOST),
        recording_facts.Fact(added, block.added_micros, "{:.0f} µs", allowed),
    ]


def _peer(options: argparse.Namespace) -> dict[str, Any]:
    """The peer's answer, or one without numbers that says why."""
    if options.no_peer:
        return {"absent": "not measured (--no-peer)", "cases": {}}
    passed_on = ["--quick"] * options.quick + (["--models", options.models] if options.models else [])
    try:
        return peer.run(peer.COMGRA, passed_on, options.peer_python)
    except (peer.PeerUnavailable, OSError, subprocess.SubprocessError, json.JSONDecodeError) as error:
        return {"absent": str(error), "cases": {}}


def _print_blocks(blocks: list[Block], theirs: Mapping[str, Any]) -> None:
    note = theirs.get("absent") or f"{theirs['comgra']} with torch {theirs['torch']}, without singular values"
    print(f"\nOne torch thread, torch {torch.__version__}. CPU: all threads, until all is written. Comgra: {note}.\n")
    rows = [HEAD]
    for block in blocks:
        other = theirs["cases"].get(block.name)
        head = [block.name, f"{block.plain_ms:.1f}"]
        for line in block.lines:
            ours = [*_cells(line.cpu), *_cells(line.wall), line.verdict(), _kilobytes(line.bytes_per_step)]
            rows.append([*head, line.what, *ours, *_peer_cells(other, line.what)])
            head = ["", ""]
    print_table(rows)


def _cells(ratio: Ratio) -> tuple[str, str]:
    return f"{ratio.median:.3f} ± {ratio.error:.3f}", f"{ratio.best:.3f}"


def _peer_cells(other: Mapping[str, Any] | None, way: str) -> tuple[str, str, str]:
    if other is None or (way not in other["cpu"] and way not in other["failures"]):
        return "", "", ""
    if way in other["failures"]:
        return f"fails: {other['failures'][way][:40]}", "", ""
    return f"{other['cpu'][way]:.2f}", f"{other['wall'][way]:.2f}", _kilobytes(other["bytes"][way])


def _kilobytes(size: float) -> str:
    return f"{size / 1e3:,.0f}" if size else ""


def _print_facts(facts: list[recording_facts.Fact]) -> None:
    if facts:
        print_table([["what", "measured", "target"], *[[fact.what, fact.text(), fact.verdict()] for fact in facts]])


def _print_verdict(verdicts: list[str]) -> None:
    judged = [verdict for verdict in verdicts if verdict]
    missed, unsure = (sum(word in verdict for verdict in judged) for word in ("MISSED", "unsure"))
    if judged:
        print(f"{missed} of {len(judged)} targets missed, {unsure} above by less than the noise.")


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
