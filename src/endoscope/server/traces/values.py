"""Values of a trace as numbers: what is sent, and what is counted and measured about them.

Tensors come as whatever the trace hands out, of torch or of numpy; nothing here imports torch.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.errors import LookupFailed, ValueNotKept
from endoscope.schema import stats

MOST_SENT = 1 << 22  # numbers of one tensor that travel to the page
_EDGES = np.array(stats.histogram_edges())
_POSITIVE = _EDGES[stats.BINS_PER_SIGN + 2 : -1]  # between bins of positive numbers


class Part(NamedTuple):
    """The numbers of a tensor, or of its beginning if it is too large."""

    values: np.ndarray
    whole: tuple[int, ...]  # shape of the whole tensor


def tensor_of(op: Any, output: int, of: str) -> Any:
    """One of the tensors that an operation returned, or the gradient of it."""
    if of == "gradient":
        found = op.gradient
        several = isinstance(found, tuple)
        tensor = found[output] if several and output < len(found) else None if several else found
        if tensor is None:
            raise ValueNotKept(
                f"No gradient arrived at {op.label}: backward() was not called on the result of the trace, or no path "
                "leads from there to this operation."
            )
        return tensor
    outputs = op.outputs
    if output >= len(outputs):
        raise LookupFailed(f"{op.label} returned {len(outputs)} tensors; there is no number {output}.")
    return outputs[output]


def numbers(tensor: Any) -> np.ndarray:
    """All numbers of a tensor, in its own type where numpy has that."""
    if not hasattr(tensor, "detach"):
        return np.asarray(tensor)
    found = tensor.detach()
    if getattr(found, "is_quantized", False):
        found = found.dequantize()
    if getattr(found, "is_nested", False) or str(getattr(found, "layout", "torch.strided")) != "torch.strided":
        if getattr(found, "is_nested", False):
            raise ValueNotKept("This is a nested tensor: its parts have different shapes, which cannot be one table.")
        found = found.to_dense()
    found = found.cpu()
    try:
        return np.asarray(found.resolve_conj().resolve_neg().numpy())
    except TypeError:  # a type that numpy does not have: bfloat16, float8
        return np.asarray(found.float().numpy())


def beginning(values: np.ndarray) -> Part:
    """As much of a tensor as is sent: of the first axis only as many places as there is room for."""
    whole = values.shape
    axis = 0
    while values.size > MOST_SENT:
        rest = values.size // values.shape[axis]
        values = np.take(values, range(max(1, MOST_SENT // rest)), axis)
        axis += 1
    return Part(values, whole)


def measured(values: np.ndarray) -> dict[str, float]:
    """All statistics of a tensor by the definitions of `schema.stats`; of complex numbers those of their magnitudes."""
    flat = _flat(values)
    finite = flat[np.isfinite(flat)]
    found = _counts(flat, finite)
    return {**found, **_of_finite(finite)}


def _flat(values: np.ndarray) -> np.ndarray:
    magnitudes = np.abs(values) if np.iscomplexobj(values) else values
    return np.asarray(magnitudes, dtype=np.float64).reshape(-1)


def _counts(flat: np.ndarray, finite: np.ndarray) -> dict[str, float]:
    nans = int(np.isnan(flat).sum())
    return {
        "count": flat.size, "zeros": int((finite == 0).sum()), "nans": nans, "infs": flat.size - finite.size - nans,
        "neg_infs": int(np.isneginf(flat).sum()),
    }  # fmt: skip


def _of_finite(finite: np.ndarray) -> dict[str, float]:
    names = (*stats.NUMBERS, *stats.QUANTILES)
    if not finite.size:
        return dict.fromkeys(names, math.nan)
    low, high = float(finite.min()), float(finite.max())
    most = max(abs(low), abs(high))
    unit = most or 1.0  # numbers are measured in this, so that no sum or square overflows or vanishes
    scaled = finite / unit
    middle = float(scaled.mean())
    spread = 0.0 if low == high else float(np.sqrt(np.mean((scaled - middle) ** 2)))
    found = {
        "mean": min(max(unit * middle, low), high), "std": unit * spread, "min": low, "max": high, "abs_max": most,
        "abs_mean": unit * float(np.abs(scaled).mean()), "norm": unit * float(np.sqrt(np.sum(scaled**2))),
    }  # fmt: skip
    levels = np.quantile(finite, list(stats.QUANTILES.values()))
    return {**found, **dict(zip(stats.QUANTILES, map(float, levels), strict=True))}


def mean_std(values: np.ndarray) -> tuple[float, float, float, bool]:
    """Mean and spread of the finite numbers, the share of NaN, and whether some are infinite: what colours show."""
    flat = _flat(values)
    total = float(flat.sum()) if flat.size else 0.0
    if math.isfinite(total):  # all are: adding them up finds out, and takes one pass
        return (total / flat.size, float(flat.std()), 0.0, False) if flat.size else (math.nan, math.nan, 0.0, False)
    finite = flat[np.isfinite(flat)]
    nans = int(np.isnan(flat).sum())
    is_infinite = flat.size - finite.size > nans
    known = _of_finite(finite)
    return known["mean"], known["std"], nans / flat.size, is_infinite


def histogram(values: np.ndarray) -> tuple[int, list[int]]:
    """Counts of the finite numbers in the bins of `schema.stats`, from the first that is not empty to the last."""
    flat = _flat(values)
    finite = flat[np.isfinite(flat)]
    ranks = np.searchsorted(_POSITIVE, np.abs(finite), side="right")
    bins = np.where(finite > 0, stats.ZERO_BIN + 1 + ranks, stats.ZERO_BIN - 1 - ranks)
    bins[finite == 0] = stats.ZERO_BIN
    counts = np.bincount(bins, minlength=stats.HISTOGRAM_BINS)
    filled = np.flatnonzero(counts)
    if not filled.size:
        return 0, []
    first, last = int(filled[0]), int(filled[-1])
    return first, counts[first : last + 1].tolist()


def table(values: np.ndarray) -> pa.Table:
    """One row: every statistic, and the histogram, as a recording tells them of a tensor at a step."""
    first, counts = histogram(values)
    columns: dict[str, Any] = {name: [float(value)] for name, value in measured(values).items()}
    columns["hist_first"] = pa.array([first], pa.int32())
    columns["hist"] = pa.array([counts], pa.list_(pa.uint64()))
    return pa.table(columns)
