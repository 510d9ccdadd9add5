"""Where the samples of a batch lie in a tensor: told by the user, or by the size of the model's input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from endoscope.recording.hearing import StepRecorder
from endoscope.recording.structure import size_of
from endoscope.recording.watch import Watch


class Batches:
    """The number of samples in every call of a model; calls may still be added."""

    def __init__(self, watches: Iterable[Watch], recorder: StepRecorder) -> None:
        self._recorder = recorder
        self._dims = {id(watch.module): watch.batch_dim for watch in watches}
        self._dim = next(iter(self._dims.values()), 0)
        self._sizes: dict[int, int] = {}  # call of a model -> samples in it
        self._looked_at = 0
        self._first = 0

    @property
    def first(self) -> int:
        """Samples in the first call of a model; 0 if there was none."""
        self._look()
        return self._first

    def sizes(self) -> tuple[Any, ...]:
        """Everything that `dim_of` goes by, to be compared with that of other steps."""
        self._look()
        return (self._dim, self._first, tuple(self._sizes.items()))

    def begin_like(self, sizes: tuple[Any, ...]) -> bool:
        """Whether the calls so far have as many samples as the first ones of a step with these `sizes`."""
        if self._looked_at != len(self._recorder.calls.entries):
            self._look()
        dim, _, known = sizes
        return bool(self._dim == dim and tuple(self._sizes.items()) == known[: len(self._sizes)])

    def dim_of(self, shape: Sequence[int], said: int | None, call: int) -> int | None:
        """The dimension along which the samples lie, if there is one; `said` is what the user says, -1 for none."""
        if said is not None:
            return said if 0 <= said < len(shape) else None
        dim, size = self._dim, self._size_around(call)
        return dim if dim is not None and size and len(shape) > dim and shape[dim] == size else None

    def _size_around(self, call: int) -> int:
        self._look()
        entries = self._recorder.calls.entries
        while call >= 0:
            if call in self._sizes:
                return self._sizes[call]
            call = entries[call].parent
        return self._first

    def _look(self) -> None:
        """At the calls that began since."""
        entries = self._recorder.calls.entries
        for number in range(self._looked_at, len(entries)):
            call = entries[number]
            if call.root:
                size = self._sizes[number] = self._of_inputs(call.entered, self._dims.get(id(call.module), 0))
                self._first = self._first or size
        self._looked_at = len(entries)

    def _of_inputs(self, slots: list[int], dim: int | None) -> int:
        for slot in slots:
            tensor = self._recorder.kept.get(slot)
            if dim is not None and tensor is not None and tensor.dim() > dim:
                return max(size_of(tensor)[dim], 0)
        return 0
