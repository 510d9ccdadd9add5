"""What a trace costs: CPU time of the whole call ÷ the plain forward pass, ours and TorchLens side by side.

python benchmarks/trace_speed.py [--quick] [--no-peer] [--no-grad] [--models NAMES] [--floor-only]

README.md in this folder says how to read the tables.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import measure

measure.one_thread()

import floor  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
import peer  # noqa: E402
import torch  # noqa: E402
from after_effects import after_a_trace  # noqa: E402
from models import CASES, Case, select  # noqa: E402
from table import print_table  # noqa: E402
from torch import Tensor, nn  # noqa: E402

FULL_AT_MOST = {
    "ResNet-18 batch 1": 1.12,
    "ResNet-18 batch 8": 1.06,
    "ResNet-18 in place, batch 1": 1.12,
    "ResNet-18 in place, batch 8": 1.06,
    "GPT-2 shape 64 tokens": 1.2,
    "RNN 200 steps": 5.0,
    "5,000 tiny ops": 5.0,
}
AT_MOST = {"full": FULL_AT_MOST, "full, read": FULL_AT_MOST, "validate": {"ResNet-18 batch 1": 15.0}}
IMPORT_MS_AT_MOST = 50.0
IMPORT = """
import sys, time
start = time.perf_counter()
import endoscope
print(1e3 * (time.perf_counter() - start), "torch" in sys.modules)
"""


@dataclass(frozen=True)
class Line:
    """One measured value of a table; ``measured`` is None where nothing could be measured."""

    what: str
    measured: float | None
    error: float = 0.0
    best: float | None = None
    target: str = ""
    missed: bool = False
    note: str = ""


@dataclass(frozen=True)
class Block:
    """All lines of one model."""

    name: str
    ops: int
    raw_ms: float
    lines: list[Line] = field(default_factory=list)


def main() -> None:
    options = _options()
    effort = measure.QUICK if options.quick else measure.FULL
    after: list[Line] = []
    with torch.no_grad() if options.no_grad else contextlib.nullcontext():
        if not options.floor_only:
            _say("plain torch after a trace ...")
            compared = after_a_trace(_trace_once, rounds=7 if options.quick else 21)
            after = [_after_line(name, comparison) for name, comparison in compared.items()]
        blocks = [_measured(case, effort, options.floor_only) for case in select(options.models)]
    imported = [] if options.floor_only else _import_lines(3 if options.quick else 9)
    theirs = _peer(options)
    _print_blocks(blocks, theirs)
    _print_after(after, theirs)
    _print_import(imported)
    _print_verdict([*(line for block in blocks for line in block.lines), *after, *imported])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU time of a trace ÷ the plain forward pass.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, fewer models for the peer")
    parser.add_argument("--no-peer", action="store_true", help="do not install and measure TorchLens")
    parser.add_argument("--peer-python", help="use this interpreter, which has the peer already")
    parser.add_argument("--no-grad", action="store_true", help="measure under torch.no_grad()")
    parser.add_argument("--models", help="comma-separated words; only models whose name contains one of them")
    parser.add_argument("--floor-only", action="store_true", help="only watch torch, without endoscope")
    return parser.parse_args()


def _trace_once() -> None:
    import endoscope

    endoscope.trace(*CASES[0].make())


def _measured(case: Case, effort: measure.Effort, floor_only: bool) -> Block:
    _say(f"{case.name} ...")
    model, x = case.make()
    ways = {} if floor_only else _ways(case, model, x)
    working, failures = measure.runnable(ways)
    validate = working.pop("validate", None)
    raw: dict[str, measure.Side] = {"raw": lambda: model(x)}
    others = {"raw again": raw["raw"], "floor": lambda: floor.watch(model, x), **working}
    comparison = measure.compare({**raw, **others}, effort)
    lines = [_line(case, way, comparison) for way in others]
    if validate is not None:
        # On its own: it takes so much longer that it would leave few rounds for the others.
        lines.append(_line(case, "validate", measure.compare({**raw, "validate": validate}, effort)))
    lines += [Line(way, None, missed=True, note=reason) for way, reason in failures.items()]
    return Block(case.name, _count_ops(model, x, floor_only), 1e3 * comparison.median_secs("raw"), lines)


def _ways(case: Case, model: nn.Module, x: Tensor) -> dict[str, measure.Side]:
    import endoscope

    ways: dict[str, measure.Side] = {
        "full": lambda: endoscope.trace(model, x),
        "full, read": lambda: _read(endoscope.trace(model, x)),
        "structure": lambda: endoscope.trace(model, x, save="none"),
        "one layer": lambda: endoscope.trace(model, x, save=case.one_layer),
    }
    if case.validated:
        ways["validate"] = lambda: endoscope.validate(model, x)
    return ways


def _read(trace: Any) -> Any:
    """Ask every operation for its name and its parents, so that work put off until then is counted."""
    for op in trace.ops:
        op.label, op.parents  # noqa: B018  (reading them is the work)
    return trace


def _count_ops(model: nn.Module, x: Tensor, floor_only: bool) -> int:
    if floor_only:
        return floor.count_ops(model, x)
    import endoscope

    return len(endoscope.trace(model, x, save="none").ops)


def _line(case: Case, way: str, comparison: measure.Comparison) -> Line:
    line = _ratio_line(way, comparison, way, "raw")
    if way in ("structure", "one layer") and "full" in comparison.secs:
        return replace(line, target="≤ full", missed=comparison.dearer(way, "full"))
    limit = AT_MOST.get(way, {}).get(case.name)
    if limit is None:
        return line
    return replace(line, target=f"≤ {limit:g}", missed=comparison.ratio(way, "raw") > limit)


def _after_line(name: str, comparison: measure.Comparison) -> Line:
    line = _ratio_line(name, comparison, "traced", "plain")
    return replace(line, target="1.00 ± noise", missed=comparison.dearer("traced", "plain"))


def _ratio_line(what: str, comparison: measure.Comparison, side: str, to: str) -> Line:
    best = comparison.best_ratio(side, to)
    return Line(what, comparison.ratio(side, to), comparison.error(side, to), best)


def _import_lines(times: int) -> list[Line]:
    _say("import in a fresh interpreter ...")
    runs = [_import_once() for _ in range(times + 1)][1:]  # the first one may have to write the byte code
    millis = statistics.median(run[0] for run in runs)
    loads_torch = any(run[1] for run in runs)
    return [
        Line("milliseconds", millis, target=f"< {IMPORT_MS_AT_MOST:g}", missed=millis >= IMPORT_MS_AT_MOST),
        Line("loads torch", float(loads_torch), target="0", missed=loads_torch),
    ]


def _import_once() -> tuple[float, bool]:
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    millis, loads_torch = done.stdout.split()
    return float(millis), loads_torch == "True"


def _peer(options: argparse.Namespace) -> dict[str, Any]:
    """The peer's answer, or one without numbers that says why."""
    if options.no_peer:
        return {"absent": "not measured (--no-peer)", "cases": {}, "after": {}}
    passed_on = [flag for flag in ("--quick", "--no-grad") if getattr(options, flag[2:].replace("-", "_"))]
    if options.models:
        passed_on += ["--models", options.models]
    try:
        return peer.run(peer.TORCHLENS, passed_on, options.peer_python)
    except (peer.PeerUnavailable, OSError, subprocess.SubprocessError, json.JSONDecodeError) as error:
        return {"absent": str(error), "cases": {}, "after": {}}


