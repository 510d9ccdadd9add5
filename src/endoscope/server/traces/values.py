"""Values of a trace as numbers: what is sent, and what is counted and measured about them.

Tensors come as whatever the trace hands out, of torch or of numpy; nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.errors import LookupFailed, ValueNotKept
from endoscope.schema import stats

MOST_SENT = 1 << 22  # numbers of one tensor that travel to the page
_PART = 1 << 22  # numbers that are looked at together
_NUMBERS = (*stats.NUMBERS, *stats.QUANTILES)
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
    try:
        return _of_torch(tensor.detach()) if hasattr(tensor, "detach") else np.asarray(tensor)
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        raise ValueNotKept(f"This value cannot be shown as a table of numbers: {error}") from error


def _of_torch(tensor: Any) -> np.ndarray:
    if tensor.is_meta:
        raise ValueError("it is on the device meta, which has shapes and no numbers.")
    if tensor.is_nested:
        raise ValueError("it is a nested tensor, whose parts may have different shapes.")
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    plain = (tensor if str(tensor.layout) == "torch.strided" else tensor.to_dense()).cpu()
    try:
        return np.asarray(plain.resolve_conj().resolve_neg().numpy())
    except TypeError:  # a type that numpy does not have: bfloat16, float8
        return np.asarray(plain.float().numpy())


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
    found = dict.fromkeys(stats.COUNTS, 0.0) | {"count": flat.size}
    low, high = math.inf, -math.inf
    for part in _parts(flat):
        finite = part[np.isfinite(part)]
        nans = int(np.isnan(part).sum())
        found["zeros"] += int((finite == 0).sum())
        found["nans"] += nans
        found["infs"] += part.size - finite.size - nans
        found["neg_infs"] += int(np.isneginf(part).sum())
        low, high = min(low, finite.min(initial=math.inf)), max(high, finite.max(initial=-math.inf))
    count = flat.size - int(found["nans"] + found["infs"])
    return found | (_of_finite(flat, count, float(low), float(high)) if count else dict.fromkeys(_NUMBERS, math.nan))


def _of_finite(flat: np.ndarray, count: int, low: float, high: float) -> dict[str, float]:
    """Statistics of the `count` finite numbers between these ends."""
    most = max(abs(low), abs(high))
    unit = most or 1.0  # numbers are measured in this, so that no sum or square overflows or vanishes
    sums = np.zeros(3)
    for part in _scaled(flat, unit):
        sums += part.sum(), np.abs(part).sum(), np.square(part).sum()
    middle = sums[0] / count
    around = sum(float(np.square(part - middle).sum()) for part in _scaled(flat, unit))
    finite = flat if count == flat.size else flat[np.isfinite(flat)]
    # numpy interpolates in the type of the numbers: truth values cannot, and whole numbers overflow.
    is_exact = count > _PART and finite.dtype.kind == "f"
    levels = np.quantile(finite if is_exact else finite.astype(np.float64), list(stats.QUANTILES.values()))
    return {
        "mean": min(max(unit * float(middle), low), high),
        "std": 0.0 if low == high else unit * math.sqrt(around / count),
        "abs_mean": unit * float(sums[1]) / count, "min": low, "max": high, "abs_max": most,
        "norm": unit * math.sqrt(sums[2]), **dict(zip(stats.QUANTILES, map(float, levels), strict=True)),
    }  # fmt: skip


def _flat(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(values) if np.iscomplexobj(values) else values).reshape(-1)


def _parts(flat: np.ndarray) -> Iterator[np.ndarray]:
    """The numbers with double precision, some at a time: a second copy of a large tensor may not fit into memory."""
    for start in range(0, flat.size, _PART):
        yield flat[start : start + _PART].astype(np.float64)


def _scaled(flat: np.ndarray, unit: float) -> Iterator[np.ndarray]:
    for part in _parts(flat):
        yield part[np.isfinite(part)] / unit


class Colour(NamedTuple):
    """What colours show of a tensor: of its finite numbers, and how many are none."""

    mean: float
    std: float
    nan_share: float
    has_infinite: bool


def colour_of(values: np.ndarray) -> Colour:
    flat = _flat(values)
    if 0 < flat.size <= _PART:
        part = flat.astype(np.float64)
        total = float(part.sum())
        if math.isfinite(total):  # adding all of them up finds out that all are finite
            return Colour(total / flat.size, float(part.std()), 0.0, False)
    found = measured(flat)
    return Colour(found["mean"], found["std"], found["nans"] / max(1, flat.size), found["infs"] > 0)


def histogram(values: np.ndarray) -> tuple[int, list[int]]:
    """Counts of the finite numbers in the bins of `schema.stats`, from the first that is not empty to the last."""
    counts = np.zeros(stats.HISTOGRAM_BINS, np.int64)
    for part in _parts(_flat(values)):
        finite = part[np.isfinite(part)]
        ranks = np.searchsorted(_POSITIVE, np.abs(finite), side="right")
        bins = np.where(finite > 0, stats.ZERO_BIN + 1 + ranks, stats.ZERO_BIN - 1 - ranks)
        bins[finite == 0] = stats.ZERO_BIN
        counts += np.bincount(bins, minlength=stats.HISTOGRAM_BINS)
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
