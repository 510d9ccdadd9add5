"""Where a sample of a traced batch begins to differ from the others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from endoscope.analysis.outlying import FEATURES, FEWEST, UNUSUAL, beginnings, scores
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument
from endoscope.replay.producers import source_text
from endoscope.replay.sample_maps import SampleMaps
from endoscope.replay.wrong_values import WrongValues, is_measurable
from endoscope.schema.ops import Kind
from endoscope.schema.origin import OUTLIER, Origin

_GAP = 2  # usual operations between two unusual ones


class Outliers:
    """Scores of all samples in all tensors of a trace: values, or gradients."""

    def __init__(
        self, trace: Trace, gradients: bool, batch_dim: int = 0, size: int = 0, entered: Iterable[int] = ()
    ) -> None:
        """`size` of the batch and `entered`, the slots of what went into a model, beside what the trace knows."""
        self.trace = trace
        self.gradients = gradients
        self._values = WrongValues(trace)
        self._maps = SampleMaps(trace, batch_dim, size, entered)
        if self._maps.size < FEWEST:
            raise BadArgument(
                f"The batch of this trace has {self._maps.size} samples. What is unusual about one shows only beside "
                f"others: trace a batch of at least {FEWEST}, better of 16 or more."
            )
        self.scores = self._scores()  # node -> one number for each sample

    def origins(self, start: int | None, sample: int | None) -> list[Origin]:
        """Where a sample begins to be unusual, above one node or anywhere."""
        if not self.scores:
            return []
        if sample is None:
            sample = self._worst(start)
        elif not 0 <= sample < self._maps.size:
            raise BadArgument(f"sample={sample}: the batch has {self._maps.size} samples, 0 to {self._maps.size - 1}.")
        unusual = {node for node, found in self.scores.items() if found[sample] > UNUSUAL}
        parents = self.trace.graph_data.parents
        sources = self.trace.children if self.gradients else parents
        starts = [start] if start is not None else [n for n in unusual if not set(self._readers(n)) & unusual]
        found = beginnings(starts, lambda node: sources[node], unusual.__contains__, _GAP)
        found.sort(key=lambda one: -one.node if self.gradients else one.node)
        return [self._origin(one.node, one.path, sample) for one in found]

    def _readers(self, node: int) -> list[int]:
        return list((self.trace.graph_data.parents if self.gradients else self.trace.children)[node])

    def _worst(self, start: int | None) -> int:
        """The most unusual sample: at the node that is asked about, or anywhere."""
        found = self.scores.get(start) if start is not None else None
        if found is None:
            found = np.stack(list(self.scores.values())).max(axis=0)
        return int(np.argmax(found))

    def _origin(self, node: int, path: tuple[int, ...], sample: int) -> Origin:
        op = self.trace.op_at(node)
        is_source = op.kind is Kind.INPUT
        return Origin(
            sort=OUTLIER, of="gradient" if self.gradients else "value", node=op.label,
            operation=str(op.kind) if is_source else op.type, module=op.modules[-1] if op.modules else "",
            source=source_text(op), samples=(sample,), value=float(self.scores[node][sample]),
            path=tuple(self.trace.labels[other][0] for other in path),
        )  # fmt: skip

    # ---- numbers ---------------------------------------------------------------------------------

    def _scores(self) -> dict[int, np.ndarray]:
        nodes, found = [], []
        for node in range(len(self.trace.recorder.nodes)):
            source = self.trace.recorder.sources.get(node)
            if source is not None and source.kind is not Kind.INPUT:
                continue
            for slot in self._values.slots(node)[:1]:
                statistics = self._statistics(slot)
                if statistics is not None:
                    nodes.append(node)
                    found.append(statistics)
        if not found:
            return {}
        table = np.stack(found, axis=1)
        all_scores = scores(dict(zip(FEATURES, table, strict=True)))
        return dict(zip(nodes, all_scores, strict=True))

    def _statistics(self, slot: int) -> np.ndarray | None:
        """FEATURES of every sample; None if the tensor cannot be taken apart into samples."""
        tensor = self.trace.store.gradient(slot) if self.gradients else self._values.tensor(slot)
        numbers = self._maps[slot]
        if tensor is None or numbers is None or not is_measurable(tensor) or tensor.is_complex() or not tensor.numel():
            return None
        rows = _by_sample(tensor.detach(), numbers, self._maps.size)
        if rows is None:
            return None
        rows = rows.double()
        low, high = rows.min(1).values, rows.max(1).values
        found = [rows.abs().max(1).values, rows.norm(dim=1), rows.std(1, correction=0), rows.mean(1), low, high]
        return torch.stack(found).cpu().numpy()


def _by_sample(tensor: Tensor, numbers: Tensor, size: int) -> Tensor | None:
    """[samples, elements]; None if the samples do not have equally many."""
    varying = [dim for dim in range(numbers.dim()) if numbers.shape[dim] > 1]
    if len(varying) != 1:
        return None
    along = numbers.flatten()
    order = torch.argsort(along, stable=True)
    if not torch.equal(along[order], torch.arange(size, dtype=along.dtype).repeat_interleave(len(along) // size)):
        return None
    return tensor.movedim(varying[0], 0)[order].reshape(size, -1)
