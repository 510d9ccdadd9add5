"""What recording costs: a training step of every net of the zoo ÷ the plain one; peak memory, start-up, disk.

python benchmarks/recording.py [--quick] [--models NAMES] [--only PARTS] [--sketch] [--raw] [--no-peer]

README.md in this folder says how to read the tables.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure

measure.one_thread()

import in_a_row  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
import peer  # noqa: E402
import recording_facts  # noqa: E402
import torch  # noqa: E402
from in_a_row import Blocks  # noqa: E402
from recording_probe import PROBES  # noqa: E402
from step_clock import Trained  # noqa: E402
from table import print_table  # noqa: E402
from ways_to_record import RAW, WAYS, opened  # noqa: E402
from zoo import Net, select  # noqa: E402

JUDGED_FROM_SECS = 0.005  # a step that is shorter is printed and not judged
NOT_RECORDED_AT_MOST = 1.01
AGAINST_AT_MOST, AGAINST_IN_PLACE_AT_MOST = 1.04, 1.06
DEARER_THAN_BEFORE = 0.02  # what all statistics may cost more than with the recorder of before
SKETCH = ("sketch, against", "sketch, statistics")
PARTS = ("steps", "facts")


@dataclass(frozen=True)
class Row:
    """One net."""

    net: Net
    blocks: Blocks
    bytes_per_step: float
    complaints: dict[str, str]

    @property
    def judged(self) -> bool:
        return self.blocks.step_secs("plain") >= JUDGED_FROM_SECS

    def verdict(self, side: str) -> str:
        """`ok`, `unsure` (above the target by less than the error), `MISSED`, or nothing where there is no target."""
        limit = target(self.net, side)
        if limit is None or not self.judged:
            return ""
        ratio, error = self.blocks.ratio(side), self.blocks.error(side)
        return "MISSED" if ratio - error > limit else "unsure" if ratio > limit else "ok"

    def cell(self, side: str) -> str:
        verdict = self.verdict(side)
        wanted = f" ≤ {target(self.net, side):.4g} {verdict}" if verdict else ""
        return f"{self.blocks.ratio(side):.3f} ± {self.blocks.error(side):.3f}{wanted}"


def target(net: Net, side: str) -> float | None:
    """What a side may cost, as a ratio to plain."""
    if side == "not recorded":
        return NOT_RECORDED_AT_MOST
    if side == "decided against":
        return AGAINST_IN_PLACE_AT_MOST if net.in_place else AGAINST_AT_MOST
    if side == "all statistics":
        limits = [net.at_most] + ([] if net.before is None else [net.before + DEARER_THAN_BEFORE])
        return min((limit for limit in limits if limit is not None), default=None)
    return None


def main() -> None:
    options = _options()
    if options.probe:
        name, *arguments = options.probe
        print(json.dumps(PROBES[name](*arguments)))
        return
    parts = options.only.split(",") if options.only else PARTS
    with tempfile.TemporaryDirectory(prefix="recording-", dir=options.folder) as name:
        rows = _rows(options, Path(name)) if "steps" in parts else []
        facts = recording_facts.measured(Path(name), options.quick, _say) if "facts" in parts else []
    if rows:
        _print_rows(rows)
    if facts:
        print_table([["what", "measured", "target"], *[[fact.what, fact.text(), fact.verdict()] for fact in facts]])
    _print_verdict(rows, facts)
    if not options.no_peer:
        _print_peer(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Recorded training step ÷ plain training step.")
    parser.add_argument("--quick", action="store_true", help="one copy of every net: errors are larger")
    parser.add_argument("--models", help="comma-separated words; only nets whose name contains one of them")
    parser.add_argument("--only", help=f"comma-separated parts: {', '.join(PARTS)}")
    parser.add_argument("--sketch", action="store_true", help="also a recorder of sixty lines, for comparison")
    parser.add_argument("--raw", action="store_true", help="also every step with raw values")
    parser.add_argument("--no-peer", action="store_true", help="do not install and measure Comgra")
    parser.add_argument("--peer-python", help="use this interpreter, which has the peer already")
    parser.add_argument("--folder", help="where the recordings go while they are needed: up to a gigabyte")
    parser.add_argument("--probe", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def _rows(options: argparse.Namespace, folder: Path) -> list[Row]:
    """All nets; one that cannot be trained or recorded must not lose the others."""
    names = [name for name in WAYS if (options.raw or name != RAW) and (options.sketch or name not in SKETCH)]
    rows = []
    for number, net in enumerate(select(options.models)):
        _say(f"{net.name} ...")
        try:
            row = _measured(net, names, folder / str(number), options.quick)
        except Exception as error:
            print(f"{net.name}: {type(error).__name__}: {error}")
        else:
            rows.append(row)
            _say("  " + "  ".join(f"{name} {row.cell(name)}" for name in row.blocks.secs if name != "plain"))
    return rows


def _measured(net: Net, names: list[str], folder: Path, quick: bool) -> Row:
    complaints: dict[str, str] = {}
    sizes: list[float] = []

    @contextlib.contextmanager
    def copy() -> Iterator[Mapping[str, Trained]]:
        with tempfile.TemporaryDirectory(prefix=folder.name, dir=folder.parent) as name:
            with opened(names, net, Path(name)) as ways:
                plain = {side: Trained(net.make().step) for side in ("plain", "plain again")}
                yield plain | {side: way.side() for side, way in ways.items()}
            complaints.update({side: said for side, way in ways.items() if (said := way.complaint())})
            sizes.append(ways["all statistics"].bytes_per_step())

    blocks = in_a_row.compare(copy, 0.0 if quick else 150.0, 1 if quick else 3, 1 if quick else 9)
    return Row(net, blocks, sizes[-1], complaints)


def _print_rows(rows: list[Row]) -> None:
    steps = f"a mean over {in_a_row.STEPS} steps in a row after the first {in_a_row.FIRST_STEPS}"
    print(f"\nTraining step ÷ plain, {steps}. CPU of all threads, one torch thread, torch {torch.__version__}.\n")
    sides = [side for side in rows[0].blocks.secs if side != "plain"]
    table = [["net", "plain ms", *sides, "kB/step"]]
    for row in rows:
        ms, size = f"{1e3 * row.blocks.step_secs('plain'):.1f}", f"{row.bytes_per_step / 1e3:,.0f}"
        table.append([row.net.name, ms, *[row.cell(side) for side in sides], size])
    print_table(table)
    for row in rows:
        for side, said in row.complaints.items():
            print(f"MISSED: {row.net.name}, {side}: {said}")


def _print_verdict(rows: list[Row], facts: list[recording_facts.Fact]) -> None:
    said = [row.verdict(side) for row in rows for side in WAYS if side in row.blocks.secs]
    said += [fact.word() for fact in facts]
    count = Counter(word for word in said if word)
    wrong = sum(len(row.complaints) for row in rows)
    print(f"{count['MISSED']} of {count.total()} targets missed, {count['unsure']} above by less than the error.")
    if wrong:
        print(f"{wrong} recordings are not what they should be, so what they cost means nothing.")


def _print_peer(options: argparse.Namespace) -> None:
    """Comgra, in an environment of its own, on two nets: the MLP is that of the zoo."""
    try:
        theirs = peer.run(peer.COMGRA, ["--quick"] * options.quick, options.peer_python)
    except (peer.PeerUnavailable, OSError, subprocess.SubprocessError, json.JSONDecodeError) as error:
        print(f"\nComgra: {error}")
        return
    print(f"\n{theirs['comgra']} with torch {theirs['torch']}, without singular values, each ÷ its own plain step.\n")
    print_table([["model", "Comgra", "CPU", "wall", "kB/step"], *_peer_lines(theirs["cases"])])


def _peer_lines(cases: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, case in cases.items():
        for way, ratio in case["cpu"].items():
            yield [name, way, f"{ratio:.2f}", f"{case['wall'][way]:.2f}", f"{case['bytes'][way] / 1e3:,.0f}"]
        for way, reason in case["failures"].items():
            yield [name, way, f"fails: {reason[:60]}", "", ""]


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
