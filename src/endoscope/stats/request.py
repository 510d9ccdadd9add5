"""What can be asked of `measure`, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

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


def chosen(measured: Measured, requests: Sequence[int]) -> Measured:
    """The statistics of some requests, in the order given; a request may be given several times."""
    import numpy as np

    rows = np.array(requests, np.int64)
    counts = np.bincount(measured.sample_request, minlength=len(measured.unit_shape))
    sample_offsets = np.concatenate(([0], np.cumsum(counts)))

    def entries(offsets: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Where the entries of the chosen requests are in a list of lists, and where each begins afterwards."""
        starts, lengths = offsets[rows].astype(np.int64), np.diff(offsets)[rows].astype(np.int64)
        after = np.concatenate(([0], np.cumsum(lengths)))
        return np.repeat(starts - after[:-1], lengths) + np.arange(after[-1]), after.astype(np.int32)

    def numbered(texts: list[tuple[int, str]]) -> list[tuple[int, str]]:
        return [(place, text) for place, row in enumerate(requests) for request, text in texts if request == row]

    bins, hist_offsets = entries(measured.hist_offsets)
    samples, sample_starts = entries(sample_offsets)
    units, unit_offsets = entries(measured.unit_offsets)
    return Measured(
        whole={name: column[rows] for name, column in measured.whole.items()},
        hist_first=measured.hist_first[rows],
        hist_values=measured.hist_values[bins],
        hist_offsets=hist_offsets,
        sample_request=np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(sample_starts)),
        sample_index=measured.sample_index[samples],
        samples={name: column[samples] for name, column in measured.samples.items()},
        unit_shape=[measured.unit_shape[row] for row in requests],
        unit_offsets=unit_offsets,
        units={name: column[units] for name, column in measured.units.items()},
        gaps=numbered(measured.gaps),
        notes=numbered(measured.notes),
    )
