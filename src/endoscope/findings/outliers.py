"""Numbers far from what is usual for them: for each tensor by itself, over samples and over steps.

Compared are logarithms, so "far" is a factor. What is usual drifts while a network learns: a sample is compared with
the median of its batch, a step with the median of the steps around it.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

DEVIATIONS = 4.0  # robust standard deviations from what is usual
LEAST_FACTOR = 1.05  # and at least by so much: tiny wobbles of something constant are no news
_NEIGHBOURS = 15  # steps that a step is compared with
_PARTS = 100  # they are so many parts of the run apart
_TINY = 1e-3  # of the usual size; what is smaller is as good as zero
_MOST_FOR_SPREAD = 5_000  # numbers of a tensor
_SERIES_AT_ONCE = 256
_SMALL_BATCH = 8  # its median is no more certain than its samples


def over_samples(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bool[tensors, steps, samples]: far above and far below what is usual; `values` are sizes, NaN where none is."""
    logs, usable = _logs(values)
    centre = middle(logs)
    if logs.shape[2] < _SMALL_BATCH:
        centre = around(centre)
    return _far(logs - centre[:, :, None], usable[:, None, None])


def over_steps(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bool[tensors, steps]: the same for whole tensors."""
    logs, usable = _logs(values)
    return _far(logs - around(logs), usable[:, None])


def high(values: np.ndarray, part: float = 0.95) -> np.ndarray:
    """Which numbers of one series are above this part of all, once its drift is taken out."""
    with np.errstate(all="ignore"):
        broken = np.isnan(values) | (values == np.inf)
        residual = values - around(np.where(broken, np.nan, values)[None])[0]
        known = residual[np.isfinite(residual)]
        if not len(known) or np.ptp(known) == 0:
            return np.asarray(broken)
        limit = np.quantile(known, part)
        return np.asarray((residual > max(limit, np.median(known))) | broken)


def around(values: np.ndarray) -> np.ndarray:
    """For each step [series, steps] the median of steps around it, some of them far away, without the step itself."""
    steps = values.shape[1]
    stride = max(1, steps // _PARTS)
    half = min(_NEIGHBOURS // 2, max((steps - 1) // (2 * stride), 0)) * stride
    if half == 0:
        return np.array(values)
    places = np.delete(np.arange(0, 2 * half + 1, stride), half // stride)
    found = np.empty_like(values)
    for start in range(0, len(values), _SERIES_AT_ONCE):
        part = slice(start, start + _SERIES_AT_ONCE)
        found[part] = middle(sliding_window_view(_continued(values[part], half), 2 * half + 1, axis=1)[:, :, places])
    return found


def _continued(values: np.ndarray, half: int) -> np.ndarray:
    """With so many steps more at both ends, turned round the level there: a slope goes on as it was."""
    first, last = (middle(part)[:, None] for part in (values[:, :3], values[:, -3:]))
    before, after = values[:, 1 : half + 1][:, ::-1], values[:, -half - 1 : -1][:, ::-1]
    return np.concatenate([2 * first - before, values, 2 * last - after], axis=1)


def middle(values: np.ndarray) -> np.ndarray:
    """Along the last dimension; NaN is left out."""
    if not np.isnan(values).any():
        return np.asarray(np.median(values, axis=-1))
    ordered = np.sort(values, axis=-1)  # NaN comes last
    count = np.count_nonzero(~np.isnan(values), axis=-1)
    low, up = np.maximum((count - 1) // 2, 0), np.minimum(count // 2, values.shape[-1] - 1)
    ends = [np.take_along_axis(ordered, place[..., None], axis=-1)[..., 0] for place in (low, up)]
    return np.asarray((ends[0] + ends[1]) / 2)


def _logs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms, with a floor at a small part of what is usual; and which tensors are more than zeros."""
    flat = values.reshape(len(values), -1)
    with np.errstate(all="ignore"):
        some = _some(flat)
        sizes = middle(np.where(some > 0, some, np.nan))
        usable = np.isfinite(sizes) & (sizes > 0)
        sizes = np.where(usable, sizes, 1.0).reshape(-1, *[1] * (values.ndim - 1))
        logs = np.log(np.maximum(values / sizes, 0) + _TINY).astype(np.float32)
    return np.where(np.isinf(logs), np.float32(np.nan), logs), usable


def _far(residual: np.ndarray, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    spread = 1.4826 * middle(np.abs(_some(residual.reshape(len(residual), -1))))
    limit = np.maximum(DEVIATIONS * spread, np.log(LEAST_FACTOR)).reshape(-1, *[1] * (residual.ndim - 1))
    with np.errstate(invalid="ignore"):
        return (residual > limit) & usable, (residual < -limit) & usable


def _some(flat: np.ndarray) -> np.ndarray:
    """Enough columns to tell a spread; an odd step, so that not always the same samples of a batch are taken."""
    return np.asarray(flat[:, :: (flat.shape[1] // _MOST_FOR_SPREAD) | 1])
