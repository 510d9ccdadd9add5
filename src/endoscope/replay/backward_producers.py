"""Which operations of a trace sent NaN or infinity upwards in the backward pass although nothing wrong arrived.

gradients that are wrong ─► operations that read these tensors, from the end of the trace on
                         ─► their backward pass, once more, on the gradients that arrived: does it make it?
"""

from __future__ import annotations

import torch
from torch import Tensor

from endoscope.capture.views.op import Op
from endoscope.replay.again import gradients_through
from endoscope.replay.producers import MOST_ORIGINS, operands, source_text
from endoscope.replay.sample_maps import SampleMaps
from endoscope.replay.wrong_values import WrongValues, is_measurable, wrong_elements
from endoscope.schema.origin import NONFINITE, Origin


def backward_origins(values: WrongValues, maps: SampleMaps) -> list[Origin]:
    """The producers, the one nearest to the loss first; none where the trace keeps no gradients."""
    if values.recorder.gradients is None:
        return []
    gradients = _Gradients(values)
    wrong = gradients.wrong()
    if not wrong:
        return []
    found, doubtful = [], []
    for node in sorted({child for slot in wrong for child in _readers(values, slot)}, reverse=True):
        arriving = [gradients[slot] for slot in values.slots(node)]
        if all(gradient is None for gradient in arriving):
            continue
        op = values.trace.op_at(node)
        clean = [None if g is None else torch.nan_to_num(g, 0.0, 0.0, 0.0) for g in arriving]
        nothing_wrong_came = not any(gradients.is_wrong(slot) for slot in values.slots(node))
        try:
            made = [(slot, sent) for slot, sent in gradients_through(op, clean) if bool(wrong_elements(sent).any())]
        except Exception:  # what cannot be called again: it is still known that nothing wrong came to it
            made = []
            if nothing_wrong_came:
                slot = next(slot for slot in values.reads(node) if slot in wrong)
                doubtful.append(_origin(op, values, maps, slot, wrong[slot], exact=False))
        if made:
            found.append(_origin(op, values, maps, *made[0], exact=True))
        if len(found) == MOST_ORIGINS:
            break
    return found or doubtful


class _Gradients:
    """The gradients that arrived at the tensors of a trace, and which of them are wrong."""

    def __init__(self, values: WrongValues) -> None:
        self._values = values

    def __getitem__(self, slot: int) -> Tensor | None:
        found = self._values.trace.store.gradient(slot)
        return found.detach() if found is not None and is_measurable(found) else None

    def is_wrong(self, slot: int) -> bool:
        gradient = self[slot]
        return gradient is not None and bool(wrong_elements(gradient).any())

    def wrong(self) -> dict[int, Tensor]:
        slots = [slot for node in range(len(self._values.recorder.nodes)) for slot in self._values.slots(node)]
        return {slot: gradient for slot in slots if self.is_wrong(slot) and (gradient := self[slot]) is not None}


def _readers(values: WrongValues, slot: int) -> list[int]:
    node, children = values.recorder.slot_node[slot], values.trace.children
    return [child for child in children[node] if child not in values.recorder.sources]


def _origin(op: Op, values: WrongValues, maps: SampleMaps, slot: int, sent: Tensor, exact: bool) -> Origin:
    marks = wrong_elements(sent)
    samples = maps.of(slot, marks)
    index = tuple(int(i) for i in marks.nonzero()[0])
    return Origin(
        sort=NONFINITE, of="gradient", node=op.label, operation=op.type,
        module=op.modules[-1] if op.modules else "", source=source_text(op), samples=samples,
        elements=int(marks.sum()), value=float(sent[index].real),
        inputs=operands(op, values, maps, samples, index, tuple(sent.shape)), exact=exact,
    )  # fmt: skip
