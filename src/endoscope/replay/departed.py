"""Values that left torch for Python, when other values take their place.

What Python did with a number is not in a trace. As long as the number stays what it was, Python did the same.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from endoscope.capture.data.nodes import Departure, slots_of
from endoscope.capture.views.result import Trace
from endoscope.errors import CannotReplay
from endoscope.replay.compare import same

#: How Python asked, and the same question again.
_QUESTIONS: dict[str, Any] = {
    "__bool__": bool,
    "is_nonzero": bool,
    "item": Tensor.item,
    "__int__": int,
    "__float__": float,
    "__index__": operator.index,
}


class Values(Protocol):
    """What a rerun knows of values."""

    def tensor(self, slot: int) -> Tensor: ...
    def original(self, slot: int) -> Tensor: ...


class Departures:
    """Those of one trace, taken in order while the nodes are walked."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._waiting = sorted(trace.recorder.departures, key=lambda departure: departure.node)
        self._next = 0

    def check(self, node: int, changed: Mapping[int, Tensor], values: Values, instead: str) -> None:
        """All that left before this node must have left the same with the changed values."""
        while self._next < len(self._waiting) and self._waiting[self._next].node <= node:
            departure = self._waiting[self._next]
            self._next += 1
            slots = [slot for read in departure.reads for slot in slots_of(read) if slot in changed]
            if slots and not all(same(values.original(slot), values.tensor(slot)) for slot in slots):
                self._compare(departure, values, instead)

    def _compare(self, departure: Departure, values: Values, instead: str) -> None:
        now = _asked_again(departure, values)
        if now is not None and _equal(now, departure.value):
            return
        before = "" if departure.value is None or now is None else f": {now} instead of {departure.value}"
        ops = {self._trace.recorder.slot_node[slot]: None for read in departure.reads for slot in slots_of(read)}
        labels = ", ".join(self._trace.op_at(node).label for node in ops)
        place = departure.position.line
        raise CannotReplay(
            f"The edit changes the value of {labels} that Python reads through {departure.name}(){before} ({place}). "
            f"What the model does with it is not in the trace. {instead}"
        )


def _asked_again(departure: Departure, values: Values) -> Any:
    """What Python gets now; None if the question cannot be repeated."""
    if not all(isinstance(read, int) for read in departure.reads):
        return None
    tensors = [values.tensor(read) for read in departure.reads if isinstance(read, int)]
    if departure.name == "equal" and len(tensors) == 2:
        return torch.equal(*tensors)
    if departure.name in _QUESTIONS and len(tensors) == 1 and tensors[0].numel() == 1:
        return _QUESTIONS[departure.name](tensors[0])
    return None


def _equal(now: Any, before: Any) -> bool:
    if type(now) is not type(before):
        return False
    return bool(now == before or (now != now and before != before))
