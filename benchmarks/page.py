"""How fast the page is: from typing `endoscope show` to a page that can be used, and from a click to the last pixel.

python benchmarks/page.py
python benchmarks/page.py --only trace                   the page of a trace
python benchmarks/page.py --only demo --folder runs      recordings are kept in a folder, and used again from there
python benchmarks/page.py --peer-python PYTHON           Comgra beside ours, with an interpreter that has it

Real Chromium, headless, against real servers. A click is timed inside the page: from the event until the frame is
painted in which everything that was asked for is drawn. Data that was fetched ahead is part of the page, but no click
asks for what the one before has shown: every click goes somewhere new. Memory is measured on Linux only, and without
the mapped files of a recording: the system takes those back whenever it needs the room.
"""

from __future__ import annotations

import argparse
import compileall
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import page_peer
import page_recordings
import page_trace
import page_views
from page_actions import ACTIONS, JAVASCRIPT
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from table import print_table

import endoscope

USABLE_SECS, CLICK_MS, CLICK_P95_MS, MEMORY_MB, FRAME_MS = 1.5, 50.0, 120.0, 300.0, 17.0
STARTS, ROUNDS = 5, 12
SIZE = {"width": 1440, "height": 900}
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
RECORDINGS = ("demo", "transformer", "1,000 × 1,000")
MANY_NODES = "3,000 nodes"
MANY_TRIALS = "500 trials"
LARGE = "1,000 × 1,000"


@dataclass
class Found:
    """What was measured with one recording."""

    starts: list[float] = field(default_factory=list)  # seconds
    answers: list[float] = field(default_factory=list)  # seconds until the server answered
    clicks: dict[str, list[float]] = field(default_factory=dict)  # milliseconds, by what was done
    memory_mb: float = 0.0  # private, the most after any round
    peer_start: float = math.nan  # seconds
    peer_clicks: dict[str, list[float]] = field(default_factory=dict)

    @property
    def all_clicks(self) -> list[float]:
        return _together(self.clicks)


def _together(clicks: dict[str, list[float]]) -> list[float]:
    return [taken for several in clicks.values() for taken in several]


def recorded(name: str, folder: Path) -> Path:
    """The folder of a recording; made if it is not there yet."""
    target = folder / re.sub(r"\W+", "_", name)
    if not target.exists():
        print(f"recording: {name} ...", file=sys.stderr, flush=True)
        if name == "demo":
            environment = {**os.environ, "DEMO_SERVE": "0"}
            command = [sys.executable, "-m", "endoscope", "demo", str(target)]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        elif name == "transformer":
            page_recordings.transformer(target)
        elif name == MANY_NODES:
            page_recordings.large(target, 20, 3000)
        elif name == MANY_TRIALS:
            page_recordings.many(target, 500)
        else:
            page_recordings.large(target, 1000, 1000)
    return target


