"""`endoscope check`: what looks wrong in recordings; for people, and for scripts by its exit code."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from endoscope.cli import following
from endoscope.cli.following import EVERY_SECS
from endoscope.errors import BadArgument, EndoscopeError
from endoscope.findings.finding import ERROR, INFO, NO_STEPS, SEVERITIES

if TYPE_CHECKING:
    from endoscope.findings.finding import Finding
    from endoscope.findings.together import Correlation

SUMMARY = "say what looks wrong in recordings"
NOT_CHECKED = 3  # exit code, also for trials without a step; 0: nothing above info, 1: warnings, 2: errors
_MOST_PAIRS = 20  # of things that happen together


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to check, and how to say it."""
    parser.add_argument("path", metavar="DIR", nargs="?", default="runs", help="a trial, or a folder (default: runs)")
    parser.add_argument("--trial", metavar="T", help="only this trial of the folder")
    parser.add_argument("--rank", metavar="N", type=int, help="only what this rank has recorded")
    parser.add_argument("--only", metavar="CHECK", action="append", help="only this check; may be given several times")
    parser.add_argument("--level", choices=SEVERITIES, default=INFO, help="say nothing below this (default: info)")
    parser.add_argument("-v", "--verbose", action="store_true", help="all causes, remedies, consequences and infos")
    parser.add_argument("--json", action="store_true", help="print a list of objects")
    parser.add_argument(
        "--deep", metavar="SCRIPT:FUNCTION", help="also run the model; the function returns (model, batch)"
    )
    parser.add_argument(
        "--silence", metavar="CHECK[@NODE]", action="append", help="never report this again in the trial"
    )
    parser.add_argument("--together", action="store_true", help="also say what happens together more than by chance")
    parser.add_argument("--follow", action="store_true", help="look again and again until the training has ended")
    parser.add_argument(
        "--exec",
        metavar="CMD",
        help="with --follow: run CMD once for each new error, with the finding as JSON on stdin",
    )
    parser.add_argument("--every", metavar="SECS", type=float, default=EVERY_SECS, help="with --follow (default: 10)")
    parser.add_argument("--list", action="store_true", help="list all checks with their thresholds")


def run(options: argparse.Namespace) -> int:
    """Print findings, the most important first; the exit code says how bad it is."""
    try:
        if options.list:
            return _list()
        path = Path(options.path) / options.trial if options.trial else Path(options.path)
        if options.silence:
            return _silence(path, options.silence)
        _require_follow(options)
        return _follow(path, options) if options.follow else _check(path, options)
    except EndoscopeError as error:
        print(f"endoscope: {error}", file=sys.stderr)
        return NOT_CHECKED


def _check(path: Path, options: argparse.Namespace) -> int:
    import json

    import endoscope

    findings = [*_probed(options.deep), *endoscope.diagnose(path, checks=_names(options.only), rank=options.rank)]
    findings = [one for one in findings if SEVERITIES.index(one.severity) >= SEVERITIES.index(options.level)]
    together = endoscope.correlate(path) if options.together else []
    if options.json:
        plain = [finding.to_dict() for finding in findings]
        pairs = [pair.to_dict() for pair in together]
        print(json.dumps({"findings": plain, "together": pairs} if options.together else plain, indent=2))
    else:
        _print(findings, path, options)
        if options.together:
            _print_together(together)
    return max(map(_exit_code, findings), default=0)


def _require_follow(options: argparse.Namespace) -> None:
    if options.exec is not None and not options.follow:
        raise BadArgument("--exec is for findings that come while a training runs. Add --follow.")
    if options.every <= 0:
        raise BadArgument(f"--every is {options.every:g}, but it is a number of seconds above 0. Leave it out for 10.")


def _follow(path: Path, options: argparse.Namespace) -> int:
    import json

    import endoscope
    from endoscope.cli.told import entry

    numbers = itertools.count(1)

    def tell(finding: Finding) -> None:
        text = json.dumps(finding.to_dict()) if options.json else entry(next(numbers), finding) + "\n"
        print(text, flush=True)

    names = _names(options.only)
    findings = following.follow(
        path, lambda: endoscope.diagnose(path, checks=names, rank=options.rank), tell, options.exec, options.every
    )
    if not options.json:
        _print_conclusion(findings, path, options.rank)
    return max(map(_exit_code, findings), default=0)


