"""How many real bugs do the findings name, and how often do they accuse a training that is all right?

Runs every case of `real_bugs/` in a process of its own, recorded by the default `Run`, and reads what `endoscope check`
says. Prints one line for each case, a table for each half, and what was said where it was wrong. Thresholds may be
learnt from the learning half and the practice cases only; the reporting half is what counts. Practice cases run only
where you ask for them.

    python benchmarks/findings_suite.py --half reporting
    python benchmarks/findings_suite.py --half practice        # further cases, for learning only
    python benchmarks/findings_suite.py --only zero-grad-missing-adam
    python benchmarks/findings_suite.py --folder recordings    # recordings are kept there, and used again
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import real_bugs
from real_bugs.judge import Finding, alarms, as_text, cause_rank, is_found, wilson
from table import print_table

import endoscope

TRAIN_SECONDS, CHECK_SECONDS = 300, 100

# A server that has imported what every training needs, and forks for each: importing takes longer than training.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch", "sklearn.datasets", "endoscope"])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one training and of the check of its recording."""

    went_well: bool | None  # None where it ended with an exception
    findings: list[Finding]
    trouble: str  # why there is no recording, or no answer of the check; else empty
    path: Path


@dataclass(frozen=True, slots=True)
class BugResult:
    bug: real_bugs.Bug
    faulty: Outcome
    fixed: Outcome
    eligible: bool  # whether the recordings of both differ


@dataclass(frozen=True, slots=True)
class HealthyResult:
    case: real_bugs.Healthy
    outcome: Outcome


def main() -> None:
    arguments = parse()
    real_bugs.load()
    bugs = [bug for bug in real_bugs.BUGS.values() if is_chosen(bug.id, arguments)]
    healthy = [case for case in real_bugs.HEALTHY.values() if is_chosen(case.id, arguments)]
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(arguments.folder or temporary)
        of_bugs = list(run_bugs(bugs, root))
        of_healthy = list(run_healthy(healthy, root))
        for half in ("learning", "reporting", "practice"):
            print_half(half, of_bugs, of_healthy)
        print_what_was_wrong(of_bugs, of_healthy)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("learning", "reporting", "practice"), help="only these cases")
    parser.add_argument("--only", action="append", metavar="ID", help="only this case; may be given several times")
    parser.add_argument("--folder", help="keep the recordings there, and use those that are there already")
    return parser.parse_args()


def is_chosen(id: str, arguments: argparse.Namespace) -> bool:
    half = real_bugs.half_of(id)
    if arguments.only is not None:
        return id in arguments.only and arguments.half in (None, half)
    return half == arguments.half or (arguments.half is None and half != "practice")


def train(id: str, variant: str, folder: Path) -> None:
    """Train one case, in a process of its own; a file beside the recording says whether it went well."""
    with open(folder / f"{variant}.log", "w") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    real_bugs.load()
    with endoscope.Run(folder, trial=variant) as run:
        if id in real_bugs.BUGS:
            went_well = real_bugs.BUGS[id].train(run, variant == "fixed")
        else:
            went_well = real_bugs.HEALTHY[id].train(run)
    (folder / f"{variant}.well").write_text(str(bool(went_well)))


def run_bugs(bugs: list[real_bugs.Bug], root: Path) -> Iterator[BugResult]:
    for bug in bugs:
        faulty, fixed = (outcome_of(bug.id, variant, root) for variant in ("faulty", "fixed"))
        result = BugResult(bug, faulty, fixed, differ(faulty, fixed))
        print_bug(result)
        yield result


def run_healthy(cases: list[real_bugs.Healthy], root: Path) -> Iterator[HealthyResult]:
    for case in cases:
        result = HealthyResult(case, outcome_of(case.id, "healthy", root))
        wrong = alarms(result.outcome.findings)
        print(
            f"HEALTHY {half_mark(case.id)} {case.id:44s} {counts(wrong):26s} {remarks(result.outcome, False)}",
            flush=True,
        )
        yield result


def outcome_of(id: str, variant: str, root: Path) -> Outcome:
    """Train, unless that was done before, and check."""
    path = root / id / variant
    noted = root / id / f"{variant}.json"
    if not noted.exists():
        (root / id).mkdir(parents=True, exist_ok=True)
        noted.write_text(json.dumps(trained(id, variant, root / id)))
    went_well, trouble = json.loads(noted.read_text())
    if trouble:
        return Outcome(went_well, [], trouble, path)
    findings, trouble = checked(path)
    return Outcome(went_well, findings, trouble, path)


