"""What a full trace costs in memory: its peak against the bytes of the activations it keeps.

python benchmarks/trace_memory.py [--models NAMES] [--no-grad] [--floor-only]

Every number comes from a process of its own, because memory that one variant has freed is memory the next one
need not ask for. ``memory_probe.py`` says how each is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

import measure

measure.one_thread()

from memory_probe import VARIANTS, probe  # noqa: E402  (one_thread sets a variable that torch reads)
from models import CASES, Case, select  # noqa: E402
from table import print_table  # noqa: E402

KEPT_FACTOR = 1.1
BYTES_PER_OP = 4096
# Large blocks go back to the system as soon as they are freed; otherwise the C library keeps them for re-use
# and the resident size says little about what is alive.
GLIBC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
HEAD = ["model", "ops", "plain MB", "kept MB", "peak MB", "bound MB", "peak ÷ bound"]
HEAD += ["torch's own MB", "without it", "counted MB", "Python B/op"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of a full trace.")
    parser.add_argument("--models", help="comma-separated words; only models whose name contains one of them")
    parser.add_argument("--no-grad", action="store_true", help="measure under torch.no_grad()")
    parser.add_argument("--floor-only", action="store_true", help="only watch torch, without endoscope")
    parser.add_argument("--probe", nargs=2, metavar=("VARIANT", "CASE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        variant, number = options.probe
        print(json.dumps(probe(variant, CASES[int(number)], options.no_grad, options.floor_only)))
        return
    flags = ["--no-grad"] * options.no_grad + ["--floor-only"] * options.floor_only
    rows = [HEAD]
    for case in select(options.models):
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        rows.append(_row(case.name, {variant: _probe(case, variant, flags) for variant in VARIANTS}))
    print(f"\nPeak memory of one full trace; bound = {KEPT_FACTOR} x kept + {BYTES_PER_OP} bytes per op.\n")
    print_table(rows)


def _probe(case: Case, variant: str, flags: list[str]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--probe", variant, str(CASES.index(case)), *flags]
    done = subprocess.run(command, env={**os.environ, **GLIBC}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"measuring {variant!r} of {case.name} failed:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _row(name: str, probes: dict[str, dict[str, Any]]) -> list[str]:
    kept, ops, peak = (probes["trace"][key] for key in ("kept", "ops", "peak"))
    own = probes["torch"]["own"]
    bound = KEPT_FACTOR * kept + BYTES_PER_OP * ops
    return [
        name,
        f"{ops:,}",
        *(f"{size / 1e6:.2f}" for size in (probes["plain"]["peak"], kept, peak, bound)),
        _share(peak, bound),
        f"{own / 1e6:.2f}",
        _share(peak - own, bound),
        f"{probes['count']['peak'] / 1e6:.2f}",
        f"{probes['count']['python'] / ops:,.0f}",
    ]


def _share(size: float, bound: float) -> str:
    return f"{size / bound:.2f}" + "  MISSED" * (size > bound)


if __name__ == "__main__":
    main()
