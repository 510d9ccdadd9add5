"""What the units of a tensor are: positions of a sample, or features."""

from __future__ import annotations

import math
from collections.abc import Sequence

from endoscope.schema.stats import UNIT_CAP


def unit_axes(shape: Sequence[int], batch: int | None) -> tuple[int, ...]:
    """The axes that number the units: all but the batch, or the feature axis alone if those are too many."""
    if batch is None or len(shape) < 2 or 0 in shape:
        return ()
    others = tuple(axis for axis in range(len(shape)) if axis != batch)
    if math.prod(shape[axis] for axis in others) <= UNIT_CAP:
        return others
    feature = 1 if len(shape) >= 4 and batch == 0 else others[-1]
    return (feature,) if shape[feature] <= UNIT_CAP else ()
