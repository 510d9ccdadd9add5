"""The hot path: what happens at every single torch call while something is traced.

    func(*args) ─► reads: which slots the arguments are
                ─► call torch
                ─► a slot for the tensor that came out
                ─► nodes.append(Node)

Everything that is not an ordinary function of tensors that returns one tensor goes to the recorder's slow methods.
There are two handlers: one holds every tensor, the other holds none, and notes the shape of what came out instead.
Measure (`benchmarks/trace_speed.py`) before and after touching this file: a tenth of a microsecond shows.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from time import perf_counter_ns
from types import MethodType
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from endoscope.capture.data.arguments import ATOMS, TENSOR
from endoscope.capture.data.nodes import Node, Position, Read
from endoscope.capture.patch.torch_private import backward_task as _in_backward
from endoscope.capture.patch.torch_private import is_any_autocast_on as _autocast_on
from endoscope.capture.record.leaves import frozen, tensors_in, without_tensors
from endoscope.capture.record.recorder import Recorder, autocast_settings
from endoscope.capture.record.records import TorchCall, meta_of
from endoscope.capture.record.source import INNER_FILES, WRAPPERS, beyond_wrappers

_new = tuple.__new__  # a third of what `Node(...)` takes
_grad_on = torch.is_grad_enabled


Handler = Callable[..., Any]


def attach(recorder: Recorder, wrap: Callable[[Handler], Handler] = lambda handler: handler) -> None:
    """From now on the recorder handles every call of torch while it is the current mode."""
    handler = make_holding_handler(recorder) if recorder.full else make_bare_handler(recorder)
    recorder.__torch_function__ = MethodType(wrap(handler), recorder)  # type: ignore[method-assign]


def make_holding_handler(recorder: Recorder) -> Handler:
    """A closure, because its variables are read faster than attributes."""
    ids, objects, slot_node = recorder.ids, recorder.objects, recorder.slot_node
    nodes, versions, readers, calls = recorder.nodes, recorder.versions, recorder.aliasing.readers, recorder.calls
    simple, passing, unusual, learn = recorder.simple, recorder.passing, recorder.unusual, recorder.learn
    clock, getframe, inner, record_unusual = perf_counter_ns, sys._getframe, INNER_FILES, recorder.record_unusual
    wrappers = WRAPPERS
    resolve, narrow, after_call = recorder.read, recorder.narrow, recorder.after_call
    watch, keep = recorder.gradients is not None, recorder.keep
    pending, look_for_unfilled = recorder.unfilled.pending, recorder.look_for_unfilled

    def handle(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        facts = simple.get(func)
        if facts is None:
            if func in passing:
                return func(*args, **kwargs) if kwargs else func(*args)
            facts = unusual.get(func) or learn(func)
            if func not in simple and not facts.writes_nothing_now(args, kwargs):
                return record_unusual(func, facts, args, kwargs or {})
        if (kwargs and "out" in kwargs) or _in_backward() != -1:
            return record_unusual(func, facts, args, kwargs or {})
        reads: list[Read] = []
        listed = False
        for value in args:
            kind = value.__class__
            if kind is Tensor or kind is Parameter:
                identity = id(value)
                slot = ids.get(identity)
                if slot is None or (readers and identity in readers):
                    reads.append(resolve(value))
                else:
                    reads.append(slot)
            elif kind not in ATOMS:
                listed = True
                reads += map(resolve, tensors_in(value))
        if kwargs:
            for value in kwargs.values():
                if value.__class__ not in ATOMS:
                    listed = True
                    reads += map(resolve, tensors_in(value))
        if pending:
            look_for_unfilled(facts, args, kwargs)
        frame = getframe(1)
        while inner[frame.f_code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
        if wrappers:
            frame = beyond_wrappers(frame) or frame
        started = clock()
        out = func(*args, **kwargs) if kwargs else func(*args)
        ended = clock()
        if out.__class__ is not Tensor:
            position = Position(frame.f_code, frame.f_lasti)
            return after_call(TorchCall(func, facts, args, kwargs, reads, started, ended, position), out)
        if readers:
            narrow(args, kwargs, reads, [out])
            readers.pop(id(out), None)
        slot = len(objects)
        ids[id(out)] = slot
        slot_node.append(len(nodes))
        objects.append(out)
        try:
            versions.append(out._version)
        except RuntimeError:  # inference tensors do not count versions
            versions.append(-1)
        nodes.append(
            _new(Node, (
                facts, func, frozen(args) if listed else args,  # the user may change a list later
                kwargs, reads, slot, 1, 0, started, ended, frame.f_code, frame.f_lasti,
                calls.current, None if not _autocast_on() else autocast_settings(), _grad_on(), None, None, None, None,
            ))
        )  # fmt: skip
        if watch:
            keep(len(nodes) - 1, slot, out)
        return out

    return handle


def make_bare_handler(recorder: Recorder) -> Handler:
    """For a recorder that holds no tensors: it reads the arguments when the call has been made.

    An ordinary function writes nothing, so its arguments are what they were when it was called, as long as nobody else
    has written since. Both handlers read arguments in lines of their own: a call would take as long as the reading.
    """
    ids, objects, slot_node, metas = recorder.ids, recorder.objects, recorder.slot_node, recorder.metas
    nodes, readers, calls, weak = recorder.nodes, recorder.aliasing.readers, recorder.calls, weakref.ref
    simple, passing, unusual, learn = recorder.simple, recorder.passing, recorder.unusual, recorder.learn
    clock, getframe, inner, record_unusual = perf_counter_ns, sys._getframe, INNER_FILES, recorder.record_unusual
    wrappers = WRAPPERS
    resolve, narrow, after_call = recorder.read, recorder.narrow, recorder.after_call
    watch, keep, keeper = recorder.gradients is not None, recorder.keep, recorder.keeper
    pending, look_for_unfilled = recorder.unfilled.pending, recorder.look_for_unfilled
    wanted = keeper.types if keeper is not None and not keeper.idle else None  # what it has said about types
    place = keeper.place if keeper is not None and keeper.names_modules else None

    def handle(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        facts = simple.get(func)
        if facts is None:
            if func in passing:
                return recorder.call(func, args, kwargs or {})
            facts = unusual.get(func) or learn(func)
            if func not in simple and not facts.writes_nothing_now(args, kwargs):
                return record_unusual(func, facts, args, kwargs or {})
        if (kwargs and "out" in kwargs) or _in_backward() != -1:
            return record_unusual(func, facts, args, kwargs or {})
        if pending:
            look_for_unfilled(facts, args, kwargs)
        frame = getframe(1)
        while inner[frame.f_code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
        if wrappers:
            frame = beyond_wrappers(frame) or frame
        started = clock()
        try:  # costs nothing as long as nothing is raised
            out = func(*args, **kwargs) if kwargs else func(*args)
        except BaseException as error:
            if recorder.outcome is not None:
                recorder.outcome.raised(error)
            raise
        ended = clock()
        try:
            return note(func, facts, args, kwargs, out, frame.f_code, frame.f_lasti, started, ended)
        except BaseException:
            if recorder.outcome is not None:
                recorder.outcome.returned(out)
            raise

    def note(
        func: Any, facts: Any, args: Any, kwargs: Any, out: Any, code: Any, instruction: int, started: int, ended: int
    ) -> Any:
        reads: list[Read] = []
        bare = list(args)  # becomes the arguments without their tensors
        listed = False
        for number, value in enumerate(args):
            kind = value.__class__
            if kind is Tensor or kind is Parameter:
                bare[number] = TENSOR
                slot = ids.get(id(value))
                if slot is None or id(value) in readers or objects[slot]() is not value:
                    reads.append(resolve(value))
                else:
                    reads.append(slot)
            elif kind not in ATOMS:
                listed = True
                reads += map(resolve, tensors_in(value))
        if kwargs:
            for value in kwargs.values():
                if value.__class__ not in ATOMS:
                    listed = True
                    reads += map(resolve, tensors_in(value))
        if out.__class__ is not Tensor:
            position = Position(code, instruction)
            return after_call(TorchCall(func, facts, args, kwargs, reads, started, ended, position), out)
        if readers:
            narrow(args, kwargs, reads, [out])
            readers.pop(id(out), None)
        slot = len(objects)
        ids[id(out)] = slot
        slot_node.append(len(nodes))
        objects.append(weak(out))
        if listed:
            bare, kwargs = without_tensors(args), without_tensors(kwargs)
        try:  # the rest of what is known of the tensor stands in its node: one tuple less for each
            shape, dtype = out.shape, out.dtype
            device, grad_fn = None if reads and not facts.moves else out.device, out.grad_fn.__class__
        except RuntimeError:  # nested tensors have no shape
            metas[slot] = meta_of(out)
            shape, dtype, device, grad_fn = None, None, None, None
        nodes.append(
            _new(Node, (
                facts, func, bare, kwargs, reads, slot, 1, 0, started, ended, code, instruction,
                calls.current, None, True, shape, dtype, device, grad_fn,
            ))
        )  # fmt: skip
        if watch or (
            wanted is not None
            and (wanted.get(facts.type, True) or (place is not None and place(calls.current) != "no"))
        ):
            keep(len(nodes) - 1, slot, out)
        return out

    return handle
