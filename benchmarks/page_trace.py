"""What the benchmark of the page measures of traces: the first picture, folding, choosing an operation.

python benchmarks/page.py --only trace
python benchmarks/page_trace.py "trace: GPT-2"      traces the network and serves it until Ctrl+C
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from page_actions import TRACE_ACTIONS
from page_views import opened
from playwright.sync_api import Browser

FIRST_SECS, FOLD_MS, CLICK_MS = 2.0, 300.0, 50.0
NAMES = ("trace: ResNet-18", "trace: GPT-2", "trace: 10,000 operations")
CHOOSING = ("choose an operation", "colour", "values as")  # everything is open
FOLDING = ("close a module", "open it")  # in what is first shown
_STARTS = 3


@dataclass
class Found:
    """What was measured of one trace."""

    first: float = 0.0  # seconds to the first picture, while the server works it out
    again: list[float] = field(default_factory=list)  # seconds of later visits
    clicks: dict[str, list[float]] = field(default_factory=dict)  # milliseconds, by what was done


def measure(browser: Browser, name: str, rounds: int, size: Any) -> Found:
    found = Found()
    with _serving(name) as address:
        for turn in range(1 + _STARTS):
            began = time.perf_counter()
            page = opened(browser, address, size)
            taken = time.perf_counter() - began
            if turn:
                found.again.append(taken)
            else:
                found.first = taken
            page.context.close()
        _click(browser, f"{address}#v=1&open=*", CHOOSING, rounds, size, found)
        _click(browser, address, FOLDING, rounds, size, found)
    return found


def _click(browser: Browser, address: str, actions: Sequence[str], rounds: int, size: Any, found: Found) -> None:
    page = opened(browser, address, size)
    for number in range(rounds):
        for action in actions:
            taken = page.evaluate(f"(n) => window.__timed((n) => {{ {TRACE_ACTIONS[action]} }}, n)", number)
            if taken is not None:
                found.clicks.setdefault(action, []).append(taken)
    page.context.close()


@contextmanager
def _serving(name: str) -> Iterator[str]:
    process = subprocess.Popen([sys.executable, __file__, name], text=True, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            raise SystemExit(f"{name} could not be served.")
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def rows(several: dict[str, Found], width: int) -> list[list[str]]:
    """Lines of the table: what, value, limit, whether it is missed."""
    table: list[list[str]] = []

    def add(what: str, value: float, unit: str, limit: float | None, digits: int = 0) -> None:
        missed = "MISSED" if limit is not None and value > limit else ""
        shown = [f"{value:,.{digits}f} {unit}", *[""] * (width - 4)]
        table.append([what, *shown, f"{limit:g} {unit}" if limit is not None else "", missed])

    for name, found in several.items():
        folding = [taken for action in FOLDING for taken in found.clicks.get(action, [])]
        others = [taken for action, own in found.clicks.items() if action not in FOLDING for taken in own]
        add(f"{name}, first picture", found.first, "s", FIRST_SECS, 2)
        add(f"{name}, picture of a later visit, median", statistics.median(found.again), "s", FIRST_SECS, 2)
        add(f"{name}, folding, median", statistics.median(folding), "ms", FOLD_MS)
        add(f"{name}, click to last pixel, median", statistics.median(others), "ms", CLICK_MS)
        add(f"{name}, click to last pixel, p95", float(np.percentile(others, 95)), "ms", None)
        for action, own in found.clicks.items():
            add(f"  {action}, median", statistics.median(own), "ms", None)
    return table


def _trace(name: str) -> Any:
    """Imports torch, which the process that measures does without."""
    import torch
    from layout_nets import nets
    from torch import nn

    import endoscope

    torch.manual_seed(0)
    kind = name.removeprefix("trace: ")
    known = nets()
    if kind in known:
        net = known[kind]()
        return endoscope.trace(net.model, net.inputs)

    class Step(nn.Module):
        """Eleven operations."""

        def __init__(self) -> None:
            super().__init__()
            self.norm, self.one, self.two = nn.LayerNorm(4), nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.two(torch.relu(self.one(self.norm(x)))) * 0.5
            h = torch.tanh((h + 1) * 2)
            return x + (h - h.mean())

    steps = nn.Sequential(*(Step() for _ in range(910)))
    return endoscope.trace(nn.Sequential(nn.Linear(4, 4), steps), torch.rand(2, 4))


if __name__ == "__main__":
    _trace(sys.argv[1]).show(port=0).wait()
