"""`trace.rerun(edit=...)`: what the model would have computed with an edit, from kept values.

    selectors ─► nodes ─► may the memory be exchanged? (severed.py)
    every node from the first edited one on, in order:
        a value left for Python? (departed.py)      it must still be what it was, or Python might have gone elsewhere
        reads nothing that changed                  shared with the original trace
        reads something that changed                called again (operands.py)
        is edited                                   the edit is applied to its value
    ─► a Trace that shares all the rest

The model does not run. Everything is as in a full run with the same edits, bit for bit: arguments have the strides
that they had and require a gradient where they did (`torch.matmul` looks at that), autograd, autocast and random
numbers are set as they were.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.change.choosing import changes_in, chosen
from endoscope.capture.change.edit import apply_all, new_like
from endoscope.capture.change.randomness import seeded
from endoscope.capture.change.rebuild import rebuilt
from endoscope.capture.data.nodes import Applied, Node, Read, slots_of
from endoscope.capture.data.record import Overwritten
from endoscope.capture.patch.patches import untraced
from endoscope.capture.patch.torch_private import is_wrapped as _is_wrapped
from endoscope.capture.record.functions import UNINITIALISED
from endoscope.capture.record.leaves import named_leaves
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.regions import unwrapped, version_of
from endoscope.capture.record.values import TensorStore
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument, CannotReplay, ValueChanged
from endoscope.replay.departed import Departures
from endoscope.replay.operands import MissingParent, repeat, value_seen
from endoscope.replay.severed import check_memory
from endoscope.schema.ops import Kind

INSTEAD = "Run the model with the edit: endoscope.trace(model, inputs, edit=...)."


def rerun(trace: Trace, edit: Mapping[Any, Any], *, seed: int | None = None) -> Trace:
    """Return the trace as it would be with an edit; only operations that depend on the edit are computed again.

    Random numbers are those of the trace. With a `seed`, all operations that draw random numbers draw them again.

    The values have no autograd history. If a changed value decides a branch in Python, or the size of a tensor, the
    call raises an error that says so, because only the model can tell what it would do next.
    """
    if not isinstance(trace, Trace):
        raise BadArgument(f"rerun() needs a trace: endoscope.trace(model, x).rerun(edit=...), not {type(trace)}.")
    changes = changes_in(edit)
    if not trace.finished:
        raise CannotReplay(f"The trace of {trace.name} did not finish, so there is no run to repeat.")
    if not trace.record.full:
        raise CannotReplay(
            f"This trace of {trace.name} was taken with save={trace.record.save_text}, so the values from which the "
            "edited part would be computed were not kept. Trace with save='all', or run the model with the edit: "
            "endoscope.trace(model, inputs, edit=...)."
        )
    trace = trace.live()
    with untraced(), seeded(seed):
        edits = {
            node: [Applied(edit, trace.op_at(node).label) for _, edit in found]
            for node, found in chosen(trace, changes).items()
        }
        check_memory(trace, list(edits), INSTEAD)
        again = _Again(trace, edits, redraws=seed is not None)
        again.walk()
        found = again.result()
    if trace.origin is not None:
        target, args, kwargs, before = trace.origin()
        found.origin = lambda: (target, args, kwargs, [*before, *changes])
    return found


class _Again:
    """The values of one rerun, by slot; what did not change is looked up in the original trace."""

    def __init__(self, trace: Trace, edits: dict[int, list[Applied]], *, redraws: bool = False) -> None:
        """With `redraws` random numbers come from the generators as they are now, not as they were in the trace."""
        self.trace = trace
        self.recorder = copy.copy(trace.recorder)
        self.redrawn = {node for node, draw in self.recorder.rng.items() if redraws and draw.generator is None}
        self.recorder.rng = dict(self.recorder.rng)
        self.edits = edits
        self.changed: dict[int, Tensor] = {}
        self._wants_gradient: dict[int, bool] = {}  # of changed slots
        self._laid_out: dict[int, Tensor] = {}
        self._departures = Departures(trace)

    def walk(self) -> None:
        nodes, sources, edits, changed = self.recorder.nodes, self.recorder.sources, self.edits, self.changed
        for node in range(min([*edits, *self.redrawn], default=len(nodes)), len(nodes)):
            if changed:
                self._departures.check(node, changed, self, INSTEAD)
            raw = nodes[node]
            touched = changed and any(
                read in changed if isinstance(read, int) else any(slot in changed for slot in read)
                for read in raw.reads
            )
            if node in sources:
                self._source(node, raw)
            elif touched or node in edits or node in self.redrawn:
                self._operation(node, raw, bool(touched) or node in self.redrawn)
        self._departures.check(len(nodes), changed, self, INSTEAD)

    def _source(self, node: int, raw: Node) -> None:
        if node in self.edits:
            readers = self.trace.children[node]
            grad = bool(self.recorder.nodes[readers[0]].grad) if readers else True
            self._store(node, raw, self._edited(node, [self._flagged(raw.slot)], self.edits[node], grad))
        elif self.recorder.sources[node].kind is Kind.OUTPUT and raw.reads and raw.reads[0] != raw.slot:
            if any(slot in self.changed for slot in slots_of(raw.reads[0])):
                like = self.recorder.objects[raw.slot]
                self.changed[raw.slot] = value_seen(self, raw.reads[0], like, None).detach().clone()
                self._wants_gradient[raw.slot] = False

    def _operation(self, node: int, raw: Node, touched: bool) -> None:
        if touched and raw.facts.type in UNINITIALISED and raw.facts.written is None:
            touched = False  # only the shape of its argument is used
        if touched:
            results = self._repeated(node, raw)
        elif node in self.edits:
            results = [self._flagged(slot) for slot in raw.returned]
        else:
            return
        # Edits of an earlier rerun are in the kept value already, but not in one that was computed again.
        before = self.recorder.edited.get(node, []) if touched else []
        edits = [*before, *self.edits.get(node, [])]
        if edits:
            results[: raw.outputs] = self._edited(node, results[: raw.outputs], edits, raw.grad)
        self._store(node, raw, results)

    def _repeated(self, node: int, raw: Node) -> list[Tensor]:
        if not raw.facts.replayable or node in self.recorder.hidden_reads:
            raise CannotReplay(
                f"{self.label(node)} ({raw.facts.name}) lies downstream of the edit and cannot be called again on "
                f"values alone. {INSTEAD}"
            )
        drawn = torch.get_rng_state() if node in self.redrawn else None
        if drawn is not None:
            self.recorder.rng[node] = self.recorder.rng[node]._replace(state=None)
        try:
            found = repeat(self.recorder, node, raw, self._operand, copy=_copy, grad=raw.grad)
            if drawn is not None:
                self.recorder.rng[node] = self.recorder.rng[node]._replace(state=drawn)
            return found
        except MissingParent:
            raise CannotReplay(
                f"{self.label(node)} lies downstream of the edit and has an argument whose origin is not known. "
                f"{INSTEAD}"
            ) from None
        except (CannotReplay, ValueChanged):
            raise
        except Exception as error:
            error.add_note(f"raised when {self.label(node)} was called again with edited values ({INSTEAD})")
            raise

    def _edited(self, node: int, tensors: list[Tensor], edits: list[Applied], grad: bool) -> list[Tensor]:
        if any(_is_wrapped(self.recorder.objects[s]) for s in self._slots(node)):
            raise CannotReplay(
                f"{self.label(node)} runs inside a function transform (vmap, grad), where the batch dimension "
                "is not visible. Edit an operation outside."
            )
        with torch.set_grad_enabled(grad):
            return apply_all(edits, tensors)

    def _store(self, node: int, raw: Node, tensors: list[Tensor]) -> None:
        slots = range(raw.slot, raw.slot + raw.outputs + raw.written)
        if len(tensors) != len(slots) and not (node in self.edits and len(tensors) == raw.outputs):
            raise CannotReplay(
                f"{self.label(node)} returned {len(slots)} tensors in the run, and {len(tensors)} when called again. "
                f"{INSTEAD}"
            )
        for slot, tensor in zip(slots, tensors, strict=False):
            before = unwrapped(self.recorder.objects[slot])
            if not tensor.is_nested and (tensor.shape != before.shape or tensor.dtype != before.dtype):
                raise CannotReplay(
                    f"With the edit {self.label(node)} has the shape {tuple(tensor.shape)} instead of "
                    f"{tuple(before.shape)}: its size depends on values, and what the model does with it cannot be "
                    f"known from the trace. {INSTEAD}"
                )
            self._wants_gradient[slot] = tensor.requires_grad
            self.changed[slot] = tensor.detach()

    # ---- values ----------------------------------------------------------------------------------

    def tensor(self, slot: int) -> Tensor:
        """The value of a slot in this rerun; also asked by `compose`."""
        found = self.changed.get(slot)
        return self.original(slot) if found is None else found

    def original(self, slot: int) -> Tensor:
        """The value in the trace, in the layout that it had then: a copy may have lost it."""
        if slot in self._laid_out:
            return self._laid_out[slot]
        try:
            value = self.trace.store.tensor(slot).detach()
        except Overwritten:
            raise ValueChanged(
                f"The value of {self.label(self.recorder.slot_node[slot])}, which the rerun needs, was overwritten "
                "after it was captured (an optimizer step changes parameters). Trace again, and call trace.freeze() "
                "before anything changes."
            ) from None
        like = unwrapped(self.recorder.objects[slot])
        if slot in self.recorder.kept and _is_plain(value) and _is_plain(like) and value.stride() != like.stride():
            with torch.no_grad():
                value = self._laid_out[slot] = new_like(like).copy_(value)
        return value

    def _flagged(self, slot: int) -> Tensor:
        """The value, requiring a gradient if it did."""
        value = self.tensor(slot).detach()
        wants = self._wants_gradient.get(slot)
        if wants is None:
            meta = self.recorder.metas.get(slot)
            wants = (meta if meta is not None else self.recorder.objects[slot]).requires_grad
        return value.requires_grad_() if wants and (value.is_floating_point() or value.is_complex()) else value

    def _operand(self, read: Read, tensor: Tensor) -> Tensor:
        if isinstance(read, int):
            return self._flagged(read)
        value = value_seen(self, read, tensor, None)
        wants = any(self._flagged(slot).requires_grad for slot in slots_of(read))
        return value.requires_grad_() if wants and (value.is_floating_point() or value.is_complex()) else value

    def label(self, node: int) -> str:
        return self.trace.op_at(node).label

    def _slots(self, node: int) -> range:
        return self.recorder.nodes[node].returned

    # ---- the new trace ---------------------------------------------------------------------------

    def result(self) -> Trace:
        """A trace that shares everything with the original but what changed."""
        new = self._of_new_values(self._new_recorder())
        new.result = rebuilt(self.trace.result, self._exchanged_outputs())
        return new

    def _of_new_values(self, recorder: Recorder) -> Trace:
        return self.trace.with_values_of(recorder, TensorStore(recorder))

    def _new_recorder(self) -> Recorder:
        recorder = copy.copy(self.recorder)
        for name in ("kept", "kept_versions", "metas", "fingerprints"):
            setattr(recorder, name, dict(getattr(recorder, name)))
        recorder.stale = recorder.stale - self.changed.keys()
        recorder.gradients = None
        recorder.edited = dict(recorder.edited)
        for node, edits in self.edits.items():
            recorder.edited[node] = [*recorder.edited.get(node, []), *edits]
        for slot, tensor in self.changed.items():
            recorder.kept[slot] = tensor
            recorder.kept_versions[slot] = version_of(tensor)
            recorder.fingerprints.pop(slot, None)
        return recorder

    def _exchanged_outputs(self) -> Any:
        """Tensors of the old result -> those of the new one, found by the path that leads to them."""
        by_path = {
            source.name: self.recorder.nodes[node].slot
            for node, source in self.recorder.sources.items()
            if source.kind is Kind.OUTPUT
        }
        instead = {}
        for path, tensor in _joined(self.trace.result):
            slot = by_path.get(path)
            if slot is not None and slot in self.changed:
                instead[id(tensor)] = self.changed[slot]
        return lambda tensor: instead.get(id(tensor), tensor)


def _joined(result: Any) -> Iterator[tuple[str, Tensor]]:
    """As the names of outputs are made: one for all places of a tensor."""
    paths: dict[int, list[str]] = {}
    tensors: dict[int, Tensor] = {}
    for path, tensor in named_leaves(result):
        if isinstance(tensor, Tensor):
            paths.setdefault(id(tensor), []).append(path)
            tensors[id(tensor)] = tensor
    return ((", ".join(paths[identity]), tensor) for identity, tensor in tensors.items())


def _is_plain(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested


def _copy(tensor: Tensor) -> Tensor:
    """With the same strides, and not a leaf of autograd, which could not be written to."""
    with torch.enable_grad():
        made = tensor.clone()
        if _is_plain(tensor) and made.stride() != tensor.stride():
            made = new_like(tensor).copy_(tensor)
    return made
