"""What the findings are worth: how many planted faults are found, and how often healthy training is accused.

python benchmarks/findings.py [--half tune|report|both] [--folder FOLDER] [--seeds 0,1] [--only NAMES] [--list|--table]

Records the labelled runs of tests/faults (once, if a folder is given), runs `endoscope.diagnose` on each and prints
the confusion table. README.md in this folder says how to read it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure

measure.one_thread()
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the suite belongs to the tests

from table import print_table  # noqa: E402

import endoscope  # noqa: E402
from tests.faults.suite import CASES, CLASSES, Case, half, kinds  # noqa: E402

RECALL_AT_LEAST = 0.9
AMONG_THE_FIRST = 3
FIRST_AT_LEAST = 0.9
ALARMS_AT_MOST = 0.2
ALARMING = {"warning", "error"}


@dataclass(frozen=True)
class Result:
    """What was said about one run."""

    case: Case
    findings: list[Any]
    secs: float

    @property
    def rank(self) -> int | None:
        """Place of the first finding that names the planted fault, from 1; None if none does."""
        fault = self.case.fault
        ranks = (place for place, finding in enumerate(self.findings, 1) if fault and fault.is_named_by(finding))
        return next(ranks, None)

    @property
    def exact(self) -> bool:
        """Whether the check of that very name says so, and not one with another right word for it."""
        fault = self.case.fault
        return any(fault and finding.check == fault.check and fault.is_named_by(finding) for finding in self.findings)

    @property
    def alarms(self) -> list[Any]:
        return [finding for finding in self.findings if finding.severity in ALARMING]


def recorded(case: Case, folder: Path, seed: int) -> Path:
    """The recording of a run; made if it is not there yet."""
    path = folder / f"seed{seed}" / case.name
    if not (path / "done").exists():
        made = case.record(path.parent, seed)
        if made != path:
            raise SystemExit(f"{path} holds half a recording. Delete it, and start again.")
        (path / "done").touch()
    return path


def judged(case: Case, path: Path) -> Result:
    start = time.perf_counter()
    findings = list(endoscope.diagnose(path))
    return Result(case, findings, time.perf_counter() - start)


def confusion(results: Iterable[Result]) -> list[list[str]]:
    """One row per class of fault: found, found by its own name, rank, and what was said instead."""
    rows = [
        ["planted", "runs", "found", "by its name", f"in first {AMONG_THE_FIRST}", "missed in", "said there instead"]
    ]
    by_class: dict[str, list[Result]] = {}
    for result in results:
        by_class.setdefault(result.case.kind, []).append(result)
    for kind in CLASSES:
        runs = by_class.get(kind, [])
        if not runs:
            continue
        missed = [one for one in runs if one.rank is None]
        instead = [f"{finding.check} ({finding.node})" for one in missed for finding in one.findings[:2]]
        rows.append(
            [
                kind,
                str(len(runs)),
                str(len(runs) - len(missed)),
                str(sum(one.exact for one in runs)),
                str(sum(one.rank is not None and one.rank <= AMONG_THE_FIRST for one in runs)),
                ", ".join(dict.fromkeys(one.case.name for one in missed)),
                ", ".join(dict.fromkeys(instead)),
            ]
        )
    return rows


def false_alarms(results: Iterable[Result]) -> list[list[str]]:
    rows = [["healthy run", "alarms", "which"]]
    for one in results:
        said = [f"{finding.check} ({finding.node}, {finding.value:.3g})" for finding in one.alarms]
        rows.append([one.case.name, str(len(said)), ", ".join(said)])
    return rows


def verdict(what: str, value: float, limit: float, at_least: bool) -> str:
    good = value >= limit if at_least else value <= limit
    return f"{what}: {value:.3f} ({'at least' if at_least else 'at most'} {limit:g}{'' if good else ', MISSED'})"


def report(results: list[Result], title: str) -> None:
    faulty = [one for one in results if one.case.fault]
    healthy = [one for one in results if not one.case.fault]
    print(f"== {title}: {len(faulty)} runs with a planted fault, {len(healthy)} healthy ones\n")
    if faulty:
        print_table(confusion(faulty))
    if healthy:
        print_table(false_alarms(healthy))
    if faulty:
        named = sum(one.rank is not None for one in faulty) / len(faulty)
        early = sum(one.rank is not None and one.rank <= AMONG_THE_FIRST for one in faulty) / len(faulty)
        print(verdict("recall", named, RECALL_AT_LEAST, at_least=True))
        print(f"   by the check of that very name: {sum(one.exact for one in faulty) / len(faulty):.3f}")
        print(verdict(f"planted cause among the first {AMONG_THE_FIRST}", early, FIRST_AT_LEAST, at_least=True))
    if healthy:
        alarms = sum(len(one.alarms) for one in healthy) / len(healthy)
        print(verdict("warnings and errors per healthy run", alarms, ALARMS_AT_MOST, at_least=False))
    print(f"{sum(one.secs for one in results) / max(len(results), 1):.2f} s per recording\n")


def described(folder: Path, seed: int) -> list[list[str]]:
    """What was planted where, and the recorded number that shows it."""
    rows = [["planted", "run", "half", "what is wrong", "what shows it", "limit", "measured"]]
    halves = {one.name: name for name in ("tune", "report") for one in half(name)}
    for kind in (*CLASSES, "healthy"):
        for one in kinds().get(kind, []):
            recording = endoscope.open(recorded(one, folder, seed))
            if one.fault:
                shown = one.fault.shown
                facts = [shown.what, shown.limit(), f"{shown.figure(recording):.3g}"]
            else:
                name = next(name for name in recording.metrics if "loss" in name or name == "picture")
                losses = recording.metrics[name].values
                facts = [
                    f"`{name}`, first and mean of the last five",
                    "",
                    f"{losses[0]:.3g} → {losses[-5:].mean():.3g}",
                ]
            rows.append([kind, one.name, halves[one.name], one.description, *facts])
    return rows


def print_markdown(rows: list[list[str]]) -> None:
    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows[1:]:
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["tune", "report", "both"], default="both")
    parser.add_argument("--folder", type=Path, help="recordings are kept here, and used again")
    parser.add_argument("--seeds", default="0", help="every run is trained once from each: 0,1,2")
    parser.add_argument("--only", default="", help="names of runs or classes, with commas between")
    parser.add_argument("--list", action="store_true", help="only say which run is in which half")
    parser.add_argument("--table", action="store_true", help="only describe the runs, as in tests/faults/README.md")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    halves = ["tune", "report"] if chosen.half == "both" else [chosen.half]
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    only = set(filter(None, chosen.only.split(",")))
    if unknown := only - set(CASES) - set(CLASSES) - {"healthy"}:
        raise SystemExit(f"There is no run or class {', '.join(sorted(unknown))}. --list prints all.")
    if chosen.list:
        print_table([["half", "class", "run"]] + [[name, one.kind, one.name] for name in halves for one in half(name)])
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        if chosen.table:
            print_markdown(described(folder, seeds[0]))
            return
        for name in halves:
            cases = [one for one in half(name) if not only or {one.name, one.kind} & only]
            report([judged(one, recorded(one, folder, seed)) for one in cases for seed in seeds], name)


if __name__ == "__main__":
    main()