def _names(only: Sequence[str] | None) -> list[str] | None:
    """Whatever is looked for: if the recording lacks most of it, this is said."""
    from endoscope.findings.diagnose import recording_checks

    return None if only is None else list(dict.fromkeys([*only, *(check.name for check in recording_checks())]))


def _exit_code(finding: Finding) -> int:
    """What cannot be judged must not pass for sound."""
    is_unchecked = finding.check == NO_STEPS and finding.severity == ERROR
    return NOT_CHECKED if is_unchecked else SEVERITIES.index(finding.severity)


def _probed(deep: str | None) -> Sequence[Finding]:
    """What only a try can tell: whether samples of a batch influence each other."""
    if deep is None:
        return []
    import endoscope
    from endoscope.cli.trying.building import build

    model, inputs = build(deep)
    return endoscope.probe_batch(model, inputs)


def _print(findings: Sequence[Finding], path: Path, options: argparse.Namespace) -> None:
    from endoscope.cli.told import told

    for text in told(findings, _trials(path), options.verbose):
        print(text, end="\n\n" if options.verbose else "\n")
    _print_conclusion(findings, path, options.rank)
    for line in _next(findings, path, options.verbose):
        print(line)


def _trials(path: Path) -> list[str]:
    from endoscope.query.open import look
    from endoscope.query.recording import Recording

    found = look(path)
    return [found.name] if isinstance(found, Recording) else list(found)


def _next(findings: Sequence[Finding], path: Path, verbose: bool) -> list[str]:
    """What to type now."""
    serious = [one for one in findings if one.severity != INFO and one.check != NO_STEPS]
    if not serious:
        return []
    lines = ["Next:"]
    if any(one.check == "nonfinite" for one in serious):
        lines.append(f"   endoscope origin {path}      which operation made the first NaN")
    if any("--deep" in remedy for one in serious for remedy in one.remedies):
        lines.append(f"   endoscope check {path} --deep script.py:build      do samples of a batch mix?")
    if not verbose:
        lines.append(f"   endoscope check {path} -v      numbers, all causes and remedies, what follows, infos")
    lines.append(f"   endoscope show {path}      the page, where each finding is shown")
    return lines


def _print_conclusion(findings: Sequence[Finding], path: Path, rank: int | None) -> None:
    from endoscope.cli import conclusion
    from endoscope.query.open import look
    from endoscope.query.recording import Recording

    found = look(path)
    recordings = [found] if isinstance(found, Recording) else list(found.values())
    recordings = recordings if rank is None else [recording.rank(rank) for recording in recordings]
    print("\n".join([conclusion.summary(path, findings, recordings), *conclusion.gap_lines(recordings)]))


def _print_together(pairs: Sequence[Correlation]) -> None:
    from endoscope.cli.told import wrapped
    from endoscope.findings.together import worth_telling

    pairs = worth_telling(pairs)
    if not pairs:
        print("\nNothing happens together more often than by chance.")
        return
    print("\nThese happen together more often than by chance, the strongest first:\n")
    for pair in pairs[:_MOST_PAIRS]:
        print("\n".join(wrapped("", pair.sentence)))
    if len(pairs) > _MOST_PAIRS:
        print(f"   … and {len(pairs) - _MOST_PAIRS} more; --json prints all.")


def _list() -> int:
    from endoscope.cli.table import format_table
    from endoscope.findings.registry import all_checks

    rows: list[tuple[Any, ...]] = [
        (check.name, ", ".join(f"{name} = {value:g}" for name, value in check.thresholds.items()))
        for check in all_checks().values()
    ]
    print(format_table(["check", "thresholds"], rows))
    return 0


def _silence(path: Path, entries: Sequence[str]) -> int:
    from endoscope.findings import silence
    from endoscope.findings.one_trial import one_trial

    trial = one_trial(path).path
    for entry in entries:
        check, _, node = entry.partition("@")
        silence.add(trial, check, node or None)
        print(f"{check} will not be reported any more{f' at {node}' if node else ''}, in {trial / silence.FILE}.")
    return 0