def _print_blocks(blocks: list[Block], theirs: Mapping[str, Any]) -> None:
    rows = [["model", "ops", "raw ms", "whole call ÷ raw", "endoscope", "best ÷ best", "target", "TorchLens"]]
    for block in blocks:
        other = theirs["cases"].get(block.name, {"ratios": {}, "failures": {}})
        head = [block.name, f"{block.ops:,}", f"{block.raw_ms:.2f}"]
        for line in block.lines:
            peers = _peer_value(other, line.what)
            rows.append([*head, line.what, _value(line), _best(line), _goal(line), peers])
            head = ["", "", ""]
    print(f"\nOne torch thread, CPU time, torch {torch.__version__}. TorchLens: {_peer_note(theirs)}.\n")
    print_table(rows)


def _print_after(lines: list[Line], theirs: Mapping[str, Any]) -> None:
    rows = [["plain torch", "after a trace ÷ before", "best ÷ best", "target", "TorchLens"]]
    for line in lines:
        other = theirs["after"].get(line.what)
        rows.append([line.what, _value(line), _best(line), _goal(line), f"{other:.2f}" if other else "–"])
    if lines:
        print_table(rows)


def _print_import(lines: list[Line]) -> None:
    if lines:
        measured = [[line.what, f"{line.measured:.0f}", _goal(line)] for line in lines]
        print_table([["import endoscope", "measured", "target"], *measured])


def _print_verdict(lines: list[Line]) -> None:
    missed = sum(line.missed for line in lines)
    judged = sum(line.missed or bool(line.target) for line in lines)
    if judged:
        print(f"{missed} of {judged} targets missed." if missed else f"All {judged} targets met.")


def _value(line: Line) -> str:
    return line.note[:60] if line.measured is None else f"{line.measured:.3f} ± {line.error:.3f}"


def _best(line: Line) -> str:
    return "" if line.best is None else f"{line.best:.3f}"


def _goal(line: Line) -> str:
    return f"{line.target}  MISSED".strip() if line.missed else line.target


def _peer_value(other: Mapping[str, Any], way: str) -> str:
    if way in other["ratios"]:
        return f"{other['ratios'][way]:.1f}"
    failure = other["failures"].get(way)
    return "" if way in ("floor", "raw again", "full, read") else f"fails: {failure[:50]}" if failure else "–"


def _peer_note(theirs: Mapping[str, Any]) -> str:
    return theirs.get("absent") or f"{theirs['torchlens']} with torch {theirs['torch']}"


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
