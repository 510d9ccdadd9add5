"""Which sample of a step stands out so much that it is worth finding out where that begins.

It is asked of every recorded step, so it is a few sums over what is measured already. Whether the sample is really
unusual is decided later, by all that is known about it (analysis/outlying.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from endoscope.analysis.outlying import FEWEST

if TYPE_CHECKING:
    from endoscope.recording.output.measuring import Package

LOUD = 5.0  # times as large as the others are on average
QUIET = 1e-3  # the same, of samples that are nearly gone


class Loud(NamedTuple):
    """A sample that is unlike the others, and the first recorded node in which it is."""

    node: str
    sample: int | None  # None: samples and something else share a dimension there


def loudest(package: Package, batch: int) -> Loud | None:
    """The sample that stands out first, in order of computation; None if none does."""
    measured = package.measured
    request, index = measured.sample_request, measured.sample_index
    if batch < FEWEST or not len(request):
        return None
    size = np.abs(measured.samples["abs_max"].astype(np.float64))
    starts = np.flatnonzero(np.diff(request, prepend=-1))
    counts = np.diff(np.append(starts, len(request)))
    total = np.add.reduceat(size, starts)
    most, least = np.maximum.reduceat(size, starts), np.minimum.reduceat(size, starts)
    with np.errstate(all="ignore"):
        is_loud = most > LOUD * (total - most) / (counts - 1)
        is_quiet = least < QUIET * (total - least) / (counts - 1)
    stands_out = (counts % batch == 0) & np.isfinite(total) & (is_loud | is_quiet)
    for place in np.flatnonzero(stands_out).tolist():
        key = package.keys[int(request[starts[place]])]
        if key.of != "value" or key.kind == "loss" or not key.dtype.startswith(("float", "bfloat")):
            continue
        if counts[place] != batch:
            return Loud(key.node, None)
        part = size[starts[place] : starts[place] + counts[place]]
        found = int(np.argmax(part) if is_loud[place] else np.argmin(part))
        return Loud(key.node, int(index[starts[place] + found]))
    return None