@contextmanager
def serving(path: Path) -> Iterator[tuple[subprocess.Popen[str], str, float]]:
    """(process, address, moment at which it was started)."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "endoscope", "show", str(path), "--port", "0"]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            raise SystemExit(f"endoscope show {path} did not start.")
        yield process, found[0], started
    finally:
        process.terminate()
        process.wait()


def usable(page: Page) -> None:
    page.wait_for_function("window.__endoscope", polling=5)
    page.evaluate("() => window.__endoscope.settled()")


def start(browser: Browser, path: Path, found: Found) -> None:
    """Once from typing the command to a page that can be used. The browser is open already."""
    window = browser.new_context(viewport=SIZE)
    page = window.new_page()
    with serving(path) as (_, address, started):
        found.answers.append(time.perf_counter() - started)
        page.goto(address)
        usable(page)
        found.starts.append(time.perf_counter() - started)
    window.close()


def click_around(browser: Browser, path: Path, rounds: int, found: Found) -> None:
    window = browser.new_context(viewport=SIZE)
    page = window.new_page()
    with serving(path) as (process, address, _):
        page.goto(f"{address}#v=1&tab=graph")
        usable(page)
        page.evaluate(JAVASCRIPT)
        for number in range(rounds):
            for name, action in ACTIONS.items():
                taken = page.evaluate(f"(n) => window.__timed((n) => {{ {action} }}, n)", number)
                if taken is not None:  # null: there is nothing of the kind in this recording
                    found.clicks.setdefault(name, []).append(taken)
            found.memory_mb = max(found.memory_mb, page_views.private_mb(process.pid))
    window.close()


def measure_peer(browser: Browser, python: str, name: str, folder: Path, found: Found) -> None:
    """Comgra with the same network. Whatever keeps it from running is said, and nothing of ours depends on it."""
    try:
        path = page_peer.recorded(python, name, folder)
        found.peer_start, found.peer_clicks = page_peer.measure(browser, python, path, name, SIZE)
    except (OSError, PlaywrightError) as error:
        print(f"Comgra was not measured with {name}: {error}")


def frames(browser: Browser, path: Path) -> dict[str, list[float]]:
    """Milliseconds between frames while the graph is dragged and zoomed, all modules open."""
    window = browser.new_context(viewport=SIZE)
    page = window.new_page()
    found = {}
    with serving(path) as (_, address, _):
        page.goto(f"{address}#v=1&tab=graph")
        usable(page)
        graph = page.get_by_role("region", name="Dependency graph")
        graph.get_by_role("button", name="open all").click()
        page.evaluate("() => window.__endoscope.settled()")
        page.evaluate(JAVASCRIPT)
        box = graph.get_by_role("application").bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.evaluate("() => window.__frames(true)")
        for turn in range(120):
            page.mouse.wheel(0, -60 if turn < 60 else 60)
            page.wait_for_timeout(8)
        found["zoom"] = page.evaluate("() => window.__frames(false)")
        page.evaluate("() => window.__frames(true)")
        page.mouse.down()
        for turn in range(120):
            page.mouse.move(x + 2 * (turn % 60), y + (turn % 40))
            page.wait_for_timeout(8)
        page.mouse.up()
        found["pan"] = page.evaluate("() => window.__frames(false)")
    window.close()
    return found


def p95(values: list[float]) -> float:
    return float(np.percentile(values, 95))


def rows(results: dict[str, Found], moved: dict[str, list[float]]) -> list[list[str]]:
    names = list(results)
    table = [["what", *(names or [""]), "limit", ""]]

    def add(what: str, values: list[float], unit: str, limit: float | None, digits: int = 0) -> None:
        shown = [f"{value:,.{digits}f} {unit}" if value == value else "–" for value in values]
        missed = limit is not None and any(value > limit for value in values)
        table.append([what, *shown, f"{limit:g} {unit}" if limit is not None else "", "MISSED" if missed else ""])

    if names:
        _add_recordings(add, results)
    for what, taken in moved.items():
        for word, value in {"median": statistics.median(taken), "p95": p95(taken)}.items():
            missed = "MISSED" if word == "median" and value > FRAME_MS else ""
            others = [""] * (len(names) - 1)
            limit = f"{FRAME_MS:g} ms" if word == "median" else ""
            table.append([f"{what} of {MANY_NODES}, frame {word}", f"{value:.1f} ms", *others, limit, missed])
    return table


def _add_recordings(add: Callable[..., None], results: dict[str, Found]) -> None:
    def each(measure: Any) -> list[float]:
        return [measure(found) for found in results.values()]

    add("server answers after", each(lambda found: statistics.median(found.answers)), "s", None, 2)
    add("page usable after", each(lambda found: statistics.median(found.starts)), "s", USABLE_SECS, 2)
    add("click to last pixel, median", each(lambda found: statistics.median(found.all_clicks)), "ms", CLICK_MS)
    add("click to last pixel, p95", each(lambda found: p95(found.all_clicks)), "ms", CLICK_P95_MS)
    for action in ACTIONS:
        several = [found.clicks.get(action, []) for found in results.values()]
        add(f"  {action}, median", [statistics.median(s) if s else float("nan") for s in several], "ms", None)
        add(f"  {action}, p95", [p95(s) if s else float("nan") for s in several], "ms", None)
    if any(found.peer_clicks for found in results.values()):
        _add_peer(add, results)
    add("private memory of the server, most", each(lambda found: found.memory_mb), "MB", MEMORY_MB)


def _add_peer(add: Callable[..., None], results: dict[str, Found]) -> None:
    """Medians, and no limits: these are not ours."""
    add("Comgra: page usable after", [found.peer_start for found in results.values()], "s", None, 2)
    everything = [_together(found.peer_clicks) for found in results.values()]
    add("Comgra: click to last pixel, median", [_median(several) for several in everything], "ms", None)
    add("Comgra: click to last pixel, p95", [p95(s) if s else math.nan for s in everything], "ms", None)
    for action in dict.fromkeys(name for found in results.values() for name in found.peer_clicks):
        several = [found.peer_clicks.get(action, []) for found in results.values()]
        add(f"  Comgra: {action}, median", [_median(s) for s in several], "ms", None)


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else math.nan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="recordings whose name contains one of these words, separated by commas")
    parser.add_argument("--folder", type=Path, help="where recordings are kept; without, they are temporary")
    parser.add_argument("--record", action="store_true", help="make the recordings, measure nothing")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--peer-python", metavar="PYTHON", help="an interpreter that has Comgra, to measure it, too")
    parser.add_argument("--no-peer", action="store_true", help="measure ours alone, and say nothing about it")
    options = parser.parse_args()
    words = (options.only or "").lower().split(",")
    chosen = [name for name in (*RECORDINGS, MANY_NODES, MANY_TRIALS) if any(word in name for word in words)]
    traced = [name for name in page_trace.NAMES if any(word in name.lower() for word in words)]
    program = which("chromium") or which("chromium-browser") or which("google-chrome")
    if program is None:
        print("Chromium is not installed, so nothing can be measured.")
        return 0
    compileall.compile_dir(Path(endoscope.__file__).parent, quiet=2)  # as pip leaves it, also where Python may not
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="endoscope-")))
        paths = {name: recorded(name, folder) for name in chosen}
        if options.record:
            return 0
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        results = {name: Found() for name in chosen if name in RECORDINGS}
        for name, found in results.items():
            print(f"measuring: {name} ...", file=sys.stderr, flush=True)
            for _ in range(options.starts):
                start(browser, paths[name], found)
            click_around(browser, paths[name], options.rounds, found)
            if options.peer_python and not options.no_peer and name in page_peer.STEPS:
                measure_peer(browser, options.peer_python, name, folder, found)
        moved = frames(browser, paths[MANY_NODES]) if MANY_NODES in paths else {}
        layers = page_views.layers(browser, paths[LARGE], options.rounds, serving, SIZE) if LARGE in paths else None
        trials = page_views.trials(browser, paths[MANY_TRIALS], serving, SIZE) if MANY_TRIALS in paths else None
        traces = {name: page_trace.measure(browser, name, options.rounds, SIZE) for name in traced}
        browser.close()
    table = rows(results, moved) if results or moved else [["what", "", "limit", ""]]
    table += page_views.rows(layers, trials, len(table[0]))
    table += page_trace.rows(traces, len(table[0]))
    print_table(table)
    if not options.peer_python and not options.no_peer:
        print("Comgra was not measured: --peer-python names an interpreter that has it, --no-peer leaves it out.")
    return int(any(row[-1] for row in table[1:]))


if __name__ == "__main__":
    sys.exit(main())
