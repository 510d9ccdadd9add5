"""Raw values of chosen samples: which samples, and how much of them.

    choose ─► samples of the step ─► RawCollector copies them ─► the writer thread writes them

The pages of fresh memory would cost as much as the copying; `heap.py` sees to it that they are used again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from endoscope.errors import BadArgument
from endoscope.stats import copy_tensors


@dataclass(frozen=True, slots=True)
class Keep:
    """How much is kept raw."""

    samples: int = 4  # of every recorded step
    tensor_bytes: int = 8 * 2**20  # largest piece of one tensor
    parameter_bytes: int = 64 * 2**10  # largest parameter, gradient or update of one that is kept whole
    step_bytes: int = 128 * 2**20
    trial_bytes: int = 8 * 2**30

    @classmethod
    def of(cls, value: Any) -> Keep:
        names = [field.name for field in fields(cls)]
        if isinstance(value, Keep):
            return value
        if isinstance(value, dict) and set(value) <= set(names):
            kept = cls(**value)
        elif isinstance(value, int) and not isinstance(value, bool):
            kept = cls(samples=value)
        else:
            raise BadArgument(
                f"keep={value!r} does not say how much to keep raw. Use a number of samples such as keep=5, 0 for "
                f"none, or a dict with some of {', '.join(names)}."
            )
        for name in names:
            number = getattr(kept, name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise BadArgument(f"keep: {name}={number!r} must be a whole number, 0 or more.")
        return kept


# ---- which samples -------------------------------------------------------------------------------


def choose(
    batch_size: int,
    count: int,
    *,
    categories: Sequence[Any] | None = None,
    worst: Iterable[int] = (),
    so_far: Mapping[Any, int] | None = None,
    seed: int = 0,
) -> tuple[int, ...]:
    """Choose at most `count` samples of a batch, in ascending order.

    Those in `worst` come first, in the order given. The rest is balanced over the categories (one for each sample of
    the batch): whichever category has the fewest is next. Categories that were chosen less often `so_far`, in earlier
    steps, come before others, and where that does not tell either, `seed` does; give it the number of the step. Of one
    category, and where there are none, the first samples of the batch are taken: neighbours are cheap to copy, and a
    batch that is never shuffled shows the same samples over time. No random generator is used or changed.
    """
    count = min(count, batch_size)
    if count <= 0:
        return ()
    inside = [int(sample) % batch_size for sample in worst if -batch_size <= sample < batch_size]
    chosen = list(dict.fromkeys(inside))[:count]
    taken = set(chosen)
    rest: Iterable[int] = (sample for sample in range(batch_size) if sample not in taken)
    if categories is not None:
        rest = _in_turns(_labels(categories, batch_size), chosen, list(rest), so_far or {}, seed)
    return tuple(sorted([*chosen, *islice(rest, count - len(chosen))]))


def _labels(categories: Sequence[Any], batch_size: int) -> list[Hashable]:
    listed = categories.tolist() if hasattr(categories, "tolist") else list(categories)
    if len(listed) != batch_size:
        raise BadArgument(
            f"categories has {len(listed)} entries, and the batch has {batch_size} samples. Give one category for each "
            "sample of the batch, in its order."
        )
    return [label if isinstance(label, Hashable) else repr(label) for label in listed]


def _in_turns(
    labels: list[Hashable], chosen: list[int], rest: list[int], so_far: Mapping[Any, int], seed: int
) -> list[int]:
    """The rest, so that whichever category was taken least often is next."""
    times = Counter(labels[sample] for sample in chosen)
    ranks: dict[int, tuple[int, int, bytes, int]] = {}
    for sample in rest:
        label = labels[sample]
        # Lots are drawn by name: the order must not depend on which category a batch happens to begin with.
        lot = hashlib.blake2b(f"{seed} {label!r}".encode(), digest_size=8).digest()
        ranks[sample] = times[label], so_far.get(label, 0), lot, sample
        times[label] += 1
    return sorted(rest, key=ranks.__getitem__)


# ---- how much of them ----------------------------------------------------------------------------


class RawCollector:
    """Gathers the raw values of one step and says what did not fit."""

    def __init__(self, keep: Keep, spent: int, samples: Sequence[int]) -> None:
        self._keep = keep
        self._spent = spent  # by earlier steps of the trial
        self._samples = list(samples)
        self._of_batch: dict[int, list[int]] = {}  # size of a batch -> the chosen samples that are in it
        self.bytes = 0
        self.found: list[tuple[int, np.ndarray[Any, Any], list[int] | None]] = []  # row, values, samples
        self.left_out: list[tuple[int, str]] = []  # row, why

    @property
    def wants(self) -> bool:
        return self._keep.samples > 0

    def add(self, row: int, tensor: Tensor, batch_dim: int | None, minus: Tensor | None = None) -> None:
        """Raw values of a row; with `minus`, those of `tensor - minus`."""
        try:
            self._add(row, tensor, batch_dim, minus)
        except Exception as error:  # one odd tensor must not cost the others
            self.left_out.append((row, f"{type(error).__name__}: {error}"))

    def _add(self, row: int, tensor: Tensor, batch_dim: int | None, minus: Tensor | None) -> None:
        if not self.wants:
            return
        limit, samples, size = self._keep.parameter_bytes, None, tensor.numel() * tensor.element_size()
        if batch_dim is not None:
            batch = tensor.shape[batch_dim]
            samples = self._samples_below(batch)
            if not samples:
                return
            limit, size = self._keep.tensor_bytes, size // max(batch, 1) * len(samples)
        reason = self._too_much(size, limit)
        if reason:
            self.left_out.append((row, reason))
            return
        if minus is not None:
            tensor = tensor - minus
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        if batch_dim is not None and samples is not None:
            tensor = _chosen(tensor.movedim(batch_dim, 0) if batch_dim else tensor, samples)
        self.found.append((row, self._copied(tensor), samples))
        self.bytes += size

    def _samples_below(self, batch: int) -> list[int]:
        found = self._of_batch.get(batch)
        if found is None:
            found = self._of_batch[batch] = [sample for sample in self._samples if sample < batch]
        return found

    def _too_much(self, size: int, limit: int) -> str:
        if size > limit:
            return f"{size:,} bytes are above the limit of {limit:,} for one tensor"
        if self.bytes + size > self._keep.step_bytes:
            return f"the step's limit of {self._keep.step_bytes:,} raw bytes is reached"
        if self._spent + self.bytes + size > self._keep.trial_bytes:
            return f"the trial's limit of {self._keep.trial_bytes:,} raw bytes is reached"
        return ""

    def _copied(self, tensor: Tensor) -> np.ndarray[Any, Any]:
        """Outside torch; types that numpy lacks travel as whole numbers of their size."""
        memory = np.empty(tensor.numel() * tensor.element_size(), np.uint8)
        if tensor.dtype is torch.float32 and tensor.is_cpu:  # nearly always
            values = memory.view(np.float32).reshape(tensor.shape)
            if copy_tensors([tensor], [torch.from_numpy(values)]):
                raise ValueError("its memory was freed")
            return values
        copy = torch.from_numpy(memory).view(tensor.dtype).view(tensor.shape)
        copy.copy_(tensor)
        if tensor.dtype is torch.bfloat16:
            copy = copy.view(torch.uint16)
        elif tensor.dtype.itemsize == 1 and tensor.dtype.is_floating_point:
            copy = copy.view(torch.uint8)
        return memory.view(copy.numpy().dtype).reshape(tuple(tensor.shape))


def _chosen(tensor: Tensor, samples: list[int]) -> Tensor:
    """Some samples, which come first; neighbours are not copied for that."""
    first, count = samples[0], len(samples)
    if samples == list(range(first, first + count)):
        return tensor[first : first + count]
    return tensor.index_select(0, torch.tensor(samples, device=tensor.device))
