"""What is held of one captured step: tensors by reference, until it is decided whether the step is recorded.

    hooks.py ─► hold(node, role, tensor) ─► Entry: the tensor, its version, a hook for its gradient
                    └─ a result that an earlier step saw overwritten is copied when it appears
             ─► note(address, tensor) ─► the same for what most modules return, numbered when somebody asks
    measuring.py ─► value(entry): the tensor, or None if somebody has written into it unseen

A traced step also knows the number of each tensor in its recorder, from which the graph is built.
"""

from __future__ import annotations

import copy
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from endoscope.capture.patch.torch_private import is_wrapped as _is_transformed
from endoscope.capture.patch.torch_private import noted_operations as _operations
from endoscope.capture.record.parts import here
from endoscope.capture.record.regions import storage_key, version_of
from endoscope.recording.hooks.entries import End, Entry, size_of
from endoscope.recording.hooks.gradients import OURS, Gradients
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.hooks.parameters import Parameters
from endoscope.recording.hooks.stream import MOST_BYTES, MOST_PASSES, TOO_MUCH, Stream
from endoscope.recording.ranks.specs import Spec, of_gradient, spec_of
from endoscope.schema.recording import GapRecord

if TYPE_CHECKING:
    from endoscope.recording.steps.names import Names
    from endoscope.recording.structure.learned import Learned, Structure
    from endoscope.recording.structure.tracer import Tracer

_grad_on = torch.is_grad_enabled
MOST_NOTED = 64  # results that wait to be numbered


class Declared(NamedTuple):
    """A tensor that somebody has taken out of a distributed one, or made one of."""

    reference: weakref.ref[Tensor]
    spec: Spec


