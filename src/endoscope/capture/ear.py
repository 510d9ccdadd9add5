"""The hot path: what happens at every single torch call while something is traced.

    func(*args) ─► reads: which slots the arguments are
                ─► call torch
                ─► a slot for the tensor that came out
                ─► nodes.append(fields of records.Node)

Everything that is not an ordinary function of tensors that returns one tensor goes to the recorder's slow methods.
Where tensors are not held, all but the call itself is done by `make_understanding`.
Measure (`benchmarks/trace_speed.py`) before and after touching this file: a tenth of a microsecond shows.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Parameter

from endoscope.capture.aliasing import Read
from endoscope.capture.leaves import ATOMS, TENSOR, argument_tensors, frozen, map_arguments
from endoscope.capture.records import meta_of
from endoscope.capture.source import INNER_FILES
from endoscope.capture.torch_private import backward_task as _in_backward
from endoscope.capture.torch_private import has_autocast as _has_autocast
from endoscope.capture.torch_private import is_any_autocast_on as _autocast_on

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder

_grad_on = torch.is_grad_enabled


def make_ear(recorder: Recorder) -> Callable[..., Any]:
    """A closure, because cell variables are read faster than attributes."""
    ids, objects, slot_node = recorder.ids, recorder.objects, recorder.slot_node
    nodes, versions, readers, calls = recorder.nodes, recorder.versions, recorder.aliasing.readers, recorder.calls
    simple, passing, full = recorder.simple, recorder.passing, recorder.full
    watch = recorder.gradients is not None
    clock, getframe, inner = perf_counter_ns, sys._getframe, INNER_FILES
    hear_slowly, resolve, learn, narrow = recorder.hear_slowly, recorder.read, recorder.learn, recorder.narrow
    slow, keep, after_call = recorder.slow, recorder.keep, recorder.after_call
    wanted, place = _wishes(recorder)
    understand: Any = None
    if not full:
        understand = make_understanding(recorder)

    def hear(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        facts = simple.get(func)
        if facts is None:
            if func in passing:
                try:
                    return func(*args, **kwargs) if kwargs else func(*args)
                except BaseException as error:
                    if recorder.outcome is not None:
                        recorder.outcome.raised(error)
                    raise
            if func not in slow:
                facts = learn(func, simple, passing)
            if facts is None:
                facts = slow[func]
                # Batch norm writes only while training; otherwise it is as ordinary as any other.
                if not facts.uncounted or facts.written(args, kwargs or {}):  # type: ignore[misc]
                    return hear_slowly(func, facts, args, kwargs or {})
        if (kwargs and "out" in kwargs) or _in_backward() != -1:
            return hear_slowly(func, facts, args, kwargs or {})
        reads: list[Read] = []
        listed = False
        for value in args if full else ():
            kind = value.__class__
            if kind is Tensor or kind is Parameter:
                identity = id(value)
                slot = ids.get(identity)
                if slot is None or identity in readers:
                    reads.append(resolve(value))
                else:
                    reads.append(slot)
            elif kind not in ATOMS:
                listed = True
                reads += resolved_inside(resolve, value)
        if kwargs and full:
            for value in kwargs.values():
                if value.__class__ not in ATOMS:
                    listed = True
                    reads += resolved_inside(resolve, value)
        frame = getframe(1)
        while inner[frame.f_code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
        started = clock()
        try:  # costs nothing as long as nothing is raised
            out = func(*args, **kwargs) if kwargs else func(*args)
        except BaseException as error:
            if recorder.outcome is not None:
                recorder.outcome.raised(error)
            raise
        ended = clock()
        if not full:
            try:
                return understand(func, facts, args, kwargs, out, frame.f_code, frame.f_lasti, started, ended)
            except BaseException:
                if recorder.outcome is not None:
                    recorder.outcome.returned(out)
                raise
        if out.__class__ is not Tensor:
            return after_call((func, facts, args, kwargs, reads, started, ended, frame.f_code, frame.f_lasti), out)
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
            (
                facts, func, frozen(args) if listed else args,  # the user may change a list later
                kwargs, reads, slot, 1, 0, started, ended, frame.f_code, frame.f_lasti,
                calls.current, None if not _autocast_on() else autocast_settings(), _grad_on(),
            )
        )  # fmt: skip
        if watch or (
            wanted is not None
            and (wanted.get(facts.type, True) or (place is not None and place(calls.current) != "no"))
        ):
            keep(len(nodes) - 1, slot, out)
        return out

    return hear


def make_understanding(recorder: Recorder) -> Callable[..., Any]:
    """Notes a call that was made, for a recorder that does not hold tensors.

    An ordinary function writes nothing, so its arguments are what they were when it was called, as long as nobody else
    has written since. How arguments are read is written out here and in the ear: calling a function for that would take
    as long as the reading.
    """
    ids, objects, slot_node = recorder.ids, recorder.objects, recorder.slot_node
    nodes, readers, calls = recorder.nodes, recorder.aliasing.readers, recorder.calls
    watch, weak = recorder.gradients is not None, weakref.ref
    resolve, narrow, keep, after_call, metas = (
        recorder.read, recorder.narrow, recorder.keep, recorder.after_call, recorder.metas,
    )  # fmt: skip
    wanted, place = _wishes(recorder)

    def understand(
        func: Any, facts: Any, args: Any, kwargs: Any, out: Any, code: Any, instruction: int, started: int, ended: int
    ) -> Any:
        reads: list[Read] = []
        bare = list(args)  # becomes the arguments without their tensors
        listed = False
        for position, value in enumerate(args):
            kind = value.__class__
            if kind is Tensor or kind is Parameter:
                bare[position] = TENSOR
                slot = ids.get(id(value))
                if slot is None or id(value) in readers or objects[slot]() is not value:
                    reads.append(resolve(value))
                else:
                    reads.append(slot)
            elif kind not in ATOMS:
                listed = True
                reads += resolved_inside(resolve, value)
        if kwargs:
            for value in kwargs.values():
                if value.__class__ not in ATOMS:
                    listed = True
                    reads += resolved_inside(resolve, value)
        if out.__class__ is not Tensor:
            return after_call((func, facts, args, kwargs, reads, started, ended, code, instruction), out)
        if readers:
            narrow(args, kwargs, reads, [out])
            readers.pop(id(out), None)
        slot = len(objects)
        ids[id(out)] = slot
        slot_node.append(len(nodes))
        objects.append(weak(out))
        if listed:
            bare = map_arguments(args, without_tensor)
            kwargs = map_arguments(kwargs, without_tensor)
        try:
            # The rest of what is known of the tensor stands in its node: one tuple less for each.
            nodes.append(
                (
                    facts, func, bare, kwargs, reads, slot, 1, 0, started, ended, code,
                    instruction, calls.current, None, True, out.shape, out.dtype,
                    None if reads and not facts.moves else out.device, out.grad_fn.__class__,
                )
            )  # fmt: skip
        except RuntimeError:  # nested tensors have no shape
            metas[slot] = meta_of(out)
            nodes.append(
                (
                    facts, func, bare, kwargs, reads, slot, 1, 0, started, ended, code,
                    instruction, calls.current, None, True,
                )
            )  # fmt: skip
        if watch or (
            wanted is not None
            and (wanted.get(facts.type, True) or (place is not None and place(calls.current) != "no"))
        ):
            keep(len(nodes) - 1, slot, out)
        return out

    return understand


def _wishes(recorder: Recorder) -> tuple[Any, Any]:
    """What the keeper has said about types of operations, and its way to ask about modules; None for neither."""
    keeper = recorder.keeper
    wanted = keeper.types if keeper is not None and not keeper.idle else None
    return wanted, keeper.place if keeper is not None and keeper.names_modules else None


def resolved_inside(resolve: Callable[[Tensor], Read], value: Any) -> list[Read]:
    """Reads of the tensors in a list or the like."""
    found: list[Any] = []
    argument_tensors(value, found)
    return [resolve(tensor) for tensor in found]


def without_tensor(_: Any) -> Any:
    return TENSOR


def autocast_settings() -> tuple[tuple[str, torch.dtype], ...] | None:
    """Which devices compute in which type; None without autocast."""
    if not _autocast_on():
        return None
    return tuple(
        (kind, torch.get_autocast_dtype(kind))
        for kind in ("cpu", "cuda", "mps", "xpu")
        if _has_autocast(kind) and torch.is_autocast_enabled(kind)
    )
