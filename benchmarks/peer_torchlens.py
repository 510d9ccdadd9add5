"""Measures TorchLens; runs in the peer's own environment. Started by ``peer.py``, result written as JSON.

python peer_torchlens.py RESULT [--models NAMES] [--quick] [--no-grad]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import measure

measure.one_thread()

import torch  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
import torchlens  # noqa: E402
from after_effects import after_a_trace  # noqa: E402
from models import CASES, MLP, Case, select  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torchlens.options import CaptureOptions  # noqa: E402

# A call may take ten seconds here, and where a ratio is in the hundreds a few percent of noise do not matter.
EFFORT = measure.Effort(budget_secs=12.0, min_rounds=1, max_rounds=9)
QUICK = measure.Effort(budget_secs=3.0, min_rounds=2, max_rounds=5)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("--models")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-grad", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with torch.no_grad() if options.no_grad else contextlib.nullcontext():
        # First, while torch is still as it was; it also takes the second that the peer's first use costs.
        after = after_a_trace(trace_once, rounds=5 if options.quick else 11)
        cases = {}
        for case in select(options.models):
            if not (options.quick and case.many_ops):
                print(f"TorchLens: {case.name} ...", file=sys.stderr, flush=True)
                cases[case.name] = measured(case, QUICK if options.quick else EFFORT)
    answer = {
        "torchlens": torchlens.__version__,
        "torch": torch.__version__,
        "after": {name: comparison.ratio("traced", "plain") for name, comparison in after.items()},
        "cases": cases,
    }
    options.result.write_text(json.dumps(answer))


def trace_once() -> None:
    torchlens.trace(MLP().eval(), CASES[0].make_input())


def measured(case: Case, effort: measure.Effort) -> dict[str, Any]:
    """Ratios of every way of using the peer that runs on this model, and why the others do not."""
    model, x = case.make()
    sides, failures = measure.runnable(ways(case, model, x))
    comparison = measure.compare({"raw": lambda: model(x), **sides}, effort)
    return {
        "ops": len(torchlens.trace(model, x)) if "full" in sides else None,
        "raw_ms": 1e3 * comparison.median_secs("raw"),
        "ratios": {side: comparison.ratio(side, "raw") for side in sides},
        "failures": failures,
    }


def ways(case: Case, model: nn.Module, x: Tensor) -> dict[str, measure.Side]:
    structure = CaptureOptions(structure_only=True)
    one_layer = CaptureOptions(layers_to_save=[case.one_layer.removeprefix("type:")])
    sides: dict[str, measure.Side] = {
        "full": lambda: torchlens.trace(model, x),
        "structure": lambda: torchlens.trace(model, x, capture=structure),
    }
    if not case.many_ops:  # half a minute more, and it costs the peer what a full trace costs
        sides["one layer"] = lambda: torchlens.trace(model, x, capture=one_layer)
    if case.validated:
        sides["validate"] = lambda: torchlens.validate(model, x, scope="forward")
    return sides


if __name__ == "__main__":
    main()
