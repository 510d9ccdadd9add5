"""What can be asked of `measure`, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Request:
    """One tensor to measure."""

    tensor: torch.Tensor
    batch_dim: int | None
    samples: bool = True  # also each sample on its own
    units: bool = True  # also each unit over the batch


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


def joined(a: Measured, b: Measured) -> Measured:
    """The statistics of the requests of `a` and then of `b`."""
    import numpy as np

    rows = len(a.unit_shape)

    def columns(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {name: np.concatenate((first[name], second[name])) for name in first}

    def offsets(first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.concatenate((first, second[1:] + first[-1]))

    return Measured(
        whole=columns(a.whole, b.whole),
        hist_first=np.concatenate((a.hist_first, b.hist_first)),
        hist_values=np.concatenate((a.hist_values, b.hist_values)),
        hist_offsets=offsets(a.hist_offsets, b.hist_offsets),
        sample_request=np.concatenate((a.sample_request, b.sample_request + np.int32(rows))),
        sample_index=np.concatenate((a.sample_index, b.sample_index)),
        samples=columns(a.samples, b.samples),
        unit_shape=[*a.unit_shape, *b.unit_shape],
        unit_offsets=offsets(a.unit_offsets, b.unit_offsets),
        units=columns(a.units, b.units),
        gaps=[*a.gaps, *((rows + request, reason) for request, reason in b.gaps)],
        notes=[*a.notes, *((rows + request, note) for request, note in b.notes)],
    )