def trained(id: str, variant: str, folder: Path) -> tuple[bool | None, str]:
    """Whether it went well, and what went wrong that is no part of the case."""
    stops = variant == "faulty" and real_bugs.BUGS[id].stops
    process = PROCESSES.Process(target=train, args=(id, variant, folder))
    process.start()
    process.join(TRAIN_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        return None, f"training took more than {TRAIN_SECONDS} seconds"
    if process.exitcode:
        return None, "" if stops else "training failed: " + last_line((folder / f"{variant}.log").read_text())
    went_well = (folder / f"{variant}.well").read_text() == "True"
    return went_well, "the faulty training should have stopped" if stops else ""


def checked(path: Path) -> tuple[list[Finding], str]:
    """What `endoscope check` says of a trial."""
    command = [sys.executable, "-m", "endoscope", "check", str(path), "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_SECONDS)
        return json.loads(done.stdout), ""
    except subprocess.TimeoutExpired:
        return [], f"the check took more than {CHECK_SECONDS} seconds"
    except json.JSONDecodeError:
        return [], "the check failed: " + last_line(done.stderr)


def last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "(no output)")


def differ(faulty: Outcome, fixed: Outcome) -> bool:
    """Whether anything that both recorded at the same step is different: then the bug can be seen in a recording."""
    if faulty.trouble or fixed.trouble:
        return False
    recordings = [endoscope.open(outcome.path) for outcome in (faulty, fixed)]
    steps = [{step.number for step in recording.steps} for recording in recordings]
    return facts(recordings[0], steps[0] & steps[1]) != facts(recordings[1], steps[0] & steps[1])


def facts(recording: Any, steps: set[int]) -> set[str]:
    columns = ("step", "type", "node", "role", "pass", "of", "shape", "norm", "nans", "infs")
    rows = recording.to_arrow("stats").select(columns).to_pylist()
    of_steps = {repr((step.number, step.extra)) for step in recording.steps if step.number in steps}
    gaps = {gap.reason for gap in recording.gaps}
    return {repr(tuple(row.values())) for row in rows if row["step"] in steps} | of_steps | gaps


def print_bug(result: BugResult) -> None:
    bug, faulty, fixed = result.bug, result.faulty, result.fixed
    rank = cause_rank(bug, faulty.findings)
    found = "found " if is_found(bug, faulty.findings) else "MISSED"
    cause = f"cause {rank}" if rank else "no cause"
    said = f"of {len(alarms(faulty.findings))}"
    eligible = "" if result.eligible else "NOT ELIGIBLE "
    print(
        f"BUG     {half_mark(bug.id)} {bug.id:44s} {found} {cause:8s} {said:6s} "
        f"fixed: {counts(alarms(fixed.findings)):26s} "
        f"{eligible}{remarks(faulty, True)}{remarks(fixed, False)}",
        flush=True,
    )


def half_mark(id: str) -> str:
    return real_bugs.half_of(id)[0].upper()


def counts(wrong: list[Finding]) -> str:
    if not wrong:
        return "quiet"
    errors = sum(finding["severity"] == "error" for finding in wrong)
    return f"{errors} errors, {len(wrong) - errors} warnings"


def remarks(outcome: Outcome, may_fail: bool) -> str:
    failed = "" if may_fail or outcome.went_well else "DID NOT TRAIN WELL "
    return failed + outcome.trouble


def print_half(half: str, of_bugs: list[BugResult], of_healthy: list[HealthyResult]) -> None:
    bugs = [result for result in of_bugs if real_bugs.half_of(result.bug.id) == half and result.eligible]
    others = [result.outcome for result in of_healthy if real_bugs.half_of(result.case.id) == half]
    fixed = [result.fixed for result in bugs]
    if not bugs and not others:
        return
    found = sum(is_found(result.bug, result.faulty.findings) for result in bugs)
    ranks = [cause_rank(result.bug, result.faulty.findings) for result in bugs]
    name = "practice cases" if half == "practice" else f"{half} half"
    print(f"\nThe {name}: {len(bugs)} bugs, {len(others)} healthy trainings, {len(fixed)} fixed ones\n")
    print_table(
        [
            ["what", "share", "of", "95 % interval", "aim"],
            share_row("bugs found", found, len(bugs), "at least 0.85"),
            share_row(
                "cause in the first three", sum(rank is not None and rank <= 3 for rank in ranks), len(bugs), "0.80"
            ),
            *[
                row
                for name, outcomes in (("healthy", others), ("fixed", fixed), ("healthy or fixed", others + fixed))
                for row in false_rows(name, outcomes)
            ],
        ]
    )


def share_row(name: str, successes: int, trials: int, aim: str) -> list[str]:
    low, high = wilson(successes, trials)
    share = f"{successes / trials:.2f}" if trials else "-"
    return [name, share, f"{successes} of {trials}", f"{low:.2f} to {high:.2f}", aim]


def false_rows(name: str, outcomes: list[Outcome]) -> list[list[str]]:
    wrong = [alarms(outcome.findings) for outcome in outcomes]
    errors = sum(finding["severity"] == "error" for said in wrong for finding in said)
    total = sum(len(said) for said in wrong)
    each = f"{total / len(outcomes):.2f}" if outcomes else "-"
    return [
        share_row(f"{name}: accused", sum(bool(said) for said in wrong), len(outcomes), ""),
        [f"{name}: false warnings and errors a run", each, f"{total} in {len(outcomes)}", "", "at most 0.10"],
        [f"{name}: false errors", str(errors), f"in {len(outcomes)}", "", "0"],
    ]


def print_what_was_wrong(of_bugs: list[BugResult], of_healthy: list[HealthyResult]) -> None:
    """The raw material for whoever improves the findings."""
    print("\nBugs that were missed, or whose cause is not among the first three, and what was said instead\n")
    for result in of_bugs:
        rank = cause_rank(result.bug, result.faulty.findings)
        if result.eligible and (rank is None or rank > 3):
            how = "found by its place" if is_found(result.bug, result.faulty.findings) else "missed"
            print(f"{half_mark(result.bug.id)} {result.bug.id} ({how}): {result.bug.wrong}")
            print_findings(alarms(result.faulty.findings))
    print("\nWhat was said of trainings that are all right\n")
    of_fixed = [(f"{result.bug.id}, fixed", result.bug.id, result.fixed) for result in of_bugs]
    for name, id, outcome in [(result.case.id, result.case.id, result.outcome) for result in of_healthy] + of_fixed:
        if alarms(outcome.findings):
            print(f"{half_mark(id)} {name}")
            print_findings(alarms(outcome.findings))


def print_findings(findings: list[Finding]) -> None:
    for finding in findings:
        print(f"    {as_text(finding)}")
    if not findings:
        print("    (nothing)")


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    main()
