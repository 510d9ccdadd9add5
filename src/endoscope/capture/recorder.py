"""The ear: hears every torch function of one thread and appends one raw tuple per operation.

    func(*args) ─► Recorder.hear ─► reads: which slots the arguments are
                                 ─► call torch
                                 ─► slots: one number per tensor that came out
                                 ─► nodes.append(Node fields)

Nothing is named, sorted or explained here; `assemble.py` does that once the code under trace has ended.

Slots are numbers of tensor values, in order of creation. `ids` says which slot a tensor object holds now. With
`full` the tensors are held, so an id cannot be re-used by a stranger; otherwise only weak references are held and
checked at every read.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import weakref
from collections.abc import Callable
from time import perf_counter_ns
from types import CodeType, MethodType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from endoscope.capture.aliasing import Aliasing, Read
from endoscope.capture.functions import CONTROL, FunctionFacts, Role, describe
from endoscope.capture.leaves import ATOMS, TENSOR, argument_tensors, map_arguments, named_leaves
from endoscope.capture.registered import call_inside
from endoscope.capture.source import INNER_FILES, source_line, user_position
from endoscope.schema.ops import Kind, Notice


class Node(NamedTuple):
    """One operation or source tensor, as heard."""

    facts: FunctionFacts
    func: Any
    args: Any  # as given; without `full` the tensors are replaced by `TENSOR`
    kwargs: Any
    reads: list[Read]  # one per tensor argument, in order; -1 where only its memory is used
    slot: int  # first slot
    outputs: int  # how many slots were returned
    written: int  # how many more slots were overwritten without being returned
    started: int
    ended: int
    code: CodeType | None
    instruction: int
    call: int  # index into `calls`, -1 outside every module
    context: Any  # autocast settings, None without autocast
    grad: bool  # whether autograd was on


class Source(NamedTuple):
    """How a tensor that no operation made came in."""

    kind: Kind
    name: str  # dotted name of a parameter or buffer, path of an input
    call: int


class Departure(NamedTuple):
    """A value that left torch for Python."""

    name: str
    read: Read
    code: CodeType | None
    instruction: int
    call: int
    control: bool  # it can only steer control flow


class Meta(NamedTuple):
    """What is remembered of a tensor that is not held."""

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    grad_fn: str | None
    elements: int = -1  # said only where the shape cannot tell

    @property
    def numel(self) -> int:
        return int(self.elements) if self.elements >= 0 else self.shape.numel()

    @property
    def bytes(self) -> int:
        return self.numel * self.dtype.itemsize


SOURCE = {kind: FunctionFacts(kind.value, kind.value, Role.RECORD) for kind in Kind}
_PLAIN = (Tensor, Parameter)
_in_backward = torch._C._current_graph_task_id
_autocast_on = torch._C._is_any_autocast_enabled
_grad_on = torch.is_grad_enabled


def meta_of(tensor: Tensor) -> Meta:
    grad_fn = tensor.grad_fn
    name = grad_fn.name() if grad_fn else None
    if tensor.is_nested:
        return Meta(_ragged_shape(tensor), tensor.dtype, tensor.device, tensor.requires_grad, name, tensor.numel())
    return Meta(tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad, name)


def _ragged_shape(tensor: Tensor) -> torch.Size:
    """Sizes of a nested tensor, -1 where they differ from part to part."""
    sizes = []
    for dim in range(tensor.dim()):
        try:
            sizes.append(int(tensor.size(dim)))
        except (RuntimeError, AttributeError):
            sizes.append(-1)
    return torch.Size(sizes)


def version_of(tensor: Tensor) -> int:
    """How often the tensor's memory was written; -1 for inference tensors, which do not count."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return -1


