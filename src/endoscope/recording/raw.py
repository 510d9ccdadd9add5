"""Raw values of chosen samples, within limits per tensor, step and trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from endoscope.errors import BadArgument
from endoscope.recording.arena import Arena
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


class RawCollector:
    """Gathers the raw values of one step and says what did not fit."""

    def __init__(self, keep: Keep, spent: int, samples: Sequence[int], arena: Arena) -> None:
        self._keep = keep
        self.arena = arena
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
        keep = self._keep
        if not self.wants:
            return
        if batch_dim is None:
            limit, samples, size = keep.parameter_bytes, None, tensor.numel() * tensor.element_size()
        else:
            batch = tensor.shape[batch_dim]
            samples = self._samples_below(batch)
            per_sample = tensor.numel() // max(batch, 1) * tensor.element_size()
            limit, size = keep.tensor_bytes, per_sample * len(samples)
            if not samples:
                return
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

    def _copied(self, tensor: Tensor) -> np.ndarray[Any, Any]:
        """Outside torch; types that numpy lacks travel as whole numbers of their size."""
        memory = self.arena.piece(tensor.numel() * tensor.element_size())
        if tensor.dtype is torch.float32 and tensor.is_cpu:  # nearly always
            values = memory.view(np.float32).reshape(tensor.shape)
            if copy_tensors([tensor], [torch.from_numpy(values)]):  # past the cache: only the writer will read it
                raise ValueError("its memory was given back")
            return values
        copy = torch.from_numpy(memory).view(tensor.dtype).view(tensor.shape)
        copy.copy_(tensor)
        if tensor.dtype is torch.bfloat16:
            copy = copy.view(torch.uint16)
        elif tensor.dtype.itemsize == 1 and tensor.dtype.is_floating_point:
            copy = copy.view(torch.uint8)
        return memory.view(copy.numpy().dtype).reshape(tuple(tensor.shape))

    def move(self, rows: Sequence[int]) -> None:
        """Row n of what was gathered so far is told again, once for each place of n in `rows`."""
        places: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            places.setdefault(row, []).append(place)
        self.found = [(place, *rest) for row, *rest in self.found for place in places.get(row, ())]  # type: ignore[misc]
        self.left_out = [(place, why) for row, why in self.left_out for place in places.get(row, ())]

    def _too_much(self, size: int, limit: int) -> str:
        if size > limit:
            return f"{size:,} bytes are above the limit of {limit:,} for one tensor"
        if self.bytes + size > self._keep.step_bytes:
            return f"the step's limit of {self._keep.step_bytes:,} raw bytes is reached"
        if self._spent + self.bytes + size > self._keep.trial_bytes:
            return f"the trial's limit of {self._keep.trial_bytes:,} raw bytes is reached"
        return ""


def _chosen(tensor: Tensor, samples: list[int]) -> Tensor:
    """Some samples, which come first; neighbours are not copied for that."""
    first, count = samples[0], len(samples)
    if samples == list(range(first, first + count)):
        return tensor[first : first + count]
    return tensor.index_select(0, torch.tensor(samples, device=tensor.device))
