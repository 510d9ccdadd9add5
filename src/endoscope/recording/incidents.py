"""NaN or infinity in a recorded step: name the operation that made it, while everything is still there.

    measured ─► nothing wrong: that is all
             └► look: the step once more (second_run.py) ─► who made it (replay.origins) ─► plain data

The statistics of a recording know module outputs. What made the NaN is often an operation between two of them, and it
is known only now: tomorrow's reader has neither the operations nor their values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from endoscope.capture.reads import parents_of
from endoscope.capture.torch_private import backward_task as _task
from endoscope.recording.captured import Captured
from endoscope.recording.custom_backward import guilty_functions
from endoscope.recording.graph import Item, place_of
from endoscope.recording.memory import shortage
from endoscope.recording.structures import Structure
from endoscope.recording.tracer import StepRecorder
from endoscope.schema.ops import Kind
from endoscope.schema.origin import Origin
from endoscope.schema.recording import GRADIENT, GapRecord

if TYPE_CHECKING:
    from endoscope.recording.measuring import Package
    from endoscope.recording.second_run import SecondRun

MOST_ALIKE = 3  # incidents with the same tensors that are looked into
MOST_OF_A_RUN = 24
_SAME = 1e-3  # a second run may add in another order


class Incidents:
    """Looks into the first incidents of a run."""

    def __init__(self) -> None:
        self._seen: Counter[frozenset[tuple[str, str]]] = Counter()

    def look(self, captured: Captured, structure: Structure, package: Package, step: int) -> dict[str, Any]:
        """What is added to the record of the step: nothing, or `origins`."""
        whole = package.measured.whole
        if not (whole["nans"].any() or whole["infs"].any()) or _task() != -1:
            return {}
        rows = np.flatnonzero(np.logical_or(whole["nans"], whole["infs"])).tolist()
        wrong = [package.keys[row] for row in rows if package.keys[row].of != "update"]
        signature = frozenset((key.node, key.of) for key in wrong)
        if not wrong or self._seen[signature] >= MOST_ALIKE or sum(self._seen.values()) >= MOST_OF_A_RUN:
            return {}
        self._seen[signature] += 1
        if structure.recorder is None:
            reason = "the operations of this step are not known; the next captured step is traced"
            captured.learned.trace_next()
        else:
            reason = shortage(structure.recorder)
        if reason:
            package.gaps.append(GapRecord("", "", f"what made NaN or infinity was not looked for: {reason}"))
            return {}
        loss = next((key.of.removeprefix(GRADIENT) for key in wrong if key.of.startswith(GRADIENT)), None)
        assert structure.recorder is not None
        found = _Incident(captured, structure, structure.recorder, package).origins(loss)
        return {"origins": [replace(one, step=step).to_dict() for one in found]} if found else {}


class _Incident:
    """One step in which something is not finite."""

    def __init__(self, captured: Captured, structure: Structure, recorder: StepRecorder, package: Package) -> None:
        self._captured = captured
        self._structure = structure
        self._recorder = recorder
        self._package = package
        self._items: dict[int, list[Item]] = {}  # node of the step -> what is recorded of it
        for item in structure.items:
            if item.slot >= 0 and item.kind not in ("parameter", "buffer"):
                self._items.setdefault(self._recorder.slot_node[item.slot], []).append(item)
        self._sources = {number: source.name for number, source in self._recorder.sources.items() if source.name}

    def origins(self, loss: str | None) -> list[Origin]:
        from endoscope.recording.second_run import SecondRun  # here: most runs never need it
        from endoscope.replay.origins import nonfinite_origins

        run = SecondRun(self._captured, self._structure, self._recorder).run(loss)
        dim = self._captured.names.batch_dim or 0
        entered = [slot for call in self._recorder.calls.entries if call.root for slot in call.entered]
        found = nonfinite_origins(
            run.trace, batch_dim=dim, batch_size=self._captured.first_batch, entered=run.slots_again(entered)
        )
        if not found and loss is not None:
            return [
                replace(one, of=GRADIENT + loss) for one in guilty_functions(self._recorder, *self._gradients(loss))
            ]
        same = not run.lost and self._repeats(run)
        return [self._told(origin, run, loss, same) for origin in found]

    def _gradients(self, loss: str) -> tuple[set[int], set[int]]:
        """Nodes of the step whose recorded gradients are not finite, and those whose are."""
        whole, places = self._package.measured.whole, {name: number for number, name in self._sources.items()}
        for number, found in self._items.items():
            places |= {item.node: number for item in found}
        wrong, right = set[int](), set[int]()
        for row, key in enumerate(self._package.keys):
            if key.of == GRADIENT + loss and key.node in places:
                (wrong if whole["nans"][row] or whole["infs"][row] else right).add(places[key.node])
        return wrong, right

    def _repeats(self, run: SecondRun) -> bool:
        """Whether everything recorded is as large as it was, and has as many elements that are not finite."""
        slots = {(i.node, i.role, i.pass_): i.slot for found in self._items.values() for i in found}
        whole = self._package.measured.whole
        for row, key in enumerate(self._package.keys):
            slot = slots.get((key.node, key.role, key.pass_))
            if key.of != "value" or slot is None:
                continue
            again = run.value(slot)
            if again is None or not again.is_floating_point():
                continue
            wrong, largest = _facts_of(again)
            if wrong != int(whole["nans"][row] + whole["infs"][row]):
                return False
            if abs(largest - float(whole["abs_max"][row])) > _SAME * largest:
                return False
        return True

    def _told(self, origin: Origin, run: SecondRun, loss: str | None, same: bool) -> Origin:
        """In the words of the recording: its nodes, the lines of the training, not those of the second run."""
        numbers = {label: node for node, (label, _, _) in run.trace.labels.items()}
        first = {label: run.first[node] for label, node in numbers.items() if node in run.first}
        number = first.get(origin.node)
        inputs = tuple(replace(one, name=self._name(first.get(one.name))) for one in origin.inputs)
        if number is None:
            return replace(origin, inputs=inputs, exact=False)
        raw = self._recorder.nodes[number]
        path = self._recorder.calls.path(raw[12])
        is_gradient = origin.of == "gradient"
        return replace(
            origin, inputs=inputs, exact=origin.exact and same, module=path[-1] if path else "",
            source=place_of(self._recorder, raw[5]), of=f"{GRADIENT}{loss}" if is_gradient else origin.of,
            node=self._node_near(number, upwards=is_gradient),
        )  # fmt: skip

    def _name(self, number: int | None) -> str:
        """How a reader of the recording knows a tensor: by its node, or by what computed it."""
        if number is None:
            return ""
        named = self._items.get(number)
        return named[0].node if named else self._sources.get(number) or str(self._recorder.nodes[number][0].type)

    def _node_near(self, number: int, upwards: bool) -> str:
        """The recorded node that shows it first: the operation itself, or the nearest below (above, of gradients)."""
        if number in self._sources and not self._items.get(number):
            return self._sources[number]
        recorder = self._recorder
        if upwards:
            waiting, seen = [number], {number}
            while waiting:
                node = max(waiting)
                waiting.remove(node)
                if node != number and self._items.get(node):
                    return self._items[node][0].node
                above = parents_of(recorder, node) - seen
                seen |= above
                waiting += above
            return ""
        reached = {number}
        for node in range(number, len(recorder.nodes)):
            if node == number or parents_of(recorder, node) & reached:
                reached.add(node)
                source = recorder.sources.get(node)
                if self._items.get(node) and (source is None or source.kind is not Kind.OUTPUT):
                    return self._items[node][0].node
        return ""


def _facts_of(tensor: Tensor) -> tuple[int, float]:
    """How many elements are not finite, and the largest magnitude of the others."""
    with torch.no_grad():
        plain = tensor.detach()
        finite = torch.isfinite(plain)
        largest = plain[finite].abs().max() if bool(finite.any()) else torch.zeros(())
        return int((~finite).sum()), float(largest)
