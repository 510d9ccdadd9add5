"""What the benchmark of the page measures beside the graph: layers × steps, and a table of 500 trials."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

import numpy as np
from page_actions import JAVASCRIPT, LAYERS_ACTIONS
from playwright.sync_api import Browser, Page

Serving = Callable[[Path], AbstractContextManager[tuple["Popen[str]", str, float]]]

FIRST_MS, CLICK_MS, CLICK_P95_MS, PRIVATE_MB, HEAP_MB = 100.0, 50.0, 120.0, 300.0, 200.0
TABLE_SECS, FINDINGS_SECS = 2.0, 60.0
_STARTS = 3
_PATIENCE_SECS = 300.0


@dataclass
class Layers:
    """Of layers × steps."""

    first: list[float] = field(default_factory=list)  # milliseconds from the key to the first picture
    clicks: dict[str, list[float]] = field(default_factory=dict)
    private_mb: float = 0.0
    heap_mb: float = 0.0


@dataclass
class Trials:
    """Of the table of many trials."""

    starts: list[float] = field(default_factory=list)  # seconds from the command to a table that can be used
    found: float = 0.0  # seconds until all findings are there
    private_mb: float = 0.0
    heap_mb: float = 0.0


def layers(browser: Browser, path: Path, rounds: int, serving: Serving, size: Any) -> Layers:
    """The first drawing once the page rests, then every choice."""
    found = Layers()
    with serving(path) as (process, address, _):
        for _ in range(_STARTS):
            page = opened(browser, address, size)
            page.wait_for_timeout(3000)  # the page has rested, as while somebody reads the overview
            found.first.append(page.evaluate("(n) => window.__timed((n) => { __key('2'); }, n)", 0))
            page.context.close()
        page = opened(browser, f"{address}#v=1&tab=layers", size)
        page.wait_for_timeout(3000)
        for number in range(rounds):
            for name, action in LAYERS_ACTIONS.items():
                taken = page.evaluate(f"(n) => window.__timed((n) => {{ {action} }}, n)", number)
                if taken is not None:
                    found.clicks.setdefault(name, []).append(taken)
        found.private_mb, found.heap_mb = private_mb(process.pid), heap_mb(page)
        page.context.close()
    return found


def trials(browser: Browser, path: Path, serving: Serving, size: Any) -> Trials:
    found = Trials()
    for turn in range(_STARTS):
        with serving(path) as (process, address, started):
            page = opened(browser, address, size)
            page.wait_for_selector(".overview-name")
            found.starts.append(time.perf_counter() - started)
            if turn == _STARTS - 1:
                checked = "() => !document.body.innerText.includes('not checked yet')"
                page.wait_for_function(checked, timeout=1000 * _PATIENCE_SECS, polling=500)
                found.found = time.perf_counter() - started
                found.private_mb, found.heap_mb = private_mb(process.pid), heap_mb(page)
            page.context.close()
    return found


def opened(browser: Browser, address: str, size: Any) -> Page:
    page = browser.new_context(viewport=size).new_page()
    page.goto(address)
    page.wait_for_function("window.__endoscope", polling=5)
    page.evaluate("() => window.__endoscope.settled()")
    page.evaluate(JAVASCRIPT)
    return page


def private_mb(process: int) -> float:
    """Memory that a process shares with nobody; 0 where that cannot be asked."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


def heap_mb(page: Page) -> float:
    return float(page.evaluate("() => performance.memory?.usedJSHeapSize ?? 0")) / 2**20


def rows(found: Layers | None, many: Trials | None, width: int) -> list[list[str]]:
    """Lines of the table: what, value, limit, whether it is missed."""
    table: list[list[str]] = []

    def add(what: str, value: float, unit: str, limit: float | None, digits: int = 0) -> None:
        missed = "MISSED" if limit is not None and value > limit else ""
        shown = [f"{value:,.{digits}f} {unit}", *[""] * (width - 4)]
        table.append([what, *shown, f"{limit:g} {unit}" if limit is not None else "", missed])

    if found is not None:
        clicks = [taken for several in found.clicks.values() for taken in several]
        add("layers × steps: first picture, median", statistics.median(found.first), "ms", FIRST_MS)
        add("layers × steps: click to last pixel, median", statistics.median(clicks), "ms", CLICK_MS)
        add("layers × steps: click to last pixel, p95", float(np.percentile(clicks, 95)), "ms", CLICK_P95_MS)
        for name, several in found.clicks.items():
            add(f"  {name}, median", statistics.median(several), "ms", None)
        add("layers × steps: private memory of the server", found.private_mb, "MB", PRIVATE_MB)
        add("layers × steps: heap of the tab", found.heap_mb, "MB", HEAP_MB)
    if many is not None:
        add("500 trials: table usable after, median", statistics.median(many.starts), "s", TABLE_SECS, 2)
        add("500 trials: all findings after", many.found, "s", FINDINGS_SECS, 1)
        add("500 trials: private memory of the server", many.private_mb, "MB", PRIVATE_MB)
        add("500 trials: heap of the tab", many.heap_mb, "MB", HEAP_MB)
    return table
