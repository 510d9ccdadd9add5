"""The recorder: a torch function mode that writes one raw tuple per operation of one thread.

    func(*args) ─► ear.hear ─► ordinary calls end here, in `nodes`
                       └─► hear_slowly ─► in-place calls, values that leave torch, registered operators

Nothing is named, sorted or explained here; `assemble.py` does that once the traced code has ended.

Slots are numbers of tensor values, in order of creation. `ids` says which slot a tensor object holds now. With
`full` the tensors are held, so an id cannot be re-used by a stranger; otherwise only weak references are held and
checked at every read.
"""

from __future__ import annotations

import contextlib
import weakref
from time import perf_counter_ns
from types import MethodType
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from endoscope.capture import boundary
from endoscope.capture.aliasing import Aliasing, Read
from endoscope.capture.calls import Calls
from endoscope.capture.ear import autocast_settings, make_ear, without_tensor
from endoscope.capture.functions import CONTROL, KNOWN, SHARING, UNINITIALISED, FunctionFacts, Role, describe
from endoscope.capture.leaves import ATOMS, argument_tensors, frozen, map_arguments, named_leaves
from endoscope.capture.observers import OwnMode
from endoscope.capture.records import SOURCE, Departure, Meta, Source, grad_fn_of, meta_of, slots_of
from endoscope.capture.regions import is_uninitialised, version_of
from endoscope.capture.registered import call_inside
from endoscope.capture.source import source_line, user_callers, user_position
from endoscope.capture.torch_private import DisableTorchFunction
from endoscope.capture.torch_private import backward_task as _task
from endoscope.capture.torch_private import dispatch_depth as _dispatch_depth
from endoscope.capture.torch_private import get_unwrapped as _get_unwrapped
from endoscope.capture.torch_private import is_wrapped as _is_wrapped
from endoscope.capture.torch_private import no_dispatch_modes as _no_dispatch_modes
from endoscope.schema.ops import Kind, Notice

_PLAIN = (Tensor, Parameter)


