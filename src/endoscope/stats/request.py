"""What can be asked of `measure`, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


class Request(NamedTuple):
    """One tensor to measure."""

    tensor: torch.Tensor
    batch_dim: int | None
    samples: bool = True  # also each sample on its own
    units: bool = True  # also each unit over the batch
    minus: torch.Tensor | None = None  # of the same shape and type: `tensor - minus` is measured
    same_as: int | None = None  # an earlier request that asks for the same: its answer is given once more


@dataclass(frozen=True, slots=True)
class Measured:
    """The statistics of n requests, column by column.

    Lists of different lengths stand behind each other in one array; entry i is ``array[offsets[i]:offsets[i + 1]]``.
    """

    whole: dict[str, NDArray[np.generic]]  # schema.stats.WHOLE -> n numbers: int64 counts, float64 others
    hist_first: NDArray[np.int16]  # the first bin of each histogram that is not empty
    hist_values: NDArray[np.uint32]  # counts from there to the last bin that is not empty
    hist_offsets: NDArray[np.int32]
    sample_request: NDArray[np.int32]  # which request a row of `samples` belongs to
    sample_index: NDArray[np.int32]  # which sample of it
    samples: dict[str, NDArray[np.float32]]  # schema.stats.SAMPLE -> numbers
    unit_shape: list[tuple[int, ...]]  # () where there are no units
    unit_offsets: NDArray[np.int32]
    units: dict[str, NDArray[np.float32]]  # schema.stats.UNIT -> numbers
    gaps: list[tuple[int, str]]  # request, and why it could not be measured
    notes: list[tuple[int, str]] = field(default_factory=list)  # request, and what was left out of it
