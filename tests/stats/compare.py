"""How near a fast statistic must be to its slow twin."""

import math

import numpy as np

from endoscope.schema.stats import COUNTS
from endoscope.stats import Measured
from tests.stats.tensors import as_float32

SINGLE = 4e-6  # what sums of float32 numbers may lose
DOUBLE = 1e-11


def row(measured: Measured, request: int) -> dict[str, float]:
    """The statistics of one request."""
    return {name: column[request].item() for name, column in measured.whole.items()}


def sample_rows(measured: Measured, request: int) -> list[dict[str, float]]:
    rows = np.flatnonzero(measured.sample_request == request)
    assert measured.sample_index[rows].tolist() == list(range(len(rows)))
    return [{name: column[i].item() for name, column in measured.samples.items()} for i in rows]


def unit_rows(measured: Measured, request: int) -> list[dict[str, float]]:
    rows = range(measured.unit_offsets[request], measured.unit_offsets[request + 1])
    return [{name: column[i].item() for name, column in measured.units.items()} for i in rows]


def histogram_of(measured: Measured, request: int) -> list[int]:
    """All 257 counts."""
    counts = np.zeros(257, np.int64)
    stored = measured.hist_values[measured.hist_offsets[request] : measured.hist_offsets[request + 1]]
    first = measured.hist_first[request]
    counts[first : first + len(stored)] = stored
    return counts.tolist()


def assert_same(got: dict[str, float], want: dict[str, float], *, precision: float, stored_in: float = -1.0) -> None:
    """Compare the statistics of some numbers.

    Those of samples and units are rounded to float32 at the end, and numbers may vanish that are hundreds of orders
    of magnitude below the largest of the tensor they are stored in.
    """
    stored = stored_in >= 0
    vanishing = 1e-140 * stored_in if stored and math.isfinite(stored_in) else 0.0
    for name, value in got.items():
        expected = want[name]
        if stored:
            expected = as_float32(expected)
        if name in COUNTS:
            assert value == expected, name
        else:
            assert close(value, expected, allowed(name, want, precision) + vanishing), (
                f"{name}: {value} instead of {expected}"
            )


def allowed(name: str, want: dict[str, float], precision: float) -> float:
    """The largest difference that is rounding."""
    tiniest = 1e-44  # the last bit of the smallest float32
    if name in ("min", "max", "abs_max"):
        return 1e-7 * abs(want[name])  # rounded at most once
    if name == "mean":
        return precision * want["abs_mean"] + tiniest
    if name == "std":
        return precision * want["std"] + precision / 8 * abs(want["mean"]) + tiniest
    if name.startswith("q"):
        return 1e-7 * max(abs(want["q01"]), abs(want["q99"])) + tiniest
    return precision * abs(want[name]) + tiniest


def close(value: float, expected: float, difference: float) -> bool:
    if math.isnan(expected) or math.isinf(expected):
        return value == expected or (math.isnan(value) and math.isnan(expected))
    return abs(value - expected) <= difference
