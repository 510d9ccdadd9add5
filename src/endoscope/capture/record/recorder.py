"""The recorder: a torch function mode that writes down one `Node` per operation of one thread.

    func(*args) ─► hot_path.py ─► ordinary calls become nodes here
                        └─► Recorder.record_unusual ─► in-place calls, values that leave torch, registered operators

Nothing is named, sorted or explained here; `assemble.py` does that once the traced code has ended.

Slots are numbers of tensor values, in order of creation. `ids` says which slot a tensor object holds now. With
`full` the recorder holds the tensors, so no other tensor can take over an id; otherwise it holds weak references only
and checks them at every read.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from time import perf_counter_ns
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from endoscope.capture.data.arguments import map_arguments
from endoscope.capture.data.calls import Calls
from endoscope.capture.data.functions import SHARING, FunctionFacts, Role
from endoscope.capture.data.nodes import NO_POSITION, Departure, Draw, Meta, Node, Position, Read, Source, slots_of
from endoscope.capture.data.record import Record
from endoscope.capture.patch.composites import OwnMode
from endoscope.capture.patch.torch_private import DisableTorchFunction, out_of_sight, transform_on_top, transforms_here
from endoscope.capture.patch.torch_private import backward_task as _task
from endoscope.capture.patch.torch_private import get_unwrapped as _get_unwrapped
from endoscope.capture.patch.torch_private import has_autocast as _has_autocast
from endoscope.capture.patch.torch_private import is_any_autocast_on as _autocast_on
from endoscope.capture.patch.torch_private import is_wrapped as _is_wrapped
from endoscope.capture.record.aliasing import Aliasing
from endoscope.capture.record.functions import CONTROL, MOVING_MEMORY, UNINITIALISED, facts_of, overwritten, timed
from endoscope.capture.record.gradients import Gradients
from endoscope.capture.record.leaves import (
    argument_tensors,
    frozen,
    joined_paths,
    named_arguments,
    named_leaves,
    parts_of_wrapper,
    tensors_in,
    without_tensors,
)
from endoscope.capture.record.parts import PLAIN
from endoscope.capture.record.protocols import AppliesEdits, Keeps, NotesOutcome
from endoscope.capture.record.records import SOURCE, TorchCall, grad_fn_of, meta_of
from endoscope.capture.record.regions import is_uninitialised, version_of
from endoscope.capture.record.registered import call_inside
from endoscope.capture.record.source import user_callers, user_position
from endoscope.capture.record.stopping import Stop
from endoscope.capture.record.unfilled import Unfilled
from endoscope.schema.ops import Kind, Notice

_new = tuple.__new__  # a third of what `Node(...)` takes


class Recorder(OwnMode, Record):
    """Records one thread between `__enter__` and `__exit__`, once `hot_path.attach` has given it its handler."""

    target: torch.nn.Module | None = None
    stranger_kind = Kind.CONSTANT
    inside_target = False
    random_state: Tensor | None = None  # of the CPU, when the traced code began
    editor: AppliesEdits | None = None
    before_writes: Callable[[list[Tensor]], None] | None = None  # told what is about to be overwritten
    stop: Stop | None = None  # where the traced code is to end
    outcome: NotesOutcome | None = None  # where an error of ours must not reach the traced code
    storages: list[int | None] | None = None  # slot -> its memory, when a rerun has asked

    def __init__(self, *, full: bool = True, keeper: Keeps | None = None, gradients: Gradients | None = None) -> None:
        """`keeper` decides about keeping when not everything is kept, `gradients` gathers gradients."""
        super().__init__()
        self.full = full
        self.keeper = keeper
        self.gradients = gradients
        self.calls = Calls()
        # operations
        self.nodes: list[Node] = []
        self.rng: dict[int, Draw] = {}  # node -> where it drew random numbers from
        self.generators: dict[int, tuple[torch.Generator, Tensor]] = {}  # id -> of the user's own, its first state
        self.sources: dict[int, Source] = {}  # node -> where it came from
        self.sequences: set[int] = set()  # nodes whose function returned a list or tuple
        self.hidden_reads: dict[int, list[Read]] = {}  # node -> what an opaque body reads besides its arguments
        self.edited: dict[int, list[Any]] = {}  # node -> edit.Applied, in order
        # tensors
        self.ids: dict[int, int] = {}  # id of tensor -> slot
        self.objects: list[Any] = []  # slot -> tensor; without `full` a weak reference
        self.slot_node: list[int] = []  # slot -> node
        self.versions: list[int] = []  # slot -> version counter at capture (with `full`)
        self.metas: dict[int, Meta] = {}  # slot -> what it was, where the tensor itself cannot tell any more
        self.kept: dict[int, Tensor] = {}  # slot -> copy, or value kept although not `full`
        self.kept_versions: dict[int, int] = {}
        self.fingerprints: dict[int, bytes] = {}  # slot -> sign of its memory, for tensors that others own
        self.stale: set[int] = set()  # slots that were overwritten by code that could not be seen
        self.wrapped: dict[int, tuple[Any, Tensor]] = {}  # id of a tensor inside a subclass -> itself, the subclass
        self.backward_passes: list[list[Read]] = []  # the heads of each, inside of the traced code
        self.read_gradients: set[int] = set()  # slots of `x.grad` that a further backward pass may change
        self.anchors: list[Tensor] = []  # held only so that their ids stay their own
        self.aliasing = Aliasing(self.ids, self.objects, full)
        self.unfilled = Unfilled()
        # what could not be seen
        self.departures: list[Departure] = []
        self.strangers: list[tuple[int, str]] = []  # node, grad_fn of a tensor that came from nowhere
        self.notices: list[Notice] = []
        self.simple: dict[Any, FunctionFacts] = {}  # functions that were met so far: ordinary operations
        self.passing: set[Any] = set()  # metadata reads and the like
        self.unusual: dict[Any, FunctionFacts] = {}  # all others

    def close(self) -> None:
        """The traced code has ended: let go of everything that would keep the trace alive in circles."""
        self.__dict__.pop("__torch_function__", None)
        self.keeper = self.editor = None
        self.unusual, self.wrapped = {}, {}
        self.unfilled.pending.clear()

    def live(self, trace: Any) -> Any:
        return trace

    def learned(self) -> set[int]:
        """Weights that belong to no module: functional code keeps them in plain tensors that require a gradient.

        To be asked when the traced code has just ended: later such a tensor may be gone or frozen.
        """
        may_be = [n for n, source in self.sources.items() if source.kind in (Kind.CONSTANT, Kind.INPUT)]
        with DisableTorchFunction():
            return {node for node in may_be if self._is_learned(node)}

    def _is_learned(self, node: int) -> bool:
        tensor = self.dereference(self.objects[self.nodes[node].slot])
        if self.sources[node].kind is Kind.INPUT:  # one that requires a gradient is still an input
            return isinstance(tensor, Parameter)
        return tensor is not None and bool(tensor.requires_grad) and tensor.grad_fn is None

    def learn(self, func: Any) -> FunctionFacts:
        """Sort a function that is met for the first time."""
        facts = facts_of(func)
        if facts.role == Role.RECORD and not facts.random and facts.type not in UNINITIALISED:
            self.simple[func] = facts
        else:
            self.unusual[func] = facts
            if facts.role == Role.PASS:
                self.passing.add(func)
        return facts

    # ---- everything that is not an ordinary call -------------------------------------------------

    def record_unusual(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        if facts.role == Role.PASS or _task() != -1:
            return self.call(func, args, kwargs)
        if self.unfilled.pending:
            self.look_for_unfilled(facts, args, kwargs)
        if facts.role == Role.OPEN:
            return self._open(func, facts, args, kwargs)
        if facts.role == Role.LEAVE:
            return self._leave(func, facts, args, kwargs)
        if facts.reshapes:
            return self._reshape(func, facts, args, kwargs)
        if facts.role == Role.COPY:
            return self._deepcopy(func, facts, args, kwargs)
        if facts.role == Role.GRADIENT:
            return self._read_gradient(func, facts, args)
        position = user_position()
        written = overwritten(facts, args, kwargs)
        reads = self.reads_of(args, kwargs, written if facts.overwrites else ())
        self.before_call(written, facts, kwargs.get("generator"))
        started = perf_counter_ns()
        if self.editor is None:
            out = self.call(func, args, kwargs)
        else:
            out = self.editor.call(func, facts, position, written, args, kwargs)
        call = _new(TorchCall, (func, facts, args, kwargs, reads, started, perf_counter_ns(), position))
        if facts.name == "set_" and len(reads) == 1:
            self._note_memory_of(written[0])
        result = self.after_call(call, out, written)
        for tensor in written if facts.uncounted else ():
            self._copy_now(tensor)
        if facts.type in UNINITIALISED and isinstance(out, Tensor) and not written:
            self.unfilled.add(out, facts.type)
        elif self.unfilled.pending:
            self.unfilled.written_by(facts, args, kwargs, written)
        return result

    def look_for_unfilled(self, facts: FunctionFacts, args: Any, kwargs: dict[str, Any] | None) -> None:
        """The coming call may compute with memory that nobody is known to have filled."""
        maker = self.unfilled.read_by(facts, args, kwargs or {})
        if maker is not None:
            self.notice(
                "unfilled",
                f"{facts.type} reads memory of {maker} that was not written by an operation that Endoscope saw",
            )

    def _note_memory_of(self, tensor: Tensor) -> None:
        """`x.set_(storage)`: no argument is a tensor, but the memory may be that of one that is known."""
        adopted, _ = self.aliasing.adopt(tensor)
        if adopted is not None:
            self.hidden_reads[len(self.nodes)] = [adopted]

    def call(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """The operation of the traced code itself."""
        return func(*args, **kwargs) if self.outcome is None else self.outcome.call(func, args, kwargs)

    def before_call(self, written: list[Tensor], facts: FunctionFacts, generator: torch.Generator | None) -> None:
        """Save what the call will destroy or advance."""
        if written:
            if self.before_writes is not None:
                self.before_writes(written)
            self._look_for_unseen_writes(written)
            self.aliasing.before_write(written, self._copy)
        if facts.random and generator is not None:
            self.generators.setdefault(id(generator), (generator, generator.get_state()))
        if facts.random and self.full:
            state = torch.get_rng_state() if generator is None else generator.get_state()
            self.rng[len(self.nodes)] = Draw(generator, state, randomness_of_vmaps())

    def after_call(self, call: TorchCall, out: Any, written: list[Tensor] | tuple[()] = ()) -> Any:
        """Note a call whose result is not simply one fresh tensor."""
        found = tensors_in(out)
        rest = [t for t in written if not any(t is f for f in found)]
        if not found and not rest:
            return out
        if not found:
            found, rest = rest, []  # `x[0] = 1` returns nothing: what it changed is its result
        if not written:
            self.narrow(call.args, call.kwargs, call.reads, found)
        if self.editor is not None:
            out, found = self.editor.edited(call, out, found)
        node, slot = len(self.nodes), len(self.objects)
        tensors = [*found, *rest]
        for tensor in tensors:
            self._new_slot(tensor, node)
        if isinstance(out, (tuple, list)):
            self.sequences.add(node)
        func, facts, args, kwargs, reads, started, ended, position = call
        if self.full:
            args, kwargs = frozen(args), map_arguments(kwargs, lambda tensor: tensor) if kwargs else kwargs
        else:
            args, kwargs = without_tensors(args), without_tensors(kwargs)
        self.nodes.append(
            _new(Node, (
                facts, func, args, kwargs, reads, slot, len(found), len(rest), started, ended, *position,
                self.calls.current, autocast_settings(), torch.is_grad_enabled(), None, None, None, None,
            ))
        )  # fmt: skip
        changed = {id(t) for t in written}
        for number, tensor in enumerate(tensors, slot):
            if id(tensor) in changed:
                self.aliasing.after_write(tensor, number, moved=facts.name in MOVING_MEMORY)
            self.keep(node, number, tensor)
        return out

    def _leave(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        reads = self.reads_of(args, {})
        if facts.name in SHARING:  # whoever gets the memory may write into it, unseen: save what is in it
            self.aliasing.before_write([t for t in args if isinstance(t, Tensor)], self._copy)
        out = self.call(func, args, kwargs)
        control = facts.name in CONTROL or isinstance(out, bool)
        value = out if type(out) in (bool, int, float) else None
        node, position, call = len(self.nodes), user_position(), self.calls.current
        self.departures.append(
            Departure(facts.name, tuple(reads), position, call, control, node, value, user_callers())
        )
        return out

    def _reshape(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        """`x.t_()` writes no memory, but the tensor is not what it was."""
        reads = self.reads_of(args, kwargs)
        before = self._keep_old_shape(args[0])
        out, started, ended = timed(self.call, (func, args, kwargs), {})
        self.renew_versions(out)
        given = (before, *args[1:])
        return self.after_call(TorchCall(func, facts, given, kwargs, reads, started, ended, user_position()), out)

    def _deepcopy(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        """`copy.deepcopy(x)`: the other argument is Python's table of copies, not an operand."""
        reads = self.reads_of(args[:1], {})
        out, started, ended = timed(self.call, (func, args, kwargs), {})
        if self.knows(out):  # copied before
            return out
        call = TorchCall(Tensor.clone, facts, args[:1], {}, reads, started, ended, user_position())
        return self.after_call(call, out)

    def backward_begins(self, heads: list[Tensor]) -> None:
        """A backward pass inside of the traced code: it adds to gradients that were read before, unseen."""
        gradients = [self.dereference(self.objects[slot]) for slot in self.read_gradients]
        self.aliasing.before_write([tensor for tensor in gradients if tensor is not None], self._copy)
        self.backward_passes.append([self.read(head) for head in heads])

    def _read_gradient(self, func: Any, facts: FunctionFacts, args: Any) -> Any:
        """`x.grad` comes from x, and from the heads of those backward passes to which x leads."""
        node, reads = len(self.nodes), self.reads_of(args, {})
        out, started, ended = timed(self.call, (func, args, {}), {})
        if out is None:
            return None
        made = {self.slot_node[slot] for read in reads for slot in slots_of(read)}
        heads = [read for heads in self.backward_passes for read in heads]
        found = [read for read in heads if any(self._leads_to(maker, read) for maker in made)]
        if found:
            self.hidden_reads[node] = found
        out = self.after_call(TorchCall(func, facts, args, {}, reads, started, ended, user_position()), out)
        self.read_gradients.add(self.ids[id(out)])
        return out

    def _leads_to(self, node: int, read: Read) -> bool:
        """Whether a value that is read depends on a node."""
        waiting, seen = [self.slot_node[slot] for slot in slots_of(read)], set[int]()
        while waiting:
            current = waiting.pop()
            if current == node:
                return True
            if current > node and current not in seen:  # parents come before their children
                seen.add(current)
                waiting += [self.slot_node[s] for one in self.nodes[current].reads for s in slots_of(one)]
        return False

    def _open(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        """A registered operator: its Python body is recorded too; without one it is a single operation."""
        before, slots = len(self.nodes), len(self.objects)
        position = user_position()
        written = overwritten(facts, args, kwargs)
        reads = self.reads_of(args, kwargs)
        self.before_call(written, facts, None)
        scope = self.calls.begin(f"{func}".removesuffix(".default"), len(self.nodes), [])
        try:
            out, started, ended = timed(self.call, (call_inside, (self, func, args, kwargs), {}), {})
        finally:
            self.calls.leave(scope)
        if len(self.nodes) > before and self._was_recorded([*tensors_in(out), *written], slots):
            return out
        return self.after_call(TorchCall(func, facts, args, kwargs, reads, started, ended, position), out, written)

    def _was_recorded(self, results: list[Tensor], first_slot: int) -> bool:
        """The body's operations made these tensors; an unfilled one was written by address, unseen."""
        for tensor in results:
            slot = self.ids[id(tensor)] if self.knows(tensor) else None
            if slot is None or slot < first_slot or self.nodes[self.slot_node[slot]].facts.type in UNINITIALISED:
                return False
        return True

    # ---- slots -----------------------------------------------------------------------------------

    def _new_slot(self, tensor: Tensor, node: int) -> int:
        slot = len(self.objects)
        self.ids[id(tensor)] = slot
        self.aliasing.readers.pop(id(tensor), None)
        if tensor.__class__ not in PLAIN:
            self.aliasing.has_wrappers = True
            self.wrapped.update({id(part): (weakref.ref(part), tensor) for part in parts_of_wrapper(tensor)})
        self.slot_node.append(node)
        if self.full:
            self.objects.append(tensor)
            self.versions.append(version_of(tensor))
        else:
            self.objects.append(weakref.ref(tensor))
            self.metas[slot] = meta_of(tensor)
        return slot

    def dereference(self, reference: Any) -> Any:
        """The tensor of an entry of `objects`; None if it is gone."""
        return reference if self.full else reference()

    def keep(self, node: int, slot: int, tensor: Tensor) -> None:
        if self.keeper is not None:
            if not self.keeper.wants(node, slot, tensor):
                return
            self.hold(slot, tensor)
        if self.gradients is not None:
            self.gradients.watch(slot, tensor)

    def hold(self, slot: int, tensor: Tensor) -> None:
        """Keep a value by reference; it is copied if somebody is about to overwrite it."""
        self.kept[slot] = tensor
        self.kept_versions[slot] = version_of(tensor)

    def _copy(self, slots: list[int], tensor: Tensor) -> None:
        """The value of these slots is about to be overwritten: put a copy in its place."""
        if not self.full:
            slots = [s for s in slots if s in self.kept]
        if not slots or is_uninitialised(tensor):
            return
        meta = meta_of(tensor)
        with torch.no_grad(), out_of_sight():
            copy = tensor.detach().clone()
        for slot in slots:
            self.metas[slot] = meta
            self.kept[slot] = copy
            self.kept_versions.pop(slot, None)

    def _copy_now(self, tensor: Tensor) -> None:
        """Batch norm moves its statistics without counting, so a reference could go stale unnoticed."""
        if self.knows(tensor):
            slot = self.ids[id(tensor)]
            self._copy([slot] if slot not in self.kept or slot in self.kept_versions else [], tensor)

    def _keep_old_shape(self, tensor: Tensor) -> Tensor:
        """Slots of a tensor that is about to change its shape in place go on with a view that does not."""
        self._copy(self.aliasing.let_go(tensor), tensor)
        with torch.no_grad():
            view = tensor.detach()

        def exchanged(other: Tensor) -> Tensor:
            return view if other is tensor else other

        if self.full:
            self.objects[:] = map(exchanged, self.objects)
            for number, node in enumerate(self.nodes):
                if any(given is tensor for given in tensors_in((node.args, node.kwargs))):
                    args, kwargs = map_arguments(node.args, exchanged), map_arguments(node.kwargs, exchanged)
                    self.nodes[number] = node._replace(args=args, kwargs=kwargs)
        return view

    def _look_for_unseen_writes(self, written: list[Tensor]) -> None:
        """The coming write will move the version counter: look now whether it was moved by somebody else."""
        for tensor in written if self.full else ():
            slot = self.ids.get(id(tensor))
            version = self.versions[slot] if slot is not None else -1
            if version >= 0 and not self.aliasing.explains(tensor, version):
                self.stale.update(s for s, _ in self.aliasing.neighbours(tensor) if s not in self.kept)
                self.notice("overwritten", "a tensor was overwritten by code that could not be seen")

    def renew_versions(self, value: Any) -> None:
        """Counters of these tensors were moved by something that is known and changed no value."""
        for tensor in tensors_in(value):
            self.aliasing.renew(tensor)

    # ---- who is this tensor? ---------------------------------------------------------------------

    def reads_of(self, args: Any, kwargs: Any, overwritten: Iterable[Tensor] = ()) -> list[Read]:
        """One read per tensor argument; empty for the memory behind `out=` and for what is overwritten unread."""
        waiting = [id(t) for t in overwritten]
        reads: list[Read] = []
        for key, value in (("", args), *(kwargs or {}).items()):
            for tensor in tensors_in(value):
                if key == "out":
                    reads.append(())
                elif id(tensor) in waiting:  # once: in `x.copy_(x)` the second x is read
                    waiting.remove(id(tensor))
                    reads.append(())
                else:
                    reads.append(self.read(tensor))
        return reads

    def narrow(self, args: Any, kwargs: Any, reads: list[Read], results: list[Tensor]) -> None:
        """A view of a tensor that was overwritten in part depends only on what was written in its own part."""
        if reads and reads[0].__class__ is tuple:
            first = args[0] if args else next(iter((kwargs or {}).values()), None)
            if first.__class__ in PLAIN:
                reads[0] = self.aliasing.narrow(first, reads[0], results)

    def knows(self, tensor: Tensor) -> bool:
        slot = self.ids.get(id(tensor))
        return slot is not None and self.dereference(self.objects[slot]) is tensor

    def read(self, tensor: Tensor) -> Read:
        """The slot, or slots, whose values are seen through `tensor` now."""
        if self.editor is not None:
            tensor = self.editor.seen(tensor)
        slot = self.ids.get(id(tensor))
        if slot is not None and (self.full or self.objects[slot]() is tensor):
            note = self.aliasing.readers.get(id(tensor))
            return note.read() if note is not None else slot
        with DisableTorchFunction():  # also reached from module calls, while the mode is on
            named = self.calls.named.get(id(tensor))
            if named is None:
                return self._meet(tensor)
            return self.add_named(named[0], named[1], tensor)

    def _meet(self, tensor: Tensor) -> Read:
        """First sight of a tensor that no recorded operation made, and that has no name."""
        if _is_wrapped(tensor):
            return self.read(_get_unwrapped(tensor))
        parts = parts_of_wrapper(tensor)
        if any(map(self.knows, parts)):
            return self._add_unseen(type(tensor).__name__, parts, tensor)
        inside, wrapper = self.wrapped.get(id(tensor), (None, None))
        if inside is not None and wrapper is not None and inside() is tensor and self.knows(wrapper):
            return self._add_unseen("part", [wrapper], tensor)
        adopted, whole = self.aliasing.adopt(tensor)
        if adopted is not None and whole:
            return adopted  # another Python object over memory that is known
        if isinstance(tensor, Parameter):
            return self.add_source(Kind.PARAMETER, self.calls.name_for(tensor), tensor)
        inside = self.inside_target or self.target is None
        slot = self.add_source(self.stranger_kind if inside else Kind.INPUT, "", tensor)
        if adopted is not None:
            return self.aliasing.overlay(tensor, slot, slots_of(adopted))
        grad_fn = grad_fn_of(tensor)
        if grad_fn is not None and inside:
            self.strangers.append((self.slot_node[slot], type(grad_fn).__name__))
        return slot

    def _add_unseen(self, name: str, given: list[Tensor], tensor: Tensor) -> Read:
        """A subclass without memory was put around tensors, or one of these was taken out: no function says so."""
        facts, now = FunctionFacts(name, name, Role.RECORD, replayable=False, opaque=True), perf_counter_ns()
        reads = [self.read(one) for one in given]
        self.after_call(TorchCall(type(tensor), facts, tuple(given), {}, reads, now, now, user_position()), tensor)
        return self.ids[id(tensor)]

    # ---- tensors that no operation makes ---------------------------------------------------------

    def add_source(self, kind: Kind, name: str, tensor: Tensor) -> int:
        if self.editor is not None:
            tensor = self.editor.source(kind, name, tensor)
        node = len(self.nodes)
        position = user_position() if kind is Kind.CONSTANT else NO_POSITION
        slot = self._new_slot(tensor, node)
        self._add_source_node(kind, name, [], slot, position)
        self.keep(node, slot, tensor)
        return slot

    def add_named(self, kind: Kind, name: str, tensor: Tensor) -> int:
        """A parameter or buffer of a target: `calls` holds it, so that nothing need be noted where no value is kept."""
        if self.full or self.editor is not None or self.gradients is not None or self.keeper is None:
            return self.add_source(kind, name, tensor)
        node, slot, call = len(self.nodes), len(self.objects), self.calls.current
        self.ids[id(tensor)] = slot
        self.slot_node.append(node)
        self.objects.append(weakref.ref(tensor))
        self.sources[node] = Source(kind, name, call)
        self.nodes.append(
            _new(Node, (
                SOURCE[kind], None, (), None, [], slot, 1, 0, 0, 0, None, -1, call, None, True, None, None, None, None,
            ))
        )  # fmt: skip
        if not self.keeper.idle:
            self.keep(node, slot, tensor)
        return slot

    def _add_output(self, path: str, tensor: Tensor) -> None:
        read = self.read(tensor)
        node = len(self.nodes)
        if isinstance(read, int):
            slot = read
        else:  # several operations wrote into it: a view of its own stands for the whole
            slot = self._new_slot(tensor.detach(), node)
            self.anchors.append(tensor)
        self._add_source_node(Kind.OUTPUT, path, [read], slot, NO_POSITION)
        if self.keeper is not None and slot not in self.kept:
            self.keep(node, slot, tensor)

    def _add_source_node(self, kind: Kind, name: str, reads: list[Read], slot: int, position: Position) -> None:
        now, call = perf_counter_ns(), self.calls.current
        self.sources[len(self.nodes)] = Source(kind, name, call)
        self.nodes.append(Node(SOURCE[kind], None, (), None, reads, slot, 1, 0, now, now, *position, call, None, True))

    def add_inputs(self, named_values: list[tuple[str, Any]]) -> None:
        """One node per tensor that is handed to the target and is not known yet."""
        with DisableTorchFunction():
            leaves = [leaf for name, value in named_values for leaf in named_leaves(value, name)]
            for path, tensor in joined_paths(leaves):
                if isinstance(tensor, Tensor) and not self.knows(tensor) and id(tensor) not in self.calls.named:
                    self.add_source(Kind.INPUT, path, tensor)

    def add_outputs(self, result: Any) -> None:
        """One node per tensor that the target returned; it shares the slot of the operation that made it."""
        with DisableTorchFunction():
            for path, value in joined_paths(named_leaves(result)):
                if isinstance(value, Tensor):
                    self._add_output(path, value)
                else:
                    self.notice("generator", "the target returned a generator: what it will compute is not seen")

    def complete_sources(self) -> None:
        """Parameters and buffers that nothing read are nodes, too."""
        met = {source.name for source in self.sources.values() if source.kind in (Kind.PARAMETER, Kind.BUFFER)}
        for kind, name, tensor in list(self.calls.named.values()):
            if name not in met and not is_uninitialised(tensor):
                self.add_named(kind, name, tensor)

    # ---- modules ---------------------------------------------------------------------------------

    def is_target(self, module: torch.nn.Module) -> bool:
        return module is self.target

    def call_module(self, original: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        """`original(module, ...)`, as a call of that module."""
        call = self.begin_module(module, args, kwargs)
        try:
            out = original(module, *args, **kwargs)
            self.end_module(call, out)
            return out
        finally:
            self.leave(call)

    def begin_module(self, module: torch.nn.Module, args: Any, kwargs: Any) -> int:
        root = not self.inside_target and self.is_target(module)
        if root:
            self.inside_target = True
            self.add_inputs(named_arguments(module.forward, args, kwargs))
        if id(module) not in self.calls.addresses:
            self.calls.know(module, self.calls.name_for(module))
        entered = tensors_in(args)
        if kwargs:
            argument_tensors(kwargs, entered)
        ids = self.ids
        slots = [ids[id(t)] for t in entered if id(t) in ids]
        return self.calls.begin(module, len(self.nodes), slots, root, user_position(3))

    def end_module(self, call: int, out: Any) -> None:
        entry = self.calls.entries[call]
        found = [out] if out.__class__ is Tensor else [t for _, t in named_leaves(out) if isinstance(t, Tensor)]
        entry.returned = [self.read(t) for t in found]
        entry.last_node = len(self.nodes)
        if self.keeper is not None:
            self.keeper.module_ended(call)
        if entry.root:
            self.calls.leave(call)
            self.inside_target = False
            self.add_outputs(out)
        if self.stop is not None:
            self.stop.returned(entry)

    def leave(self, call: int) -> None:
        """A module call is over, whether it returned or raised."""
        if self.calls.leave(call).root:
            self.inside_target = False

    def notice(self, kind: str, message: str, position: Position | None = None) -> None:
        """Say once that something could not be seen."""
        entry = Notice(kind, message, (position or user_position()).line)
        if entry not in self.notices:
            self.notices.append(entry)


def randomness_of_vmaps() -> dict[int, str]:
    """Level of each `vmap` that is at work -> does it draw other numbers for each element, or the same."""
    if transform_on_top() is None:
        return {}
    return {one.level(): one.randomness() for one in transforms_here() if hasattr(one, "randomness")}


def autocast_settings() -> tuple[tuple[str, torch.dtype], ...] | None:
    """Which devices compute in which type; None without autocast."""
    if not _autocast_on():
        return None
    return tuple(
        (kind, torch.get_autocast_dtype(kind))
        for kind in ("cpu", "cuda", "mps", "xpu")
        if _has_autocast(kind) and torch.is_autocast_enabled(kind)
    )
