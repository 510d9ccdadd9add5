"""NaN or infinity in a recorded step: name the operation that made it, while everything is still there.

    measured ─► nothing wrong, no sample unlike the others: that is all
             └► look: the step once more (second_run.py) ─► who made it (replay.origins) ─► plain data

The statistics of a recording know module outputs. What made the NaN is often an operation between two of them, and it
is known only now: tomorrow's reader has neither the operations nor their values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from endoscope.capture.data.calls import OUTSIDE
from endoscope.capture.patch.torch_private import backward_task as _task
from endoscope.capture.views.reads import parents_of
from endoscope.recording.failures.loud import loudest
from endoscope.recording.hooks.captured import Captured
from endoscope.recording.structure.graph import Item, place_of
from endoscope.recording.structure.learned import Structure
from endoscope.recording.structure.tracer import StepRecorder
from endoscope.schema.ops import Kind
from endoscope.schema.origin import NONFINITE, Origin
from endoscope.schema.recording import GRADIENT, GapRecord

if TYPE_CHECKING:
    from endoscope.recording.failures.second_run import SecondRun
    from endoscope.recording.output.measuring import Package

MOST_ALIKE = 3  # incidents with the same tensors that are looked into
MOST_OF_A_RUN = 24
MOST_LOUD = 6  # steps of a run in which a sample is looked into because it is unlike the others
_SAME = 1e-3  # a second run may add in another order


class Incidents:
    """Looks into the first incidents of a run."""

    def __init__(self) -> None:
        self._seen: Counter[frozenset[tuple[str, str]]] = Counter()
        self._loud = 0

    def look(self, captured: Captured, structure: Structure, package: Package, step: int) -> dict[str, Any]:
        """What is added to the record of the step: nothing, `origins` of what is not finite, or `outliers`."""
        whole = package.measured.whole
        if _task() != -1:
            return {}
        if not (whole["nans"].any() or whole["infs"].any()):
            return self._look_for_loud(captured, structure, package, step)
        strange = _strange(package)
        wrong = [key for key, count in zip(package.keys, strange, strict=True) if count and key.of != "update"]
        signature = frozenset((key.node, key.of) for key in wrong)
        if not wrong or self._seen[signature] >= MOST_ALIKE or sum(self._seen.values()) >= MOST_OF_A_RUN:
            return {}
        self._seen[signature] += 1
        from endoscope.recording.failures.second_run import shortage  # here, and below: most runs never need it

        if captured.names.relations is not None:
            reason = "the other processes of the job would have to take part in computing the step once more"
        elif structure.recorder is None:
            reason = "the operations of this step are not known; the next recorded step is traced"
            captured.learned.trace_next()
        else:
            reason = shortage(structure.recorder)
        if reason or structure.recorder is None:
            package.gaps.append(GapRecord("", "", f"Endoscope did not look for what made NaN or infinity: {reason}"))
            return {}
        loss = next((key.of.removeprefix(GRADIENT) for key in wrong if key.of.startswith(GRADIENT)), None)
        found = _Incident(captured, structure, structure.recorder, package).origins(loss)
        return {"origins": [replace(one, step=step).to_dict() for one in found]} if found else {}

    def _look_for_loud(self, captured: Captured, structure: Structure, package: Package, step: int) -> dict[str, Any]:
        """Where a sample that is unlike the others begins to be so."""
        loud = loudest(package, captured.first_batch)
        recorder = structure.recorder
        if loud is None or recorder is None or captured.names.relations is not None:
            return {}
        signature = frozenset([(loud.node, "unlike the others")])
        if self._seen[signature] >= MOST_ALIKE or self._loud >= MOST_LOUD:
            return {}
        self._seen[signature] += 1
        self._loud += 1
        from endoscope.recording.failures.second_run import shortage

        if shortage(recorder):
            return {}
        found = _Incident(captured, structure, recorder, package).outliers(loud.sample)
        return {"outliers": [replace(one, step=step).to_dict() for one in found]} if found else {}


class _Incident:
    """One step in which something is not finite."""

    def __init__(self, captured: Captured, structure: Structure, recorder: StepRecorder, package: Package) -> None:
        self._captured = captured
        self._structure = structure
        self._recorder = recorder
        self._package = package
        self._strange = _strange(package)
        self._items: dict[int, list[Item]] = {}  # node of the step -> what is recorded of it
        for item in structure.items:
            if item.slot >= 0 and item.kind not in ("parameter", "buffer"):
                self._items.setdefault(recorder.slot_node[item.slot], []).append(item)
        self._sources = {number: source.name for number, source in recorder.sources.items() if source.name}

    def origins(self, loss: str | None) -> list[Origin]:
        from endoscope.recording.failures.second_run import SecondRun
        from endoscope.replay.origins import nonfinite_origins

        run = SecondRun(self._captured, self._structure, self._recorder).run(loss)
        entered = [slot for call in self._recorder.calls.entries if call.root for slot in call.entered]
        found = nonfinite_origins(
            run.trace, batch_dim=self._captured.names.batch_dim or 0, batch_size=self._captured.first_batch,
            entered=run.slots_again(entered),
        )  # fmt: skip
        if not found and loss is not None:
            return self._broken_backward(loss)
        same = self._repeats(run)
        return [self._told(origin, run, loss, same) for origin in found]

    def outliers(self, sample: int | None) -> list[Origin]:
        """Where a sample begins to be unlike the others, among all operations."""
        from endoscope.recording.failures.second_run import SecondRun
        from endoscope.replay.outliers import Outliers

        run = SecondRun(self._captured, self._structure, self._recorder).run(None)
        entered = [slot for call in self._recorder.calls.entries if call.root for slot in call.entered]
        looked = Outliers(
            run.trace, False, self._captured.names.batch_dim or 0, self._captured.first_batch, run.slots_again(entered)
        )
        found = looked.origins(None, sample)
        same = self._repeats(run)
        return [replace(self._told(one, run, None, same), path=()) for one in found]

    def _repeats(self, run: SecondRun) -> bool:
        """Whether everything recorded is as large as it was, and has as many elements that are not finite."""
        slots = {(i.node, i.role, i.pass_): i.slot for found in self._items.values() for i in found}
        for row, key in enumerate(self._package.keys):
            slot = slots.get((key.node, key.role, key.pass_)) if key.of == "value" else None
            again = None if slot is None else run.value(slot)
            if again is not None and again.is_floating_point():
                strange, largest = _facts_of(again)
                was = float(self._package.measured.whole["abs_max"][row])
                if strange != self._strange[row] or abs(largest - was) > _SAME * largest:
                    return False
        return True

    # ---- custom autograd functions have a backward pass of their own, which cannot be repeated ----

    def _broken_backward(self, loss: str) -> list[Origin]:
        """The last such function, if gradients are wrong above it and right below: its backward pass made it."""
        wrong, right = self._gradients(loss)
        recorder = self._recorder
        inside: dict[int, list[int]] = {}  # call of a function -> its nodes
        for number, raw in enumerate(recorder.nodes):
            if raw.call != OUTSIDE and recorder.calls.entries[raw.call].is_function:
                inside.setdefault(raw.call, []).append(number)
        for call in sorted(inside, reverse=True):
            above, below = _above(recorder, inside[call]), _below(recorder, inside[call])
            if above & wrong and not below & wrong and (below & right or not below & (wrong | right)):
                path = recorder.calls.path(call)
                return [
                    Origin(
                        sort=NONFINITE, of=GRADIENT + loss, node="", operation=str(recorder.calls.entries[call].module),
                        module=path[-1] if path else "", source=_line(recorder, inside[call][-1]), exact=False,
                    )
                ]  # fmt: skip
        return []

    def _gradients(self, loss: str) -> tuple[set[int], set[int]]:
        """Nodes of the step whose recorded gradients are not finite, and those whose are."""
        places = {name: number for number, name in self._sources.items()}
        places |= {item.node: number for number, found in self._items.items() for item in found}
        wrong, right = set[int](), set[int]()
        for row, key in enumerate(self._package.keys):
            if key.of == GRADIENT + loss and key.node in places:
                (wrong if self._strange[row] else right).add(places[key.node])
        return wrong, right

    # ---- in the words of the recording -----------------------------------------------------------

    def _told(self, origin: Origin, run: SecondRun, loss: str | None, same: bool) -> Origin:
        """With its nodes, and the lines of the training, not those of the second run."""
        first = {label: run.first[node] for node, (label, _, _) in run.trace.labels.items() if node in run.first}
        inputs = tuple(replace(one, name=self._name(first.get(one.name))) for one in origin.inputs)
        number = first.get(origin.node)
        if number is None:
            return replace(origin, inputs=inputs, exact=False)
        if number in self._recorder.sources and not self._items.get(number) and not self._sources.get(number):
            # A tensor without a name, made where nobody looked: the first operation that reads it is all there is.
            number = min(_below(self._recorder, [number]), default=number)
            origin = replace(origin, operation=self._recorder.nodes[number].facts.type, inputs=(), exact=False)
            inputs = ()
        path = self._recorder.calls.path(self._recorder.nodes[number].call)
        is_gradient = origin.of == "gradient"
        same = same and not run.lost & (set(range(len(self._recorder.nodes))) if is_gradient else self._behind(number))
        made_here = number not in self._recorder.sources  # data that the step made is held, and not made once more
        if made_here and origin.operation in ("constant", "input"):
            origin = replace(origin, operation=self._recorder.nodes[number].facts.type, exact=False)
        return replace(
            origin, inputs=inputs, exact=origin.exact and same, module=path[-1] if path else "",
            source=_line(self._recorder, number), of=f"{GRADIENT}{loss}" if is_gradient else origin.of,
            node=self._node_near(number, upwards=is_gradient),
        )  # fmt: skip

    def _behind(self, number: int) -> set[int]:
        """The operation and what it was computed from."""
        return {number, *_above(self._recorder, [number])}

    def _name(self, number: int | None) -> str:
        """How a reader of the recording knows a tensor: by its node, or by what computed it."""
        if number is None:
            return ""
        named = self._items.get(number)
        return named[0].node if named else self._sources.get(number) or self._recorder.nodes[number].facts.type

    def _node_near(self, number: int, upwards: bool) -> str:
        """The recorded node that shows it first: the operation itself, or the nearest below (above, of gradients)."""
        if number in self._sources and not self._items.get(number):
            return self._sources[number]
        sources = self._recorder.sources
        outputs = {node for node, source in sources.items() if source.kind is Kind.OUTPUT}
        reached = _above(self._recorder, [number]) if upwards else _below(self._recorder, [number]) | {number}
        shown = [node for node in reached if node in self._items and node not in outputs]
        return self._items[max(shown) if upwards else min(shown)][0].node if shown else ""


def _above(recorder: StepRecorder, nodes: Iterable[int]) -> set[int]:
    """What the nodes were computed from."""
    found = set(nodes)
    first = set(found)
    for number in range(max(found), -1, -1):
        if number in found:
            found |= parents_of(recorder, number)
    return found - first


def _below(recorder: StepRecorder, nodes: Iterable[int]) -> set[int]:
    """What was computed from the nodes."""
    found = set(nodes)
    first = set(found)
    for number in range(min(found), len(recorder.nodes)):
        if parents_of(recorder, number) & found:
            found.add(number)
    return found - first


def _line(recorder: StepRecorder, number: int) -> str:
    return place_of(recorder, recorder.nodes[number].slot)


def _strange(package: Package) -> list[int]:
    """How many elements of each row are not finite."""
    whole = package.measured.whole
    return [int(nans) + int(infs) for nans, infs in zip(whole["nans"], whole["infs"], strict=True)]


def _facts_of(tensor: Tensor) -> tuple[int, float]:
    """How many elements are not finite, and the largest magnitude of the others."""
    with torch.no_grad():
        plain = tensor.detach()
        finite = torch.isfinite(plain)
        largest = plain[finite].abs().max() if bool(finite.any()) else torch.zeros(())
        return int((~finite).sum()), float(largest)