class Recorder(TorchFunctionMode):
    """Hears one thread between `__enter__` and `__exit__`; see the module's picture.

    `wants(node index, slot, tensor)` decides about keeping when not everything is kept.
    """

    def __init__(
        self, *, full: bool = True, wants: Any = None, gradients: Any = None
    ) -> None:
        super().__init__()
        self.full = full
        self.wants = wants
        self.gradients = gradients
        self.nodes: list[Any] = []  # Node tuples, unnamed for speed
        self.objects: list[Any] = []  # slot -> tensor, or weak reference
        self.slot_node: list[int] = []  # slot -> node
        self.versions: list[int] = []  # slot -> version counter at capture (with `full`)
        self.metas: dict[int, Meta] = {}  # slot -> what it was, where the tensor itself cannot tell any more
        self.kept: dict[int, Tensor] = {}  # slot -> copy, or value kept although not `full`
        self.kept_versions: dict[int, int] = {}
        self.random_state: torch.Tensor | None = None  # of the CPU, when the traced code began
        self.stale: set[int] = set()  # slots that were overwritten unheard
        self.save_text = "'all'"
        self.rng: dict[int, Any] = {}  # node -> state of the generator before it
        self.sources: dict[int, Source] = {}  # node -> where it came from
        self.named: dict[int, tuple[Kind, str, Tensor]] = {}  # id -> parameters and buffers of the target
        self.departures: list[Departure] = []
        self.strangers: list[tuple[int, str]] = []  # node, why it is suspicious
        self.ids: dict[int, int] = {}
        self.calls: list[Any] = []
        self.call = -1
        self.chosen: set[int] | None = None  # nodes that `save` selected; None for all
        self.stranger_kind = Kind.CONSTANT
        self.target: torch.nn.Module | None = None
        self.addresses: dict[int, tuple[str, torch.nn.Module]] = {}
        self.namespace: dict[str, Any] = {}  # the names a plain function sees
        self.nameless: dict[str, int] = {}
        self.notices: list[Notice] = []
        self.sequences: set[int] = set()  # nodes whose function returned a list or tuple
        self.hidden_reads: dict[int, list[Read]] = {}  # node -> what an opaque body reads besides its arguments
        self.anchors: list[Any] = []
        self._inside_target = False
        self.aliasing = Aliasing(self.ids, self.objects, self._dereference)
        self._slow: dict[Any, FunctionFacts] = {}
        self.__torch_function__ = MethodType(self._make_ear(), self)  # type: ignore[method-assign]

    # ---- the hot path -------------------------------------------------------------------------------------

    def _make_ear(self) -> Callable[..., Any]:
        """A closure, because cell variables are read faster than attributes of `self`."""
        ids, objects, slot_node = self.ids, self.objects, self.slot_node
        nodes, versions, readers, metas = self.nodes, self.versions, self.aliasing.readers, self.metas
        simple: dict[Any, FunctionFacts] = {}
        full, careful = self.full, self.wants is not None or self.gradients is not None
        clock, getframe, inner, weak = perf_counter_ns, sys._getframe, INNER_FILES, weakref.ref
        hear_slowly, resolve, learn, narrow = self._hear_slowly, self.read, self._learn, self._narrow
        slow = self._slow
        mode = self

        def hear(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            facts = simple.get(func)
            if facts is None:
                if func not in slow:
                    facts = learn(func, simple)
                if facts is None:
                    return hear_slowly(func, slow[func], args, kwargs or {})
            if (kwargs and "out" in kwargs) or _in_backward() != -1:
                return hear_slowly(func, facts, args, kwargs or {})
            reads: list[Read] = []
            listed = False
            for value in args:
                kind = value.__class__
                if kind is Tensor or kind is Parameter:
                    identity = id(value)
                    slot = ids.get(identity)
                    if slot is None or identity in readers or not (full or objects[slot]() is value):
                        reads.append(resolve(value))
                    else:
                        reads.append(slot)
                elif kind not in ATOMS:
                    listed = True
                    resolve_inside(value, reads)
            if kwargs:
                for value in kwargs.values():
                    if value.__class__ not in ATOMS:
                        listed = True
                        resolve_inside(value, reads)
            frame = getframe(1)
            while inner[frame.f_code.co_filename]:
                frame = frame.f_back
            started = clock()
            out = func(*args, **kwargs) if kwargs else func(*args)
            ended = clock()
            if out.__class__ is not Tensor:
                return mode._after(
                    func, facts, args, kwargs, reads, out, started, ended, frame.f_code, frame.f_lasti
                )
            slot = len(objects)
            if readers:
                narrow(args, reads, [out])
                readers.pop(id(out), None)
            ids[id(out)] = slot
            slot_node.append(len(nodes))
            if full:
                objects.append(out)
                try:
                    versions.append(out._version)
                except RuntimeError:  # inference tensors do not count versions
                    versions.append(-1)
                if listed:
                    args = map_arguments(args, _same)
            else:
                objects.append(weak(out))
                try:
                    grad_fn = out.grad_fn
                    metas[slot] = (  # type: ignore[assignment]
                        out.shape, out.dtype, out.device, out.requires_grad, grad_fn and grad_fn.name()
                    )  # fmt: skip
                except RuntimeError:  # nested tensors have no shape
                    metas[slot] = meta_of(out)
                if listed:
                    args = map_arguments(args, _nothing)
                    kwargs = map_arguments(kwargs, _nothing)
                else:
                    args = [TENSOR if a.__class__ in _PLAIN else a for a in args]
            nodes.append(
                (
                    facts, func, args, kwargs, reads, slot, 1, 0, started, ended, frame.f_code, frame.f_lasti,
                    mode.call, None if not _autocast_on() else _autocast_settings(), _grad_on(),
                )
            )  # fmt: skip
            if careful:
                mode._keep(len(nodes) - 1, slot, out)
            return out

        def resolve_inside(value: Any, reads: list[Read]) -> None:
            found: list[Any] = []
            argument_tensors(value, found)
            for tensor in found:
                reads.append(resolve(tensor))

        return hear

    def _learn(self, func: Any, simple: dict[Any, FunctionFacts]) -> FunctionFacts | None:
        facts = describe(func)
        if facts.role == Role.RECORD and not facts.random:
            simple[func] = facts
            return facts
        self._slow[func] = facts
        return None

    # ---- everything that is not an ordinary call -------------------------------------------------------------

    def _hear_slowly(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        if facts.role == Role.PASS or _in_backward() != -1:
            return func(*args, **kwargs)
        if facts.role == Role.OPEN:
            return self._open(func, facts, args, kwargs)
        if facts.role == Role.LEAVE:
            return self._leave(func, facts, args, kwargs)
        code, instruction = user_position()
        written = [t for t in facts.written(args, kwargs) if isinstance(t, Tensor)] if facts.written else []
        overwrites = facts.overwrites
        if kwargs.get("out") is not None:
            out_argument: list[Tensor] = []
            argument_tensors(kwargs["out"], out_argument)
            written, overwrites = out_argument, True
        reads = self._reads(args, kwargs, written if overwrites else ())
        if written:
            self.aliasing.before_write(written, self._copy)
        if facts.random and self.full:
            self._remember_generator(kwargs.get("generator"))
        started = perf_counter_ns()
        out = func(*args, **kwargs)
        ended = perf_counter_ns()
        return self._after(
            func, facts, args, kwargs, reads, out, started, ended, code, instruction, written
        )

    def _after(
        self, func: Any, facts: FunctionFacts, args: Any, kwargs: Any, reads: list[Read], out: Any,
        started: int, ended: int, code: Any, instruction: int, written: list[Tensor] | tuple[()] = (),
    ) -> Any:  # fmt: skip
        """Note a call whose result is not simply one fresh tensor."""
        found: list[Tensor] = []
        argument_tensors(out, found)
        rest = [t for t in written if not any(t is f for f in found)]
        if not found and not rest:
            return out
        if not found:
            found, rest = rest, []  # `x[0] = 1` returns nothing: what it changed is its result
        if not written:
            self._narrow(args, reads, found)
        node = len(self.nodes)
        slot = len(self.objects)
        for tensor in [*found, *rest]:
            self._new_slot(tensor, node)
        if isinstance(out, (tuple, list)):
            self.sequences.add(node)
        template = _same if self.full else _nothing
        self.nodes.append(
            (
                facts, func, map_arguments(args, template), map_arguments(kwargs, template) if kwargs else kwargs,
                reads, slot, len(found), len(rest), started, ended, code, instruction, self.call,
                None if not _autocast_on() else _autocast_settings(), _grad_on(),
            )
        )  # fmt: skip
        if written:
            changed = {id(t) for t in written}
            for offset, tensor in enumerate([*found, *rest]):
                if id(tensor) in changed:
                    self.aliasing.after_write(tensor, slot + offset, self._renew_version)
        if self.wants is not None or self.gradients is not None:
            for offset, tensor in enumerate([*found, *rest]):
                self._keep(node, slot + offset, tensor)
        return out

    def _narrow(self, args: Any, reads: list[Read], results: list[Tensor]) -> None:
        """A view of a tensor that was overwritten in part depends only on what was written in its own part."""
        if args and args[0].__class__ in _PLAIN and reads and reads[0].__class__ is tuple:
            reads[0] = self.aliasing.narrow(args[0], reads[0], results)

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

    def _keep(self, node: int, slot: int, tensor: Tensor) -> None:
        if self.wants is not None:
            if not self.wants(node, slot, tensor):
                return
            self.kept[slot] = tensor
            self.kept_versions[slot] = version_of(tensor)
        if self.gradients is not None:
            self.gradients.watch(slot, tensor)

    def _copy(self, slots: list[int], tensor: Tensor) -> None:
        """The value of these slots is about to be overwritten: put a copy in its place."""
        if not self.full:
            slots = [s for s in slots if s in self.kept]
        if not slots:
            return
        meta = meta_of(tensor)
        with torch.no_grad(), _unseen_by_dispatch_modes():
            copy = tensor.detach().clone()
        for slot in slots:
            self.metas[slot] = meta
            self.kept[slot] = copy
            self.kept_versions.pop(slot, None)

    def _renew_version(self, slot: int, tensor: Tensor) -> None:
        if slot in self.kept_versions:
            self.kept_versions[slot] = version_of(tensor)
        elif self.full:
            self.versions[slot] = version_of(tensor)

    def _remember_generator(self, generator: torch.Generator | None) -> None:
        state = torch.get_rng_state() if generator is None else generator.get_state()
        self.rng[len(self.nodes)] = (generator, state)

    def _leave(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        found: list[Tensor] = []
        argument_tensors(args, found)
        reads = [self.read(t) for t in found]
        out = func(*args, **kwargs)
        code, instruction = user_position()
        control = facts.name in CONTROL or isinstance(out, bool)
        for read in reads:
            self.departures.append(Departure(facts.name, read, code, instruction, self.call, control))
        return out

    def _open(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        """A registered operator: its Python body is heard too; without one it is a single operation."""
        before = len(self.nodes)
        code, instruction = user_position()
        written = [t for t in facts.written(args, kwargs) if isinstance(t, Tensor)] if facts.written else []
        reads = self._reads(args, kwargs, ())
        if written:
            self.aliasing.before_write(written, self._copy)
        if self.full:
            self._remember_generator(None)
        call = self.begin_function(f"{func}".removesuffix(".default"))
        started = perf_counter_ns()
        try:
            out = call_inside(self, func, args, kwargs)
        finally:
            self.end_function(call)
        ended = perf_counter_ns()
        found: list[Tensor] = []
        argument_tensors(out, found)
        if len(self.nodes) > before and all(self._known(t) for t in found):
            return out
        return self._after(func, facts, args, kwargs, reads, out, started, ended, code, instruction, written)

    # ---- who is this tensor? -----------------------------------------------------------------------------------

    def _reads(self, args: Any, kwargs: Any, only_memory: Any) -> list[Read]:
        found: list[Tensor] = []
        argument_tensors(args, found)
        argument_tensors(kwargs, found)
        waiting = [id(t) for t in only_memory]
        reads: list[Read] = []
        for tensor in found:
            if id(tensor) in waiting:  # once: in `x.copy_(x)` the second x is read
                waiting.remove(id(tensor))
                reads.append(-1)
            else:
                reads.append(self.read(tensor))
        return reads

    def _known(self, tensor: Tensor) -> bool:
        slot = self.ids.get(id(tensor))
        return slot is not None and self._dereference(self.objects[slot]) is tensor

    def read(self, tensor: Tensor) -> Read:
        """The slot, or slots, whose values are seen through `tensor` now."""
        slot = self.ids.get(id(tensor))
        if slot is not None and (self.full or self.objects[slot]() is tensor):
            note = self.aliasing.readers.get(id(tensor))
            return note.read() if note is not None else slot
        return self._meet(tensor)

    def _meet(self, tensor: Tensor) -> Read:
        """First sight of a tensor that no heard operation made."""
        with torch._C.DisableTorchFunction():  # also reached from module calls, while the mode is on
            return self._identify(tensor)

    def _identify(self, tensor: Tensor) -> Read:
        named = self.named.get(id(tensor))
        if named is not None:
            return self.add_source(named[0], named[1], tensor)
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return self.read(torch._C._functorch.get_unwrapped(tensor))
        adopted = self.aliasing.adopt(tensor)
        if adopted is not None:
            return adopted  # another Python object over memory that is known
        if isinstance(tensor, Parameter):
            return self.add_source(Kind.PARAMETER, self.name_for(tensor), tensor)
        inside = self._inside_target or self.target is None
        slot = self.add_source(self.stranger_kind if inside else Kind.INPUT, "", tensor)
        if tensor.grad_fn is not None:
            self.strangers.append((self.slot_node[slot], tensor.grad_fn.name()))
        return slot

    def add_source(self, kind: Kind, name: str, tensor: Tensor) -> int:
        node = len(self.nodes)
        self.sources[node] = Source(kind, name, self.call)
        code, instruction = user_position() if kind == Kind.CONSTANT else (None, -1)
        slot = self._new_slot(tensor, node)
        now = perf_counter_ns()
        self.nodes.append(
            (SOURCE[kind], None, (), None, [], slot, 1, 0, now, now, code, instruction, self.call, None, True)
        )
        if self.wants is not None or self.gradients is not None:
            self._keep(node, slot, tensor)
        return slot

    def _dereference(self, reference: Any) -> Any:
        return reference if self.full or reference is None else reference()

    # ---- module calls and function scopes ------------------------------------------------------------------------

    def begin_module(self, module: torch.nn.Module, args: Any, kwargs: Any) -> int:
        if module is self.target and not self._inside_target:
            self._inside_target = True
            self._enter_target(module, args, kwargs)
            root = True
        else:
            root = False
        if id(module) not in self.addresses:
            self.know_module(module, self.name_for(module))
        entered: list[Tensor] = []
        for value in args:
            if value.__class__ in _PLAIN:
                entered.append(value)
            elif value.__class__ not in ATOMS:
                argument_tensors(value, entered)
        if kwargs:
            argument_tensors(kwargs, entered)
        ids = self.ids
        slots = [ids[id(t)] for t in entered if id(t) in ids]
        self.calls.append([module, self.call, len(self.nodes), slots, None, None, root])
        self.call = len(self.calls) - 1
        return self.call

    def end_module(self, call: int, out: Any) -> None:
        entry = self.calls[call]
        if out.__class__ is Tensor:
            entry[4] = [self.read(out)]
        else:
            found: list[Tensor] = []
            argument_tensors(out, found)
            entry[4] = [self.read(t) for t in found]
        entry[5] = len(self.nodes)
        if self.wants is not None:
            self.wants.module_ended(self, call)
        if entry[6]:
            self._inside_target = False
            self.call = entry[1]
            self.add_outputs(out)

    def complete_sources(self) -> None:
        """Parameters and buffers that nothing read are nodes, too."""
        if self.target is None:
            return
        met = {source.name for source in self.sources.values() if source.kind in (Kind.PARAMETER, Kind.BUFFER)}
        for kind, name, tensor in list(self.named.values()):
            if name not in met:
                self.add_source(kind, name, tensor)

    def name_for(self, thing: Any) -> str:
        """A name for something that is not part of the target: what the user calls it, or its class."""
        for name, value in self.namespace.items():
            if value is thing:
                return name
        base = type(thing).__name__
        self.nameless[base] = self.nameless.get(base, 0) + 1
        return f"{base}_{self.nameless[base]}"

    def know_module(self, module: torch.nn.Module, address: str) -> None:
        """Give names to a module, what it contains, and all their parameters and buffers."""
        for name, part in module.named_modules(remove_duplicate=False):
            full = f"{address}.{name}" if address and name else address or name
            self.addresses.setdefault(id(part), (full, part))
        prefix = f"{address}." if address else ""
        for name, parameter in module.named_parameters(remove_duplicate=False):
            self.named.setdefault(id(parameter), (Kind.PARAMETER, prefix + name, parameter))
        for name, buffer in module.named_buffers(remove_duplicate=False):
            self.named.setdefault(id(buffer), (Kind.BUFFER, prefix + name, buffer))

    def _path(self, call: int, functions: bool) -> tuple[str, ...]:
        found: list[str] = []
        while call >= 0:
            entry = self.calls[call]
            if isinstance(entry[0], str) == functions:
                name = entry[0] if functions else self.addresses[id(entry[0])][0]
                if name:
                    found.append(name)
            call = entry[1]
        return tuple(reversed(found))

    def address_path(self, call: int) -> tuple[str, ...]:
        """Addresses of the modules around a call, outermost first; the target's own is empty and left out."""
        return self._path(call, functions=False)

    def function_path(self, call: int) -> tuple[str, ...]:
        return self._path(call, functions=True)

    def begin_function(self, name: str) -> int:
        self.calls.append([name, self.call, len(self.nodes), [], None, None, False])
        self.call = len(self.calls) - 1
        return self.call

    def end_function(self, call: int) -> None:
        entry = self.calls[call]
        entry[5] = len(self.nodes)
        self.call = entry[1]

    def leave(self, call: int) -> None:
        """A module call is over, whether it returned or raised."""
        entry = self.calls[call]
        self.call = entry[1]
        if entry[6]:
            self._inside_target = False

    # ---- what goes into the target and comes out of it -------------------------------------------------------------

    def target_is_running(self) -> None:
        """A plain function is the target: from now on, strangers are constants."""
        self._inside_target = True

    def _enter_target(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        self.add_inputs(bound_names(module.forward, args, kwargs))

    def add_inputs(self, named_values: list[tuple[str, Any]]) -> None:
        with torch._C.DisableTorchFunction():
            leaves = [leaf for name, value in named_values for leaf in named_leaves(value, name)]
            for path, tensor in _joined_paths(leaves):
                if isinstance(tensor, Tensor) and not self._known(tensor) and id(tensor) not in self.named:
                    self.add_source(Kind.INPUT, path, tensor)

    def add_outputs(self, result: Any) -> None:
        """One node per tensor that the target returned; it shares the slot of the operation that made it."""
        with torch._C.DisableTorchFunction():
            for path, value in _joined_paths(named_leaves(result)):
                if isinstance(value, Tensor):
                    self._add_output(path, value)
                else:
                    self.notice("generator", "the target returned a generator: what it will compute is not heard")

    def _add_output(self, path: str, tensor: Tensor) -> None:
        read = self.read(tensor)
        node = len(self.nodes)
        if isinstance(read, int):
            slot = read
        else:  # several operations wrote into it: a view of its own stands for the whole
            slot = self._new_slot(tensor.detach(), node)
            self.anchors.append(tensor)
        self.sources[node] = Source(Kind.OUTPUT, path, self.call)
        now = perf_counter_ns()
        self.nodes.append(
            (SOURCE[Kind.OUTPUT], None, (), None, [read], slot, 1, 0, now, now, None, -1, self.call, None, True)
        )
        if self.wants is not None and slot not in self.kept:
            self._keep(node, slot, tensor)

    # ---- what cannot be heard ------------------------------------------------------------------------------------------

    def notice(self, kind: str, message: str) -> None:
        source = source_line(*user_position())
        entry = Notice(kind, message, source)
        if entry not in self.notices:
            self.notices.append(entry)

    def hear_opaque(self, original: Any, script: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """TorchScript runs below Python: its body becomes one operation."""
        name = getattr(script, "original_name", None) or getattr(script, "name", None) or type(script).__name__
        is_module = isinstance(script, torch.nn.Module)
        call = self.begin_module(script, args, kwargs) if is_module else -1
        hidden: list[Tensor] = [*script.parameters(), *script.buffers()] if is_module else []
        stateful = is_module and script.training
        facts = FunctionFacts(name, name, Role.RECORD, random=True, replayable=not stateful, opaque=True)
        with torch._C.DisableTorchFunction():
            reads = self._reads(args, kwargs, ())
            if self.full:
                self._remember_generator(None)
            if hidden:
                self.hidden_reads[len(self.nodes)] = [self.read(t) for t in hidden]
            if stateful:
                self.aliasing.before_write(list(script.buffers()), self._copy)
        code, instruction = user_position()
        started = perf_counter_ns()
        try:
            out = original(script, *args, **kwargs)
            ended = perf_counter_ns()
            self.notice("script", f"TorchScript {name!r} is opaque: it is one operation here")
            func = functools.partial(original, script)
            with torch._C.DisableTorchFunction():
                self._after(func, facts, args, kwargs, reads, out, started, ended, code, instruction)
            if is_module:
                self.end_module(call, out)
            return out
        finally:
            if is_module:
                self.leave(call)

    def hear_transform(self, name: str, original: Any, args: Any) -> Any:
        """A tensor enters or leaves `vmap` / `grad`: the first two steps only put a wrapper around it."""
        if not isinstance(args[0], Tensor):
            return original(*args)
        facts = FunctionFacts(name.strip("_"), name, Role.RECORD, replayable=False)
        with torch._C.DisableTorchFunction():
            reads = [self.read(args[0])]
            started = perf_counter_ns()
            out = original(*args)
            ended = perf_counter_ns()
            if out is not args[0]:
                code, instruction = user_position()
                self._after(original, facts, args, {}, reads, out, started, ended, code, instruction)
        return out


def _joined_paths(leaves: Any) -> list[tuple[str, Any]]:
    """A tensor that stands in several places is one node that knows them all."""
    paths: dict[int, list[str]] = {}
    values: dict[int, Any] = {}
    for path, value in leaves:
        paths.setdefault(id(value), []).append(path)
        values[id(value)] = value
    return [(", ".join(paths[identity]), value) for identity, value in values.items()]


def bound_names(function: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """Arguments with the names the function gives them, `args[0]` where it gives none."""
    named: list[tuple[str, Any]] = []
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for index, value in enumerate(args):
        named.append((plain[index] if index < len(plain) else f"args[{index}]", value))
    return [*named, *kwargs.items()]


def _unseen_by_dispatch_modes() -> Any:
    """Our own copies are nobody's business: a dispatch mode of the user does not see them."""
    if torch._C._len_torch_dispatch_stack() == 0:
        return contextlib.nullcontext()
    return _disable_current_modes()


def _same(value: Any) -> Any:
    return value


def _nothing(_: Any) -> Any:
    return TENSOR


def _autocast_settings() -> tuple[tuple[str, torch.dtype], ...]:
    return tuple(
        (kind, torch.get_autocast_dtype(kind))
        for kind in ("cpu", "cuda", "mps", "xpu")
        if torch._C._is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    )