class Captured:
    """One captured step."""

    def __init__(self, names: Names, learned: Learned, failed: Any, tracer: Tracer | None) -> None:
        self.names = names
        self.learned = learned
        self.failed = failed
        self.tracer = tracer
        self.thread = threading.get_ident()
        self._entries: list[Entry] = []
        self._noted: list[Entry] = []  # what came after these, and is not numbered yet
        self.refused: list[GapRecord] = []  # what cannot be held
        self.ran_transformed = False  # a watched model, inside of torch.func
        self.gradients = Gradients(names.tensors, failed, learned)
        self.gradients.is_one_of_many = names.relations is not None
        self.declared: dict[int, Declared] = {}  # id of a tensor -> the distributed one that it is a part of
        self.declared_slots: list[tuple[int, Spec]] = []  # the same by their slots, in a traced step
        self.parameters = Parameters(names, learned)
        self.batch = 0  # samples in the model call that runs
        self.first_batch = 0  # in the first call of the step
        self.moved: set[int] = set()  # positions of the parameters that optimizers have moved
        self.links: list[tuple[End, End]] = []
        self.tags: dict[str, None] = {}
        self.tagged_batch = 0  # samples in the first tensor that was tagged
        self.unmatched: list[str] = []  # patterns that mean nothing in this step
        self.wants_spectra = False
        self.structure: Structure | None = None  # once it was looked up
        self.random_state = torch.get_rng_state() if tracer is None else tracer.recorder.random_state
        self.slots: set[int] = set()  # of all entries of a traced step
        self.operations: list[int] = []  # that autograd had noted when each backward pass began
        self._first_operation = _operations()
        self.stream: Stream | None = None  # measures what is too much to be held
        self._bytes = self._counted = 0  # of what is held; entries that are counted
        self._by_id: dict[int, Entry] = {}  # newest entry of a tensor
        self._counts: dict[tuple[str, str], int] = {}
        self._suspects: list[Entry] = []  # results that may lie in the memory of a parameter
        self.losses: dict[int, str] = {}  # id of a tensor that is a loss -> its name
        self.loss_names: dict[Any, str] = {}  # where a loss comes from -> the name of its node
        if tracer is not None:
            tracer.recorder.before_write = self._before_write
            self.gradients.look_for_used_up()

    # ---- holding ---------------------------------------------------------------------------------

    def hold(
        self,
        node: str,
        role: str,
        kind: str,
        tensor: Tensor,
        module: str = "",
        batch_dim: int | None = None,
        slot: int = -1,
    ) -> Entry | None:
        """Torch functions must not be seen by modes here: the caller has switched them off.

        `slot` is said where the recorder of a traced step knows the tensor already.
        """
        if _is_transformed(tensor):  # it is no tensor any more once its `vmap` or `grad` has ended
            self.ran_transformed = True
            self.refused.append(
                GapRecord(node, "value", "it exists only inside of torch.func: vmap, grad and the like")
            )
            return None
        entry = Entry(node, role, kind, tensor, module, self.batch)
        if batch_dim is not None:
            entry.batch_dim = batch_dim
        if self.tracer is not None:
            entry.slot = self.tracer.slot_of(tensor) if slot < 0 else self.tracer.keep(slot, tensor)
            self.slots.add(entry.slot)
        self._number()
        self._add(entry, will_be_overwritten=self.tracer is None and (node, role) in self.learned.overwritten)
        if entry.same is None and tensor.requires_grad and _grad_on():
            self.gradients.watch(entry, tensor)
        return entry

    def note(self, address: str, tensor: Tensor, training: bool) -> None:
        """The usual result of a module: hold it at the least cost. Networks call hundreds of modules in a step, between
        operations that have emptied the processor's caches, so what can wait is done for many at once in `_number`."""
        noted = self._noted
        entry = Entry(address, "", "computed", tensor, address, self.batch)
        entry.training = training
        is_new = not noted or noted[-1].who is not tensor  # a container returns what its last module has returned
        if is_new and tensor.requires_grad and _grad_on():
            self.gradients.watch(entry, tensor)
        noted.append(entry)
        if len(noted) >= MOST_NOTED:
            with quiet():
                self._number()

    @property
    def entries(self) -> list[Entry]:
        if self._noted:
            with quiet():
                self._number()
        return self._entries

    def _number(self) -> None:
        """Add what was noted."""
        if self._noted:
            noted, self._noted = self._noted, []
            for entry in noted:
                self._add(entry)

    def _add(self, entry: Entry, will_be_overwritten: bool = False) -> None:
        tensor = entry.who
        place = entry.node, entry.role
        self._counts[place] = entry.pass_ = self._counts.get(place, 0) + 1
        known = self._by_id.get(id(tensor))
        if known is not None and known.who is tensor and self._is_unwritten(known, entry):
            entry.same = known.same or known
            entry.version, entry.seen, entry.tensor = known.version, known.seen, known.tensor
        elif entry.pass_ > MOST_PASSES or self._bytes > MOST_BYTES:
            self._measure_now(entry)
        else:
            self._by_id[id(tensor)] = entry
            if will_be_overwritten:
                entry.tensor, entry.version = self._copy(tensor), OURS
            if entry.kind == "computed" and (tensor.is_leaf or tensor._base is not None):
                self._suspects.append(entry)
        self._entries.append(entry)

    def _measure_now(self, entry: Entry) -> None:
        if self.stream is None:
            self.stream = self.gradients.stream = Stream(self.names.batch_dim, self.placement)
            self.refused.append(TOO_MUCH)
        tensor = self.value(entry)
        if tensor is not None:
            entry.row = 0
            self.stream.value(entry, tensor)
        entry.tensor = entry.who = None  # type: ignore[assignment]

    def count_operations(self) -> None:
        self.operations.append(_operations() - self._first_operation)

    def count_bytes(self) -> None:
        """Of what is held; asked for when an outermost call ends."""
        new, self._counted = self.entries[self._counted :], len(self.entries)
        self._bytes += sum([e.tensor.nbytes for e in new if e.tensor is not None and e.tensor.layout is torch.strided])

    def _is_unwritten(self, known: Entry, entry: Entry) -> bool:
        """Whether nobody has written into the tensor since it was captured under another name."""
        if self.tracer is not None:
            return known.slot == entry.slot >= 0
        return known.seen == entry.seen

    def _copy(self, tensor: Tensor) -> Tensor:
        with torch.no_grad():
            return here(tensor).detach().clone()

    def entry_of(self, tensor: Tensor) -> Entry | None:
        """The newest entry of a tensor."""
        self._number()
        known = self._by_id.get(id(tensor))
        return known if known is not None and known.who is tensor else None

    def value(self, entry: Entry) -> Tensor | None:
        """The tensor as it was when it was captured; None if somebody has written into it unseen."""
        if entry.same is not None:
            return self.value(entry.same)
        if self.tracer is not None and entry.slot >= 0 and entry.version != OURS:
            return self.tracer.value(entry.slot)
        tensor = entry.tensor
        if tensor is None or entry.version < 0 or version_of(tensor) == entry.version:
            return tensor
        return None

    def declare(self, tensor: Tensor, distributed: Tensor) -> None:
        """The tensor is what this process has of a distributed one."""
        spec = spec_of(distributed)
        if spec is not None and spec_of(tensor) is None:
            self.declared[id(tensor)] = Declared(weakref.ref(tensor), spec)
            if self.tracer is not None and not self.tracer.recorder.given_up:
                with quiet():
                    self.declared_slots.append((self.tracer.slot_known(tensor), spec))

    def spec_of(self, entry: Entry) -> Spec | None:
        """How the tensor is divided among processes, as far as a DTensor says it."""
        tensor = (entry.same or entry).who
        known = self.declared.get(id(tensor))
        return known.spec if known is not None and known.reference() is tensor else spec_of(tensor)

    def placement(self, entry: Entry, gradient: Tensor | None = None, *, is_copy: bool = False) -> str:
        """What the tensor, or its gradient, is to those of the same name in other processes."""
        relations = self.names.relations
        if relations is None:
            return ""
        spec = self.spec_of(entry)
        if gradient is not None and spec is not None:
            spec = spec_of(gradient) or of_gradient(spec)
        return relations.of_result(entry.module, spec, is_copy=is_copy)

    def is_captured(self, identity: int) -> bool:
        self._number()
        return identity in self._by_id

    def split(self, place: int) -> Captured:
        """The tensors before a place, as a step of its own that has ended; this one goes on with the others."""
        first = copy.copy(self)
        entries = self.entries
        first._entries, self._entries = entries[:place], entries[place:]
        first.gradients = Gradients(self.names.tensors, self.failed, self.learned)
        first.gradients.names, first.gradients.passes = {**self.gradients.names}, 0
        first._suspects, first._by_id = [], {}
        first.parameters = self.parameters
        self.gradients.restart()
        self._counts = {}
        for entry in self.entries:
            entry.pass_ = self._counts[entry.node, entry.role] = self._counts.get((entry.node, entry.role), 0) + 1
        self.links, self.tags, self.refused = [], {}, []
        return first

    # ---- the update ------------------------------------------------------------------------------

    def before_update(self, moved: list[Any], scale: Any, has_closure: bool) -> None:
        """Read gradients, copy the parameters and what is held of their memory: an optimizer writes unseen."""
        mine = self._positions_of(moved)
        self.moved.update(mine)
        with quiet(), torch.no_grad():
            if not has_closure:
                self.gradients.before_update(mine, scale)
            self.parameters.copy(mine)
            self._copy_shared(moved)

    def closure_returned(self, moved: list[Any]) -> None:
        self.gradients.closure_returned(self._positions_of(moved))

    def _positions_of(self, moved: list[Any]) -> list[int]:
        """Of those parameters of an optimizer that are watched."""
        positions = self.names.positions
        return [positions[id(p)] for p in moved if id(p) in positions]

    def _before_write(self, written: list[Tensor]) -> None:
        """In a traced step, before an operation of the user's."""
        self.parameters.before_write(written)
        self.gradients.before_write(written)

    def _copy_shared(self, moved: list[Any]) -> None:
        """Results that are parameters, or lie in their memory."""
        if not self._suspects:
            return
        ids = set(map(id, moved))
        memory: set[int | None] | None = None
        for entry in self._suspects:
            tensor = entry.who
            if tensor is None or entry.version == OURS or version_of(tensor) != entry.seen:
                continue
            base = tensor._base if tensor._base is not None else tensor
            if id(base) not in ids:
                if not tensor.is_leaf or tensor.requires_grad:
                    continue
                memory = {storage_key(p) for p in moved} if memory is None else memory
                if storage_key(tensor) not in memory:
                    continue
            entry.tensor, entry.version = self._copy(tensor), OURS

    # ---- what the user says ----------------------------------------------------------------------

    def tag(self, name: str, role: str, kind: str, tensor: Tensor, batch_dim: int | None) -> None:
        with quiet():
            self.hold(name, role, kind, tensor, "", -1 if batch_dim is None else batch_dim)
            if kind == "loss":
                self.losses[id(tensor)] = name
            if not self.first_batch and batch_dim is not None and 0 <= batch_dim < tensor.dim():
                self.tagged_batch = self.tagged_batch or int(size_of(tensor)[batch_dim])
        self.tags[name] = None

    def link(self, a: Any, b: Any) -> None:
        """State that `b` depends on `a`: tensors, or names of nodes."""
        with quiet():
            self.links.append((self._end(a), self._end(b)))

    def _end(self, end: Any) -> End:
        if not isinstance(end, Tensor):
            return End(str(end), -1)
        entry = self.entry_of(end)
        label = None if entry is None else (entry.node, entry.role, entry.pass_)
        return End(label, -1 if self.tracer is None else self.tracer.slot_of(end))

    # ---- looking ---------------------------------------------------------------------------------

    def nonfinite(self) -> bool:
        """Whether any held value or gradient has a NaN or an infinity; one synchronisation for all."""
        held = [e.tensor for e in self.entries if e.same is None and e.tensor is not None]
        held += [g for e in self.entries for g, _ in (e.gradients or {}).values()]
        with quiet(), torch.no_grad():
            held += [found.tensor for found in self.gradients.of_parameters(skipped=False)]
            sums = [found for found in map(_strangeness, held) if found is not None]
            return bool(sums) and float(torch.stack(sums).sum()) != 0.0

    def let_go(self) -> None:
        """Drop every reference to the user's tensors."""
        self.gradients.let_go()
        self.parameters.let_go()
        if self.tracer is not None:
            self.tracer.let_go()
        for entry in self.entries:
            entry.tensor = entry.who = None  # type: ignore[assignment]
            entry.gradients = entry.same = None
        self._by_id.clear()
        self._suspects.clear()


def _strangeness(tensor: Tensor) -> Tensor | None:
    """Zero if all numbers are finite; None if it cannot be told."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.is_meta:
        return None
    try:
        value = here(tensor).detach()
        if value.layout is torch.sparse_coo:
            value = value._values()
        if value.element_size() == 1:
            value = value.float()
        # A difference of a number with itself is zero unless it is not finite; sums could overflow.
        return (value - value).abs().sum().float().cpu()
    except Exception:  # what an exotic tensor cannot do must not silence the trigger
        return None
