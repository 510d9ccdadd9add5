"""What is held of one step while it runs, by reference, until it is decided whether the step is kept.

Capture.begin ─► Listener hears, LossGradients gather, parameters are copied before an optimizer moves them
Capture.end   ─► nothing of ours is left on torch or the model
Capture.items ─► the list of recorded tensors ─► measuring.py
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.records import slots_of
from endoscope.capture.regions import storage_key, version_of, versions_of
from endoscope.recording.batches import Batches
from endoscope.recording.courses import Courses
from endoscope.recording.hearing import StepRecorder
from endoscope.recording.holding import Held
from endoscope.recording.inventory import Inventory
from endoscope.recording.listening import Listener
from endoscope.recording.losses import LossGradients
from endoscope.recording.meter import Meter
from endoscope.recording.raw import RawCollector
from endoscope.recording.rooms import Rooms
from endoscope.recording.selection import Selection
from endoscope.recording.sources import first_calls
from endoscope.recording.structure import Item, Structure, Structures, build_graph, place_of, size_of
from endoscope.recording.watch import Watch, names, own_hooks
from endoscope.schema.ops import Kind
from endoscope.schema.recording import GapRecord

_BUFFER = -(2**31)  # buffers are read from the model itself
SECS_PER_OPERATION = 8e-6
SECS_PER_CALL = 20e-6
SECS_PER_NOTE = 4e-6


class Parameters:
    """Parameters and buffers of the watched models, and their values before the optimizer moved them.

    Slots of parameters are negative: -1 - position. The copies live as long as the run: the pages of fresh memory
    cost more than the copying.
    """

    def __init__(self, inventory: Inventory, rooms: Rooms) -> None:
        self.named = inventory.parameters
        self.buffers = inventory.buffers
        self._rooms = rooms
        self.ahead = rooms.ahead
        self.before: dict[int, Tensor] = {}  # position -> value before the first update of this step
        self._positions = inventory.positions
        self._storages = inventory.sources.storages_now
        self.tensors = [p for _, p in self.named]
        self._late: set[int] = set()  # positions of those that were copied after somebody had written into them unheard
        self._memory: dict[int | None, Tensor] = {}  # address -> parameter; made when it is needed
        self.versions = versions_of(self.tensors)  # when the step began
        self.ahead.end_step()

    def let_go(self) -> None:
        self.before, self._memory = {}, {}
        self._late.clear()
        if self.ahead.waiting or self.ahead.done:
            self.ahead.end_step()

    def copy_those(self, parameters: list[Any]) -> None:
        fresh, positions = parameters, self._rooms.positions
        if self.before or not self._rooms.are_for(self._positions, parameters):
            places = [(self._positions.get(id(p)), p) for p in parameters]
            chosen = [
                (i, p)
                for i, p in places
                if i is not None and p.requires_grad and i not in self.before and p.layout is torch.strided
            ]
            fresh, positions = [p for _, p in chosen], [i for i, _ in chosen]
            self._rooms.make_for(self._positions, fresh, positions)
        versions = versions_of(self.tensors)
        if versions != self.versions:
            self._late.update(i for i in positions if i not in self.before and versions[i] != self.versions[i])
        gone = self._rooms.copy(versions == self.versions)
        targets = self._rooms.targets
        if gone:
            self.before.update((positions[n], targets[n]) for n in range(len(fresh)) if n not in gone)
        else:
            self.before.update(zip(positions, targets, strict=True))

    def before_write(self, written: list[Tensor]) -> None:
        """Somebody who is no optimizer is about to write: into parameters, perhaps through `.data` or a view."""
        found: list[Tensor] = []
        for tensor in written:
            if id(tensor) in self._positions:
                found.append(tensor)
            elif not tensor.requires_grad and (parameter := self._in_memory_of(tensor)) is not None:
                found.append(parameter)
        if found:
            with torch._C.DisableTorchFunction():
                self.copy_those(found)

    def share(self, tensor: Tensor) -> bool:
        """Whether a tensor that autograd does not know as a view lies in the memory of a parameter."""
        return tensor.is_leaf and not tensor.requires_grad and self._in_memory_of(tensor) is not None

    def _in_memory_of(self, tensor: Tensor) -> Tensor | None:
        key, storages = storage_key(tensor), self._storages()
        if storages is not None and key not in storages:
            return None
        if not self._memory:
            self._memory = {storage_key(p): p for p in self.tensors}
        return self._memory.get(key)

    def changed_unheard(self, position: int) -> bool:
        return position not in self.before and version_of(self.named[position][1]) != self.versions[position]

    def are_as_they_were(self) -> bool:
        """Whether nobody has written into any of them since the step began."""
        return not self.before and versions_of(self.tensors) == self.versions

    def value_of(self, parameter: Tensor) -> Tensor:
        """What modules were called with before the first update."""
        position = self._positions[id(parameter)]
        if position in self._late or self.changed_unheard(position):
            raise RuntimeError("a parameter was overwritten before the gradients that follow from it were looked at")
        return self.value(position)

    def value(self, position: int) -> Tensor:
        before = self.before.get(position)
        return before if before is not None else self.named[position][1]


class Capture:
    """One captured step."""

    def __init__(
        self,
        watches: list[Watch],
        inventory: Inventory,
        selection: Selection,
        rooms: Rooms,
        failed: Any,
        postpones: bool = False,
    ) -> None:
        inventory.refresh()
        self._inventory = inventory
        self.watches = watches
        self.thread = threading.get_ident()
        self.gradients = LossGradients(failed=failed, reliable=inventory.reliable)
        self.selection = selection
        self.heard = StepRecorder(
            names(watches), inventory.calls, inventory.sources, inventory.known_calls, rooms.ahead, self.gradients,
            selection.may_match_type, failed, inventory.chains, own_hooks(watches), postpones and inventory.was_heard,
        )  # fmt: skip
        self._names = inventory.calls  # what it goes by
        self.batches = Batches(watches, self.heard)
        self.meter: Meter | None = None
        self.listener = Listener(self.heard)
        self.parameters = Parameters(inventory, rooms)
        self.heard.about_to_write = self.parameters.before_write
        self.gradients.cells.parameters = self.parameters
        self.gradients.watch_parameters([(-1 - i, p) for i, (_, p) in enumerate(self.parameters.named)])
        self.root_call = -1  # the model's call that the step began in, when its own hook had begun it
        self.links: list[tuple[Any, Any]] = []
        self.tags: dict[str, None] = {}
        self.unmatched: list[str] = []  # patterns that mean nothing in this step
        self.seconds = 0.0  # measured time of ours on the training thread
        self.wants_spectra = False  # singular values are wanted of this step

    @property
    def recorder(self) -> StepRecorder:
        """With all that it has heard so far; `heard` may not have looked at it yet."""
        self.heard.catch_up()
        return self.heard

    def begin(self) -> None:
        heard = self.heard
        if heard.shortcuts.count != len(heard.known_calls):
            heard.shortcuts.look()
        if self.parameters.ahead.helps:
            self.parameters.ahead.begin_step(heard.known_calls, heard.shortcuts.chains)
        if not heard.postpones:  # otherwise that can wait until something draws random numbers
            heard.random_state = torch.get_rng_state()  # a step that went wrong may be computed again
        self.listener.open()

    def measure_early(self, raw: RawCollector, known: Courses) -> None:
        """The step will be recorded and its samples are chosen: values need not be held until it ends."""
        self.meter = self.heard.holder.meter = Meter(self.heard, self.batches, raw, known)

    def end(self) -> None:
        self.seconds += len(self.heard.notes.taken) * SECS_PER_NOTE
        self.listener.close()
        self.gradients.stop()
        if self.meter is not None:
            self.meter.end()

    def wipe(self) -> None:
        """Drop all that was noted of the user's tensors."""
        if self.listener.is_open:  # the end has failed
            self.listener.close()
        self.gradients.let_go()
        self.heard.notes.end_step()
        self.parameters.let_go()

    def let_go(self) -> None:
        """Drop every reference to the user's tensors."""
        self.wipe()
        if self.heard.calls.entries:
            self._inventory.was_heard = True
        self.heard.holder.meter = None
        if self.meter is not None:
            self.meter.last = []
        self.heard.kept.clear()
        self.heard.close()
        del self.heard.holder.recorder  # or they would keep each other alive until the garbage collector comes

    # ---- for another step ------------------------------------------------------------------------

    def is_blank(self) -> bool:
        """Whether all that it has are notes: without them it is as good as new."""
        heard = self.heard
        if not heard.postpones or heard.notes.were_read or len(heard.nodes) != heard.known_before:
            return False
        return not (heard.calls.entries or heard.holder.entries or heard.notices or self.tags or self.links)

    def renew(self, selection: Selection) -> bool:
        """Whether a blank one can be used for a step that begins now."""
        inventory = self._inventory
        if not inventory.is_the_same() or selection is not self.selection or inventory.calls is not self._names:
            return False
        self.parameters.versions = versions_of(self.parameters.tensors)
        self.gradients.is_stopped = False
        self.thread = threading.get_ident()
        self.root_call, self.seconds, self.wants_spectra = -1, 0.0, False
        return True

    # ---- model calls -----------------------------------------------------------------------------

    def enter_model(self, model: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """The step began inside the call of a model, so that call was not heard beginning."""
        self.root_call = self.recorder.begin_module(model, args, kwargs)

    def leave_model(self, model: torch.nn.Module, out: Any) -> bool:
        """Whether this was the call in which the step began."""
        call = self.root_call
        if call >= 0 and self.heard.calls.entries[call].module is model:
            self.root_call = -1
            self.heard.end_root(call, out)
            return True
        return False

    def was_dropped(self, forwards: int, most: int) -> bool:
        """No `optimizer.step()` came: gradients were cleared, or nothing is learned."""
        self.gradients.drain()
        reached = next((-1 - slot for slot, _ in self.gradients.found if slot < 0), None)
        if reached is None:
            return forwards >= most
        gradient = self.parameters.named[reached][1].grad
        return gradient is None or self.gradients.were_cleared(-1 - reached, gradient)

    def before_update(self, optimizer: Any) -> None:
        """Copy the parameters, and what is held of their memory: an optimizer writes unheard."""
        groups, heard = optimizer.param_groups, self.heard
        moved = groups[0]["params"] if len(groups) == 1 else [p for group in groups for p in group["params"]]
        if not self.gradients.alone:  # who was not heard may have written: nothing that was copied ahead counts
            self.parameters.ahead.end_step()
        self.parameters.copy_those(moved)
        with torch._C.DisableTorchFunction():
            ids = set(map(id, moved))
            for tensor in heard.notes.held():
                if (tensor.is_leaf or tensor._base is not None) and self._lies_in(tensor, ids):
                    heard.catch_up()
                    break
            for slot in heard.kept.keys() - heard.holder.fresh if heard.kept else ():
                tensor = heard.kept[slot]
                if self._lies_in(tensor, ids):
                    with torch.no_grad():
                        heard.kept[slot] = tensor.detach().clone()
                    heard.kept_versions.pop(slot, None)

    def _lies_in(self, tensor: Tensor, parameters: set[int]) -> bool:
        """Whether a tensor is one of these parameters, or a part of one."""
        base = tensor._base
        if base is None:
            return id(tensor) in parameters or self.parameters.share(tensor)
        return id(base) in parameters

    def copy_all(self) -> None:
        """Keep the values of all parameters now: an optimizer is about to move them without saying so again."""
        with torch._C.DisableTorchFunction():
            self.parameters.copy_those(self.parameters.tensors)

    def nonfinite(self) -> bool:
        """Whether any held value or gradient has a NaN or an infinity; one synchronisation for all."""
        held = [*self.recorder.kept.values(), *(g for found in self.gradients.found.values() for g in found)]
        with torch.no_grad(), torch._C.DisableTorchFunction():
            sums = [found for found in map(_strangeness, held) if found is not None]
            return bool(sums) and float(torch.stack(sums).sum()) != 0.0

    def cost(self) -> float:
        """Seconds spent on the training thread until the step ended; hearing is estimated, measuring it costs more."""
        heard = self.heard
        spent = len(heard.nodes) * SECS_PER_OPERATION + len(heard.calls.entries) * SECS_PER_CALL
        return self.seconds + spent + (0.0 if self.meter is None else self.meter.seconds)

    def shape(self, slot: int) -> tuple[int, ...] | None:
        """Of a value, also if it is not held any more."""
        tensor = self.recorder.kept.get(slot)
        if tensor is not None:
            return size_of(tensor)
        return None if self.meter is None else self.meter.shapes.get(slot)

    # ---- what the user says ----------------------------------------------------------------------

    def tag(self, name: str, role: str, kind: str, tensor: Tensor, batch_dim: int | None) -> None:
        with torch._C.DisableTorchFunction():
            self.recorder.holder.hold(name, role, kind, tensor, -1, -1 if batch_dim is None else batch_dim)
        self.tags[name] = None
        if kind == "loss":
            self.recorder.name_loss(tensor, name)

    def link(self, a: Any, b: Any) -> None:
        with torch._C.DisableTorchFunction():
            ends = [self.recorder.read(end) if isinstance(end, Tensor) else str(end) for end in (a, b)]
        self.links.append((ends[0], ends[1]))

    # ---- what is recorded ------------------------------------------------------------------------

    def items(self) -> list[Item]:
        """Every recorded tensor of the step: inputs, parameters, buffers, then what was computed, in order."""
        recorder, counts = self.recorder, {}  # type: ignore[var-annotated]
        items: list[Item] = []

        def add(node: str, role: str, kind: str, slot: int, module: str, batch_dim: int | None) -> None:
            number = counts[node, role] = counts.get((node, role), 0) + 1
            source = place_of(recorder, slot) if slot >= 0 else ""
            items.append(Item(node, role, number, kind, slot, module, source, batch_dim))

        for slot, kind in self._from_outside():
            add(self._free("data" if kind == "input" else "target"), "", kind, slot, "", None)
        for position, (name, _) in enumerate(self.parameters.named):
            add(name, "", "parameter", -1 - position, name.rpartition(".")[0], -1)
        for name, _ in self.parameters.buffers:
            add(name, "", "buffer", _BUFFER, name.rpartition(".")[0], -1)
        for held in recorder.holder.entries:
            node, kind, module = self._computed_name(held)
            add(node, held.role, kind, held.slot, module, held.batch_dim)
        return self.selection.choose(self, items)

    def _from_outside(self) -> list[tuple[int, str]]:
        """Slots of tensors that appeared outside of all models, without a name: data that leads into a model, or what
        results are compared with."""
        recorder = self.recorder
        waiting = [slot for call in recorder.calls.entries if call.root for slot in call.entered]
        has_models, above = bool(waiting), set[int]()
        while waiting:
            slot = waiting.pop()
            if slot not in above:
                above.add(slot)
                waiting += [s for read in recorder.nodes[recorder.slot_node[slot]][4] for s in slots_of(read)]
        named = {held.slot for held in recorder.holder.entries if held.call < 0 or held.kind == "input"}
        slots = [recorder.nodes[n][5] for n, s in recorder.sources.items() if s.kind is Kind.INPUT and not s.name]
        return [(s, "target" if has_models and s not in above else "input") for s in slots if s not in named]

    def not_held(self) -> list[GapRecord]:
        reason = "it exists only inside of torch.func: vmap, grad and the like"
        return [GapRecord(self._computed_name(held)[0], "value", reason) for held in self.recorder.holder.refused]

    def _computed_name(self, held: Held) -> tuple[str, str, str]:
        if held.call < 0:
            return held.node, held.kind, ""
        calls = self.recorder.calls
        address = calls.address(calls.entries[held.call])
        if held.kind == "input":
            return f"{address}.input" if address else self._free("input"), "input", address
        if id(calls.entries[held.call].module) in self.recorder.roots:
            return address or self._free("output"), "output", address
        return address, held.kind, address

    def _free(self, word: str) -> str:
        """`input` and `output`, unless a module has that very name."""
        taken = any(address == word for address, _ in self.recorder.calls.addresses.values())
        return f"({word})" if taken else word

    def structure(self, structures: Structures) -> Structure:
        """Items and graph of this step, or those of an earlier one that was built the same."""
        parameters = self.parameters
        names = tuple([name for name, _ in (*parameters.named, *parameters.buffers)])
        key = (tuple(self.recorder.holder.entries), tuple(self.links), names)
        return structures.of(self.recorder, key, self._build)

    def _build(self) -> tuple[list[Item], dict[str, Any]]:
        items = self.items()
        reads = first_calls(self.recorder)
        graph = build_graph(self.recorder, self._placed(items, reads), self._stated(items), self.shape, reads)
        owned = dict([*self.parameters.named, *self.parameters.buffers])
        for node in graph["nodes"]:
            if node["kind"] in ("parameter", "buffer"):  # also those that nothing read
                node["shape"] = list(owned[node["node"]].shape)
        return items, graph

    def _placed(self, items: list[Item], reads: dict[int, int]) -> list[Item]:
        """The same items with the slots at which parameters and buffers were read."""
        recorder = self.recorder
        used = reads.keys() | {held.slot for held in recorder.holder.entries}
        named = [(source.name, recorder.nodes[n][5]) for n, source in recorder.sources.items() if source.name]
        read = {name: slot for name, slot in named if slot in used}
        return [i if i.slot >= 0 else i._replace(slot=read.get(i.node, -1)) for i in items]

    def _stated(self, items: list[Item]) -> list[tuple[int, int]]:
        last_by_name = {item.node: i for i, item in enumerate(items)}
        last_by_slot = {item.slot: i for i, item in enumerate(items)}

        def position(end: Any) -> int | None:
            return last_by_name.get(end) if isinstance(end, str) else last_by_slot.get(end)

        ends = [(position(a), position(b)) for a, b in self.links]
        return [(a, b) for a, b in ends if a is not None and b is not None]


def _strangeness(tensor: Tensor) -> Tensor | None:
    """Zero if all numbers are finite; None if it cannot be told."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.is_meta:
        return None
    try:
        value = tensor.detach()
        if value.layout is torch.sparse_coo:
            value = value._values()
        if value.element_size() == 1:
            value = value.float()
        # A difference of a number with itself is zero unless it is not finite; sums could overflow.
        return (value - value).abs().sum().float().cpu()
    except Exception:  # what an exotic tensor cannot do must not silence the trigger
        return None
