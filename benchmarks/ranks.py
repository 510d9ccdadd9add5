"""How reading a trial grows with its ranks: opening it, one series, one step, the page.

python benchmarks/ranks.py                     1 to 64 ranks of 100 steps and 300 tensors; about ten minutes, 2 GB
python benchmarks/ranks.py --no-page           without a browser
python benchmarks/ranks.py --plot docs/scale.svg   draws what is printed
python benchmarks/ranks.py --folder DIR        keeps what is written there; the next time it is there already

Each rank is a recorded folder of its own, written by the code that records. Nothing is trained for it: as under
DistributedDataParallel, every rank has other samples, and the same parameters, gradients and updates.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from page_recordings import MadeUp, Structure
from table import print_table

import endoscope
from endoscope.query import bulk
from endoscope.schema.recording import Key, StepRecord
from endoscope.store.joining import Member
from endoscope.store.writer import TrialWriter

OPEN_SECS, SERIES_MS, PAGE_SECS = 2.0, 100.0, 3.0
RANKS = (1, 2, 4, 8, 16, 32, 64)
Result = TypeVar("Result")
COLUMNS = ("open", "first series", "a series", "a median", "a step", "page")


def write(root: Path, ranks: int, steps: int, nodes: int) -> Path:
    """One trial, with the folders of all of its ranks."""
    structure = Structure(nodes)
    graph = {"hash": "large", "nodes": structure.nodes, "edges": structure.edges}
    mesh = {"names": ["data"], "shape": [ranks], "ranks": list(range(ranks))}
    for rank in range(ranks):
        made_up = MadeUp(structure)  # the same numbers on every rank: replicas have to agree
        member = Member(rank, ranks, "benchmark") if ranks > 1 else None
        writer = TrialWriter.create(root, f"{ranks}-ranks", member=member)
        writer.write_modules(structure.modules())
        keys = np.array([writer.key_id(placed(key)) for key in structure.all_keys()], np.int32)
        for number in range(steps):
            writer.write_step(
                StepRecord(
                    number=number, type="train", time=1.7e9 + number, why="every step", graph_hash="large", graph=graph,
                    keys=keys, measured=made_up.step(number / steps), metrics={"loss": rank + math.exp(-number)},
                )
            )  # fmt: skip
        if member is not None:
            writer.write_meshes([mesh])
        writer.close()
    return writer.path


def placed(key: Key) -> Key:
    """What DistributedDataParallel makes of a tensor."""
    over = "replicate" if key.kind == "parameter" else "batch"
    return Key(**{name: getattr(key, name) for name in Key.__slots__} | {"placement": json.dumps(
        {"mesh": 0, "over": [over]})})  # fmt: skip


def measure(path: Path, repeats: int) -> dict[str, float]:
    """Seconds, each the median of some runs."""
    found: dict[str, list[float]] = {name: [] for name in COLUMNS[:-1]}
    for _ in range(repeats):
        recording, secs = timed(endoscope.open, path)
        found["open"].append(secs)
        nodes = [node for node in recording.nodes if "layers" in node]
        found["first series"].append(timed(recording.series, nodes[0], "std")[1])
        found["a series"] += [timed(recording.series, node, "std")[1] for node in nodes[1:21]]
        found["a median"] += [timed(recording.series, node, "q50")[1] for node in nodes[1:6]]
        found["a step"] += [timed(bulk.step_table, recording, step)[1] for step in recording.steps[10:15]]
    return {name: statistics.median(taken) for name, taken in found.items()}


def timed(run: Callable[..., Result], *arguments: object) -> tuple[Result, float]:
    """CPU time: reading is done by one thread, and other processes on the machine do not count."""
    started = time.process_time()
    result = run(*arguments)
    return result, time.process_time() - started


def page(path: Path, starts: int) -> float:
    """Seconds from typing the command to a page that can be used."""
    from shutil import which

    from page import FLAGS, Found, start
    from playwright.sync_api import sync_playwright

    found = Found()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=which("chromium"), args=FLAGS)
        for _ in range(starts):
            start(browser, path, found)
        browser.close()
    return statistics.median(found.starts)


def plot(file: Path, rows: dict[int, dict[str, float]]) -> None:
    """Time over ranks, both logarithmic."""
    width, height, left, low, high = 640, 360, 60, 1e-3, 10.0
    colors = ("#3a6ea5", "#8a8a8a", "#c0563b", "#7a9a3a", "#8a5aa5", "#b08a2a")

    def at(ranks: float, secs: float) -> tuple[float, float]:
        x = left + (width - left - 120) * math.log2(ranks) / math.log2(max(rows))
        y = height - 40 - (height - 60) * math.log10(max(secs, low) / low) / math.log10(high / low)
        return round(x, 1), round(y, 1)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="white"/>']  # fmt: skip
    for exponent in range(-3, 2):
        _, y = at(1, 10.0**exponent)
        lines.append(
            f'<path d="M{left} {y}H{width - 120}" stroke="#ddd"/><text x="8" y="{y + 4}">{10.0**exponent:g} s</text>'
        )
    for ranks in rows:
        lines.append(f'<text x="{at(ranks, low)[0]}" y="{height - 18}" text-anchor="middle">{ranks}</text>')
    lines.append(f'<text x="{left}" y="{height - 3}">ranks</text>')
    for color, name in zip(colors, COLUMNS, strict=True):
        points = [at(ranks, taken[name]) for ranks, taken in rows.items() if name in taken]
        if points:
            drawn = " ".join(f"{x},{y}" for x, y in points)
            lines.append(f'<polyline points="{drawn}" fill="none" stroke="{color}" stroke-width="2"/>')
            lines.append(f'<text x="{points[-1][0] + 6}" y="{points[-1][1] + 4}" fill="{color}">{name}</text>')
    file.write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")


def told(secs: float | None) -> str:
    return "" if secs is None else f"{secs:.2f} s" if secs >= 1 else f"{1000 * secs:.0f} ms"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="*", default=RANKS)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=150, help="each has a value and a gradient")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-page", action="store_true")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--folder", type=Path, help="for the trials; without it, they are deleted")
    parser.add_argument("--write-only", action="store_true", help="measure nothing")
    options = parser.parse_args(arguments)
    rows: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for ranks in options.ranks:
            kept = options.folder and options.folder / f"{ranks}-ranks"
            is_there = kept is not None and kept.exists()
            path = kept if is_there else write(options.folder or Path(folder), ranks, options.steps, options.nodes)
            if options.write_only:
                continue
            rows[ranks] = measure(path, options.repeats)
            if not options.no_page:
                rows[ranks]["page"] = page(path, options.repeats)
            print(f"{ranks} ranks:", ", ".join(f"{n} {told(s)}" for n, s in rows[ranks].items()), flush=True)
    if options.write_only:
        return
    print()
    print_table([["ranks", *COLUMNS], *([str(r), *(told(taken.get(n)) for n in COLUMNS)] for r, taken in rows.items())])
    print(f"Wanted with 64 ranks: open {OPEN_SECS:g} s, a series {SERIES_MS:g} ms, page {PAGE_SECS:g} s.")
    if options.plot:
        plot(options.plot, rows)


if __name__ == "__main__":
    main()
