"""Colours of a trace: one number for every node of the picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from endoscope.errors import BadArgument, EndoscopeError
from endoscope.server.traces import values
from endoscope.server.traces.shown import MADE, ShownTrace

ABSENT, NUMBER, HAS_NAN, HAS_INF = range(4)  # as in frontend/src/model/heat.ts


def _seconds(op: Any) -> float:
    return float(op.seconds) if str(op.kind) in MADE else np.nan


def _flops(op: Any) -> float:
    return np.nan if str(op.kind) not in MADE or op.flops is None else float(op.flops)


#: What an operation costs. A closed module shows the sum of what is inside.
COSTS: dict[str, Callable[[Any], float]] = {
    "seconds": _seconds, "bytes": lambda op: float(op.bytes), "flops": _flops,
}  # fmt: skip
STATISTICS = ("mean", "std", "nans")


class Heats:
    """What was worked out for one trace. Values are read once for all statistics of them."""

    def __init__(self, shown: ShownTrace) -> None:
        self._shown = shown
        self._known: dict[tuple[str, str], pa.Table] = {}

    def table(self, name: str, of: str) -> pa.Table:
        """One row for each node: `TraceHeatRow`."""
        with self._shown.lock:
            if name in COSTS:
                if (name, "") not in self._known:
                    costs = np.array([COSTS[name](op) for op in self._shown.read.ops])
                    self._known[name, ""] = _table(costs, np.where(np.isnan(costs), ABSENT, NUMBER))
                return self._known[name, ""]
            if name not in STATISTICS or of not in ("value", "gradient"):
                raise BadArgument(
                    f"There are no colours {name!r} of {of!r}. There are {', '.join([*COSTS, *STATISTICS])}, the last "
                    "three also of=gradient."
                )
            if (name, of) not in self._known:
                self._measure(of)
            return self._known[name, of]

    def _measure(self, of: str) -> None:
        rows = [_measured(op, of) for op in self._shown.read.ops]
        mean, std, share, states = np.array(rows, np.float64).reshape(-1, 4).T
        # The share of NaN is itself a number where there are some.
        shares = np.where(states == ABSENT, ABSENT, NUMBER)
        self._known["mean", of] = _table(mean, states)
        self._known["std", of] = _table(std, states)
        self._known["nans", of] = _table(share, shares)


def _measured(op: Any, of: str) -> tuple[float, float, float, int]:
    """Of the first tensor of an operation: mean, spread, share of NaN, and what kind of number that is."""
    try:
        found = values.colour_of(values.numbers(values.tensor_of(op, 0, of)))
    except (EndoscopeError, TypeError):  # not kept, lost, none, or no numbers at all
        return np.nan, np.nan, np.nan, ABSENT
    state = HAS_NAN if found.nan_share else HAS_INF if found.has_infinite else NUMBER
    return found.mean, found.std, found.nan_share, ABSENT if np.isnan(found.mean) and state == NUMBER else state


def _table(numbers: np.ndarray, states: np.ndarray) -> pa.Table:
    return pa.table({"value": np.asarray(numbers, np.float64), "state": np.asarray(states, np.uint8)})
