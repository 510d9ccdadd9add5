"""All numbers of a recording that checks look at, read once.

values, parameters, updates, gradients[loss]   matrices of tensors × steps (rows.py)
losses                                         one curve for each loss (curves.py)
units                                          every unit over the batch, at some steps (units.py)
structure                                      who is made from whom (structure.py)
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from endoscope.errors import EndoscopeError
from endoscope.findings.curves import Curve, loss_curves, metric_curves
from endoscope.findings.functions import LOSSES_OF_NUMBERS, MADE_IN_PLACE
from endoscope.findings.rows import Rows, Tensor
from endoscope.findings.siblings import read_together
from endoscope.findings.structure import Place, Structure
from endoscope.query import bulk
from endoscope.query.recording import Recording
from endoscope.schema.recording import GRADIENT, OF_THIS_RANK, USED
from endoscope.store.streams import to_numpy


class Facts:
    """What is known of one trial."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.trial = recording.name
        steps = recording.steps
        self.steps = steps
        self.numbers = np.array([step.number for step in steps], np.int64)
        self.types = np.array([step.type for step in steps], dtype=object)
        self._keys = recording.tables.keys.by_number
        self._matrices: dict[tuple[str, str], bulk.Matrix] = {}
        self.asked: set[str] = set()  # statistics that a check has read; whoever wants to know empties it before

    # Tensors over steps

    @cached_property
    def values(self) -> Rows:
        return self._rows("value", "value")

    @cached_property
    def parameters(self) -> Rows:
        return self._rows("parameter", "value")

    @cached_property
    def updates(self) -> Rows:
        return self._rows("update", "update")

    @cached_property
    def gradients(self) -> dict[str, Rows]:
        """Loss -> gradients of everything with respect to it."""
        names = dict.fromkeys(key.of for key in self._keys.values() if key.of.startswith(GRADIENT))
        return {of.removeprefix(GRADIENT): self._rows(of, of) for of in names}

    @cached_property
    def used_gradients(self) -> Rows:
        """What the optimizer used, where that is recorded beside the gradients of single losses or ranks."""
        return self._rows(USED, USED)

    @cached_property
    def local_gradients(self) -> Rows:
        """What one rank computed, before the ranks reduce it."""
        return self._rows(OF_THIS_RANK, OF_THIS_RANK)

    @cached_property
    def parameter_gradients(self) -> np.ndarray:
        """float64[parameters, steps]: norm of what the optimizer used, else over all losses; NaN if there is none."""
        squares = np.full((len(self.parameters), len(self.steps)), np.nan)
        for rows in self.gradients.values():
            norm = rows["norm"]
            for tensor in rows.tensors:
                row = self.parameters.row_of.get(tensor.place)
                if row is not None and tensor.key.kind == "parameter":
                    square = norm[tensor.row].astype(np.float64) ** 2
                    squares[row] = np.where(np.isnan(square), squares[row], np.nan_to_num(squares[row]) + square)
        norms = np.sqrt(squares)
        for tensor in self.used_gradients.tensors:
            row = self.parameters.row_of.get(tensor.place)
            if row is not None:
                used = self.used_gradients["norm"][tensor.row].astype(np.float64)
                norms[row] = np.where(np.isnan(used), norms[row], used)
        return np.asarray(norms)

    @cached_property
    def parameter_updates(self) -> np.ndarray:
        """float64[parameters, steps]: norm of what the optimizer added; NaN where nothing was recorded."""
        norms = np.full((len(self.parameters), len(self.steps)), np.nan)
        norm = self.updates["norm"]
        for tensor in self.updates.tensors:
            row = self.parameters.row_of.get(tensor.place)
            if row is not None:
                norms[row] = norm[tensor.row]
        return norms

    @cached_property
    def of_ranks(self) -> dict[int, Facts]:
        """The same of each rank; empty in a trial of one process."""
        ranks = self.recording.ranks
        return {rank: Facts(self.recording.rank(rank)) for rank in ranks} if len(ranks) > 1 else {}

    # What belongs to no single tensor

    @cached_property
    def structure(self) -> Structure:
        return Structure(self.recording)

    @cached_property
    def functions(self) -> frozenset[str]:
        """Plain names of all functions that the model calls, as far as they were recorded."""
        called = {name for said in self.remarks("functions") for name in said["types"]}
        return frozenset(called | set(self.structure.type.values()))

    @cached_property
    def siblings(self) -> dict[Place, frozenset[Place]]:
        """Layers that are read together, as query, key and value of one attention are."""
        return read_together(self.structure, self.functions)

    @cached_property
    def losses(self) -> list[Curve]:
        """The losses that are trained on."""
        return loss_curves(self.recording, self.values, self.numbers, self.types)

    @cached_property
    def metrics(self) -> list[Curve]:
        return metric_curves(self.recording)

    @cached_property
    def trainable(self) -> dict[str, bool]:
        """Parameter -> whether it may learn, as far as the tree of modules says."""
        modules = self.recording.modules.get("modules", [])
        return {own["name"]: bool(own["trainable"]) for module in modules for own in module.get("own", [])}

    @cached_property
    def module_types(self) -> dict[str, str]:
        """Address of a module -> its class."""
        return {module["address"]: module["type"] for module in self.recording.modules.get("modules", [])}

    def norms_before_clipping(self) -> np.ndarray:
        """Of the whole gradient, by step; NaN where nobody has clipped it."""
        norms = np.full(len(self.numbers), np.nan)
        for place, calls in self.extra("clipping"):
            norms[place] = np.sqrt(sum(call["norm"] ** 2 for call in calls))
        return norms

    def optimizer_classes(self) -> set[str]:
        """Names of the classes of all optimizers, as far as they were recorded."""
        return {entry.get("class", "") for _, entries in self.extra("optimizers") for entry in entries}

    def extra(self, name: str) -> list[tuple[int, Any]]:
        """(place of the step, what was recorded under this name), for the steps that have it."""
        found = []
        for place, step in enumerate(self.steps):
            if f'"{name}"' in step.extra_json:
                found.append((place, json.loads(step.extra_json).get(name)))
        return [(place, entry) for place, entry in found if entry]

    # How a row of a matrix becomes steps, types and samples

    def steps_where(self, mask: np.ndarray) -> dict[str, Any]:
        """`steps` and `types` of what was seen, from one bool for each step."""
        places = np.flatnonzero(mask)
        order = np.argsort(self.numbers[places], kind="stable")
        types = tuple(dict.fromkeys(self.types[places].tolist()))
        return {"steps": self.numbers[places][order], "types": types}

    def samples_with(self, tensor: Tensor, place: int, statistics: Iterable[str]) -> tuple[int, ...]:
        """Samples of a tensor for which one of these counts is above zero, at one step."""
        step, key = self.steps[place], tensor.key
        try:
            found = self.recording.samples(
                key.node, step.number, of=key.of, role=key.role, pass_=key.pass_, type=step.type
            )
        except (EndoscopeError, IndexError):
            return ()
        wrong = np.zeros(len(found["sample"]), dtype=bool)
        for statistic in statistics:
            wrong |= found[statistic] > 0
        return tuple(int(sample) for sample in found["sample"][wrong])

    def remarks(self, what: str) -> list[dict[str, Any]]:
        """What the recorder has said about single operations of one sort."""
        return [one for one in self.structure.remarks if one.get("what") == what]

    def steps_of(self, node: str) -> dict[str, Any]:
        """The steps that have a node, or all if it has no values of its own; for `Seen`."""
        rows = [tensor.row for tensor in self.values.tensors if tensor.node == node]
        there = self.values.there[rows].any(axis=0) if rows else np.ones(len(self.steps), dtype=bool)
        return self.steps_where(np.asarray(there))

    def value_at(self, node: str) -> Tensor | None:
        """The first tensor of a node."""
        return next((tensor for tensor in self.values.tensors if tensor.node == node), None)

    @cached_property
    def rates(self) -> list[Curve]:
        """The learning rates, as the recorder has read them from the optimizers."""
        return [curve for curve in self.metrics if curve.name == "lr" or curve.name.startswith("lr ")]

    @cached_property
    def is_supervised(self) -> bool:
        """Whether what is minimised is one of the loss functions itself: others may learn from a batch many times."""
        types = {self.type_of(tensor) for tensor in self.values.tensors if tensor.key.kind == "loss"}
        return bool(types & {said["type"] for said in self.remarks("loss")})

    def has_no_level(self, loss: Tensor | None) -> bool:
        """Whether a loss tells samples from others, more or harder ones at each step: its targets are made in place."""
        node = loss.node if loss is not None else ""
        of_loss = [said for said in self.remarks("loss") if said["node"] == node and len(said["reads"]) > 1]
        widths = {tuple(said["shapes"][0][1:]) for said in of_loss}
        return len(widths) > 1 or any(said["reads"][1] in MADE_IN_PLACE for said in of_loss)

    def is_compared(self, tensor: Tensor) -> bool:
        """Whether a loss function was called with a target of this shape, but for the number of samples."""
        own = tensor.key.shape
        for said in self.remarks("loss"):
            if len(said["shapes"]) > 1 and said["reads"][1] not in MADE_IN_PLACE:
                shape, of_numbers = tuple(said["shapes"][1]), said["type"] in LOSSES_OF_NUMBERS
                if len(shape) == len(own) and shape[1:] == own[1:] and (tensor.is_float or not of_numbers):
                    return True
        return False

    def is_made(self, tensor: Tensor) -> bool:
        """Whether a recorded tensor of this step was computed into it: what another network made is no data."""
        return bool(self.structure.parents.get(tensor.place))

    def of_samples(self, tensor: Tensor, place: int, statistic: str) -> np.ndarray:
        """One statistic of every sample at one step; empty if that is not known."""
        step, key = self.steps[place], tensor.key
        try:
            found = self.recording.samples(
                key.node, step.number, of=key.of, role=key.role, pass_=key.pass_, type=step.type
            )
        except (EndoscopeError, IndexError):
            return np.empty(0)
        return np.asarray(found[statistic], np.float64)

    def of_units(self, tensor: Tensor, place: int) -> np.ndarray:
        """The mean of every unit over the batch at one step; empty if that is not known."""
        batch = self.recording.tables.batch("units", self.steps[place])
        if batch is None:
            return np.empty(0)
        offsets = to_numpy(batch.column("mean").offsets)
        for number, key in enumerate(to_numpy(batch.column("key")).tolist()):
            if self.values.row_of_key.get(key) == tensor.row:
                return np.asarray(to_numpy(batch.column("mean").values)[offsets[number] : offsets[number + 1]])
        return np.empty(0)

    def missing_statistics(self) -> list[str]:
        """What was asked for and is not in this recording: an older Endoscope made it, or a plug-in is new."""
        recorded = {one.name for one in self.recording.tables.statistics}
        return sorted(self.asked - recorded) if self.steps and self._keys else []

    def type_of(self, tensor: Tensor) -> str:
        """Plain name of the function that made it."""
        return self.structure.type.get(tensor.place, "")

    def _rows(self, of: str, group: str) -> Rows:
        keys = {number: key for number, key in sorted(self._keys.items()) if key.of == of}
        return Rows(keys, len(self.steps), lambda statistic: self._matrix(group, statistic), self.asked)

    def _matrix(self, of: str, statistic: str) -> bulk.Matrix:
        if of != "value":
            return bulk.matrix(self.recording, of, statistic)  # each sort of tensors keeps its own
        if (of, statistic) not in self._matrices:
            self._matrices[of, statistic] = bulk.matrix(self.recording, of, statistic)
        return self._matrices[of, statistic]
