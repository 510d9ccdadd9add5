"""Memory for copies of parameters, which later steps use again: new pages of memory cost more than copying."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import torch
from torch import Tensor

from endoscope.capture.record.parts import part_of

_FORM = attrgetter("shape", "dtype", "device")


class Room:
    """Memory of the run for copies of some parameters."""

    def __init__(self, tensors: Sequence[Tensor], positions: Sequence[int]) -> None:
        learn = [p for p in positions if tensors[p].layout is torch.strided]
        self.positions = learn
        self._tensors = [tensors[position] for position in learn]
        self.originals = list(map(part_of, self._tensors))
        self.copies = [torch.empty_like(original, requires_grad=False) for original in self.originals]
        self._forms = list(map(_FORM, self.copies))

    def fits(self) -> bool:
        """Whether the parameters still are what they were: `p.data = …` may have changed them."""
        self.originals = list(map(part_of, self._tensors))  # a distributed one may have got another part
        return list(map(_FORM, self.originals)) == self._forms