class Recorder(OwnMode):
    """Hears one thread between `__enter__` and `__exit__`; see the module's picture.

    `keeper` decides about keeping when not everything is kept, `gradients` gathers gradients.
    """

    target: torch.nn.Module | None = None
    stranger_kind = Kind.CONSTANT
    inside_target = False
    save_text = "'all'"  # what the user asked to keep
    random_state: Tensor | None = None  # of the CPU, when the traced code began
    chosen: set[int] | None = None  # nodes that `save` selected; None for all
    editor: Any = None  # applies edits, if any were asked for
    before_writes: Any = None  # told what is about to be overwritten
    outcome: Any = None  # told what becomes of each operation, where an error of ours must not reach the traced code
    storages: list[int | None] | None = None  # slot -> its memory, when a rerun has asked

    def __init__(self, *, full: bool = True, keeper: Any = None, gradients: Any = None) -> None:
        super().__init__()
        self.full = full
        self.keeper = keeper
        self.gradients = gradients
        self.calls = Calls()
        # operations
        self.nodes: list[Any] = []  # fields of Node, as plain tuples for speed
        self.rng: dict[int, Any] = {}  # node -> generator and its state before the call
        self.sources: dict[int, Source] = {}  # node -> where it came from
        self.sequences: set[int] = set()  # nodes whose function returned a list or tuple
        self.hidden_reads: dict[int, list[Read]] = {}  # node -> what an opaque body reads besides its arguments
        self.edited: dict[int, list[Any]] = {}  # node -> edits.Applied, in order
        # tensors
        self.ids: dict[int, int] = {}  # id of tensor -> slot
        self.objects: list[Any] = []  # slot -> tensor; without `full` a weak reference
        self.slot_node: list[int] = []  # slot -> node
        self.versions: list[int] = []  # slot -> version counter at capture (with `full`)
        self.metas: dict[int, Meta] = {}  # slot -> what it was, where the tensor itself cannot tell any more
        self.kept: dict[int, Tensor] = {}  # slot -> copy, or value kept although not `full`
        self.kept_versions: dict[int, int] = {}
        self.fingerprints: dict[int, bytes] = {}  # slot -> sign of its memory, for tensors that others own
        self.stale: set[int] = set()  # slots that were overwritten unheard
        self.anchors: list[Any] = []  # tensors held only so that their ids stay their own
        self.aliasing = Aliasing(self.ids, self.objects, full)
        # what could not be heard
        self.departures: list[Departure] = []
        self.strangers: list[tuple[int, str]] = []  # node, grad_fn of a tensor that came from nowhere
        self.notices: list[Notice] = []
        self.simple: dict[Any, FunctionFacts] = {}  # functions that were met so far: ordinary operations
        self.passing: set[Any] = set()  # metadata reads and the like
        self.slow: dict[Any, FunctionFacts] = {}  # all others
        self.begin_hearing()

    def begin_hearing(self) -> None:
        self.__torch_function__ = MethodType(make_ear(self), self)  # type: ignore[method-assign]

    def close(self) -> None:
        """The traced code has ended: let go of everything that would keep the trace alive in circles."""
        del self.__torch_function__
        self.keeper = self.editor = None
        self.slow = {}

    def learn(self, func: Any, simple: dict[Any, FunctionFacts], passing: set[Any]) -> FunctionFacts | None:
        facts = KNOWN.get(func) or KNOWN.setdefault(func, describe(func))
        if facts.role == Role.RECORD and not facts.random:
            simple[func] = facts
            return facts
        if facts.role == Role.PASS:
            passing.add(func)
        self.slow[func] = facts
        return None

    # ---- everything that is not an ordinary call -------------------------------------------------

    def hear_slowly(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        if facts.role == Role.PASS or _task() != -1:
            return self.call(func, args, kwargs)
        if facts.role == Role.OPEN:
            return self._open(func, facts, args, kwargs)
        if facts.role == Role.LEAVE:
            return self._leave(func, facts, args, kwargs)
        if facts.reshapes:
            return self._reshape(func, facts, args, kwargs)
        if facts.role == Role.COPY:
            return self._deepcopy(func, facts, args, kwargs)
        position = user_position()
        written = [t for t in facts.written(args, kwargs) if isinstance(t, Tensor)] if facts.written else []
        if kwargs.get("out") is not None:
            written = []
            argument_tensors(kwargs["out"], written)
        reads = self.reads_of(args, kwargs, written if facts.overwrites else ())
        self.before_call(written, facts, kwargs.get("generator"))
        started = perf_counter_ns()
        if self.editor is None:
            out = self.call(func, args, kwargs)
        else:
            out = self.editor.call(func, facts, position, written, args, kwargs)
        ended = perf_counter_ns()
        result = self.after_call((func, facts, args, kwargs, reads, started, ended, *position), out, written)
        for tensor in written if facts.uncounted else ():
            self._copy_now(tensor)
        return result

    def call(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """The operation of the traced code itself."""
        return func(*args, **kwargs) if self.outcome is None else self.outcome.call(func, args, kwargs)

    def before_call(self, written: list[Tensor], facts: FunctionFacts, generator: torch.Generator | None) -> None:
        """Save what the call will destroy or advance."""
        if written:
            if self.before_writes is not None:
                self.before_writes(written)
            self._look_for_unheard_writes(written)
            self.aliasing.before_write(written, self._copy)
        if facts.random and self.full:
            state = torch.get_rng_state() if generator is None else generator.get_state()
            self.rng[len(self.nodes)] = (generator, state)

    def after_call(self, call: tuple[Any, ...], out: Any, written: Any = ()) -> Any:
        """Note a call whose result is not simply one fresh tensor."""
        func, facts, args, kwargs, reads, started, ended, code, instruction = call
        found: list[Tensor] = []
        argument_tensors(out, found)
        rest = [t for t in written if not any(t is f for f in found)]
        if not found and not rest:
            return out
        if not found:
            found, rest = rest, []  # `x[0] = 1` returns nothing: what it changed is its result
        if not written:
            self.narrow(args, kwargs, reads, found)
        if self.editor is not None:
            out, found = self.editor.edited(call, out, found)
        node, slot = len(self.nodes), len(self.objects)
        tensors = [*found, *rest]
        for tensor in tensors:
            self._new_slot(tensor, node)
        if isinstance(out, (tuple, list)):
            self.sequences.add(node)
        if self.full:
            bare, named = frozen(args), map_arguments(kwargs, lambda tensor: tensor) if kwargs else kwargs
        else:
            bare, named = map_arguments(args, without_tensor), map_arguments(kwargs, without_tensor)
        self.nodes.append(
            (
                facts, func, bare, named,
                reads, slot, len(found), len(rest), started, ended, code, instruction, self.calls.current,
                autocast_settings(), torch.is_grad_enabled(),
            )
        )  # fmt: skip
        changed = {id(t) for t in written}
        for number, tensor in enumerate(tensors, slot):
            if id(tensor) in changed:
                self.aliasing.after_write(tensor, number)
            self.keep(node, number, tensor)
        return out

    def _leave(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        reads = self.reads_of(args, {})
        if facts.name in SHARING:  # whoever gets the memory may write into it, unheard: save what is in it
            self.aliasing.before_write([t for t in args if isinstance(t, Tensor)], self._copy)
        out = self.call(func, args, kwargs)
        control = facts.name in CONTROL or isinstance(out, bool)
        value = out if type(out) in (bool, int, float) else None
        position = (*user_position(), self.calls.current, control)
        self.departures.append(Departure(facts.name, tuple(reads), *position, len(self.nodes), value, user_callers()))
        return out

    def _reshape(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        """`x.t_()` writes no memory, but the tensor is not what it was."""
        reads = self.reads_of(args, kwargs)
        before = self._keep_old_shape(args[0])
        started = perf_counter_ns()
        out = self.call(func, args, kwargs)
        ended = perf_counter_ns()
        self.renew_versions(out)
        call = (func, facts, (before, *args[1:]), kwargs, reads, started, ended, *user_position())
        return self.after_call(call, out)

    def _deepcopy(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        """`copy.deepcopy(x)`: the other argument is Python's table of copies, not an operand."""
        reads = self.reads_of(args[:1], {})
        started = perf_counter_ns()
        out = self.call(func, args, kwargs)
        ended = perf_counter_ns()
        if self.knows(out):  # copied before
            return out
        return self.after_call((Tensor.clone, facts, args[:1], {}, reads, started, ended, *user_position()), out)

    def _open(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        """A registered operator: its Python body is heard too; without one it is a single operation."""
        before, slots = len(self.nodes), len(self.objects)
        position = user_position()
        written = [t for t in facts.written(args, kwargs) if isinstance(t, Tensor)] if facts.written else []
        reads = self.reads_of(args, kwargs)
        self.before_call(written, facts, None)
        scope = self.calls.begin(f"{func}".removesuffix(".default"), len(self.nodes), [])
        started = perf_counter_ns()
        try:
            out = self.call(call_inside, (self, func, args, kwargs), {})
        finally:
            self.calls.leave(scope)
        ended = perf_counter_ns()
        found: list[Tensor] = []
        argument_tensors(out, found)
        if len(self.nodes) > before and self._was_heard([*found, *written], slots):
            return out
        return self.after_call((func, facts, args, kwargs, reads, started, ended, *position), out, written)

    def _was_heard(self, results: list[Tensor], first_slot: int) -> bool:
        """The body's operations made these tensors; an unfilled one was written by address, unheard."""
        for tensor in results:
            slot = self.ids.get(id(tensor), -1) if self.knows(tensor) else -1
            if slot < first_slot or self.nodes[self.slot_node[slot]][0].type in UNINITIALISED:
                return False
        return True

    # ---- slots -----------------------------------------------------------------------------------

    def _new_slot(self, tensor: Tensor, node: int) -> int:
        slot = len(self.objects)
        self.ids[id(tensor)] = slot
        self.aliasing.readers.pop(id(tensor), None)
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
            self.kept[slot] = tensor
            self.kept_versions[slot] = version_of(tensor)
        if self.gradients is not None:
            self.gradients.watch(slot, tensor)

    def _copy(self, slots: list[int], tensor: Tensor) -> None:
        """The value of these slots is about to be overwritten: put a copy in its place."""
        if not self.full:
            slots = [s for s in slots if s in self.kept]
        if not slots or is_uninitialised(tensor):
            return
        meta = meta_of(tensor)
        with torch.no_grad(), _unseen_by_dispatch_modes():
            copy = tensor.detach().clone()
        for slot in slots:
            self.metas[slot] = meta
            self.kept[slot] = copy
            self.kept_versions.pop(slot, None)

    def _copy_now(self, tensor: Tensor) -> None:
        """Batch norm moves its statistics without counting, so a reference could go stale unnoticed."""
        slot = self.ids.get(id(tensor))
        if slot is not None and (self.full or self.objects[slot]() is tensor):
            self._copy([slot] if slot not in self.kept or slot in self.kept_versions else [], tensor)

    def _keep_old_shape(self, tensor: Tensor) -> Tensor:
        """Slots of a tensor that is about to change its shape in place go on with a view that does not."""
        self._copy(self.aliasing.let_go(tensor), tensor)
        with torch.no_grad():
            view = tensor.detach()
        if self.full:
            self.objects[:] = [view if other is tensor else other for other in self.objects]
            for number, node in enumerate(self.nodes):
                given: list[Tensor] = []
                argument_tensors(node[2], given)
                argument_tensors(node[3], given)
                if any(argument is tensor for argument in given):
                    args, kwargs = (map_arguments(a, lambda t: view if t is tensor else t) for a in node[2:4])
                    self.nodes[number] = (*node[:2], args, kwargs, *node[4:])
        return view

    def _look_for_unheard_writes(self, written: list[Tensor]) -> None:
        """The coming write will move the version counter: look now whether it was moved by somebody else."""
        for tensor in written if self.full else ():
            slot = self.ids.get(id(tensor))
            version = self.versions[slot] if slot is not None else -1
            if version >= 0 and not self.aliasing.explains(tensor, version):
                self.stale.update(s for s, _ in self.aliasing.neighbours(tensor) if s not in self.kept)
                self.notice("overwritten", "a tensor was overwritten by code that could not be heard")

    def renew_versions(self, value: Any) -> None:
        """Counters of these tensors were moved by something that is known and changed no value."""
        found: list[Tensor] = []
        argument_tensors(value, found)
        for tensor in found:
            self.aliasing.renew(tensor)

    # ---- who is this tensor? ---------------------------------------------------------------------

    def reads_of(self, args: Any, kwargs: Any, overwritten: Any = ()) -> list[Read]:
        """One read per tensor argument; -1 for the memory behind `out=` and for what is overwritten unread."""
        waiting = [id(t) for t in overwritten]
        reads: list[Read] = []
        for key, value in (("", args), *(kwargs or {}).items()):
            found: list[Tensor] = []
            argument_tensors(value, found)
            for tensor in found:
                if key == "out":
                    reads.append(-1)
                elif id(tensor) in waiting:  # once: in `x.copy_(x)` the second x is read
                    waiting.remove(id(tensor))
                    reads.append(-1)
                else:
                    reads.append(self.read(tensor))
        return reads

    def narrow(self, args: Any, kwargs: Any, reads: list[Read], results: list[Tensor]) -> None:
        """A view of a tensor that was overwritten in part depends only on what was written in its own part."""
        if reads and reads[0].__class__ is tuple:
            first = args[0] if args else next(iter((kwargs or {}).values()), None)
            if first.__class__ in _PLAIN:
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
            return self.add_source(named[0], named[1], tensor)

    def _meet(self, tensor: Tensor) -> Read:
        """First sight of a tensor that no heard operation made, and that has no name."""
        if _is_wrapped(tensor):
            return self.read(_get_unwrapped(tensor))
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

    # ---- tensors that no operation makes ---------------------------------------------------------

    def add_source(self, kind: Kind, name: str, tensor: Tensor) -> int:
        if self.editor is not None:
            tensor = self.editor.source(kind, name, tensor)
        node = len(self.nodes)
        self.sources[node] = Source(kind, name, self.calls.current)
        position = user_position() if kind is Kind.CONSTANT else (None, -1)
        slot = self._new_slot(tensor, node)
        self._add_source_node(kind, [], slot, position)
        self.keep(node, slot, tensor)
        return slot

    def add_output(self, path: str, tensor: Tensor) -> None:
        read = self.read(tensor)
        node = len(self.nodes)
        if isinstance(read, int):
            slot = read
        else:  # several operations wrote into it: a view of its own stands for the whole
            slot = self._new_slot(tensor.detach(), node)
            self.anchors.append(tensor)
        self.sources[node] = Source(Kind.OUTPUT, path, self.calls.current)
        self._add_source_node(Kind.OUTPUT, [read], slot, (None, -1))
        if self.keeper is not None and slot not in self.kept:
            self.keep(node, slot, tensor)

    def _add_source_node(self, kind: Kind, reads: list[Read], slot: int, position: tuple[Any, int]) -> None:
        now = perf_counter_ns()
        self.nodes.append(
            (SOURCE[kind], None, (), None, reads, slot, 1, 0, now, now, *position, self.calls.current, None, True)
        )

    def complete_sources(self) -> None:
        """Parameters and buffers that nothing read are nodes, too."""
        met = {source.name for source in self.sources.values() if source.kind in (Kind.PARAMETER, Kind.BUFFER)}
        for kind, name, tensor in list(self.calls.named.values()):
            if name not in met and not is_uninitialised(tensor):
                self.add_source(kind, name, tensor)

    # ---- modules ---------------------------------------------------------------------------------

    def is_target(self, module: torch.nn.Module) -> bool:
        return module is self.target

    call_module = boundary.call_module

    def begin_module(self, module: torch.nn.Module, args: Any, kwargs: Any) -> int:
        root = not self.inside_target and self.is_target(module)
        if root:
            self.inside_target = True
            boundary.add_inputs(self, boundary.bound_names(module.forward, args, kwargs))
        if id(module) not in self.calls.addresses:
            self.calls.know(module, self.calls.name_for(module))
        entered: list[Tensor] = []
        for value in args:
            if value.__class__ not in ATOMS:
                argument_tensors(value, entered)
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
            self.keeper.module_ended(call, out)
        if entry.root:
            self.calls.leave(call)
            self.inside_target = False
            boundary.add_outputs(self, out)

    def leave(self, call: int) -> None:
        """A module call is over, whether it returned or raised."""
        if self.calls.leave(call).root:
            self.inside_target = False

    def notice(self, kind: str, message: str) -> None:
        """Say once that something could not be heard."""
        entry = Notice(kind, message, source_line(*user_position()))
        if entry not in self.notices:
            self.notices.append(entry)


def _unseen_by_dispatch_modes() -> Any:
    """Our own copies are nobody's business: a dispatch mode of the user does not see them."""
    if _dispatch_depth() == 0:
        return contextlib.nullcontext()
    return _no_dispatch_modes()
