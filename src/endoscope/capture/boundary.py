"""Where the traced code begins and ends: inputs, outputs, and bodies that cannot be heard."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from endoscope.capture.functions import FunctionFacts, Role
from endoscope.capture.leaves import named_leaves
from endoscope.capture.source import user_position
from endoscope.capture.torch_private import DisableTorchFunction
from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder


def bound_names(function: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """Arguments with the names the function gives them, `args[0]` where it gives none."""
    method = getattr(function, "__func__", None)
    plain = _argument_names(function) if method is None else _names_of_method(method)[1:]
    named = [(plain[i] if i < len(plain) else f"args[{i}]", value) for i, value in enumerate(args)]
    return [*named, *kwargs.items()]


def _argument_names(function: Any) -> list[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


#: `forward` of one class is asked about again and again; the function of a class lives as long as the class.
_names_of_method = functools.lru_cache(1024)(_argument_names)


def add_inputs(recorder: Recorder, named_values: list[tuple[str, Any]]) -> None:
    """One node per tensor that is handed to the target and is not known yet."""
    with DisableTorchFunction():
        leaves = [leaf for name, value in named_values for leaf in named_leaves(value, name)]
        for path, tensor in _joined_paths(leaves):
            if isinstance(tensor, Tensor) and not recorder.knows(tensor) and id(tensor) not in recorder.calls.named:
                recorder.add_source(Kind.INPUT, path, tensor)


def add_outputs(recorder: Recorder, result: Any) -> None:
    """One node per tensor that the target returned; it shares the slot of the operation that made it."""
    with DisableTorchFunction():
        for path, value in _joined_paths(named_leaves(result)):
            if isinstance(value, Tensor):
                recorder.add_output(path, value)
            else:
                recorder.notice("generator", "the target returned a generator: what it will compute is not heard")


def _joined_paths(leaves: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """A tensor that stands in several places is one node that knows them all."""
    paths: dict[int, list[str]] = {}
    values: dict[int, Any] = {}
    for path, value in leaves:
        paths.setdefault(id(value), []).append(path)
        values[id(value)] = value
    return [(", ".join(paths[identity]), value) for identity, value in values.items()]


def call_module(recorder: Recorder, original: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
    """`original(module, ...)`, as a call of that module."""
    call = recorder.begin_module(module, args, kwargs)
    try:
        out = original(module, *args, **kwargs)
        recorder.end_module(call, out)
        return out
    finally:
        recorder.leave(call)


def hear_opaque(recorder: Recorder, original: Any, script: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """TorchScript runs below Python: its body becomes one operation."""
    name = getattr(script, "original_name", None) or getattr(script, "name", None) or type(script).__name__
    is_module = isinstance(script, torch.nn.Module)
    call = recorder.begin_module(script, args, kwargs) if is_module else -1
    hidden: list[Tensor] = [*script.parameters(), *script.buffers()] if is_module else []
    stateful = is_module and getattr(script, "training", False)
    facts = FunctionFacts(name, name, Role.RECORD, random=True, replayable=not stateful, opaque=True)
    with DisableTorchFunction():
        reads = recorder.reads_of(args, kwargs)
        if hidden:
            recorder.hidden_reads[len(recorder.nodes)] = [recorder.read(t) for t in hidden]
        recorder.before_call(list(script.buffers()) if stateful else [], facts, None)
    position = user_position()
    try:
        started = perf_counter_ns()
        out = original(script, *args, **kwargs)
        ended = perf_counter_ns()
        recorder.notice("script", f"TorchScript {name!r} is opaque: it is one operation here")
        func = functools.partial(original, script)
        with DisableTorchFunction():
            out = recorder.after_call((func, facts, args, kwargs, reads, started, ended, *position), out)
        if is_module:
            recorder.end_module(call, out)
        return out
    finally:
        if is_module:
            recorder.leave(call)


def hear_parameter(recorder: Recorder, data: Tensor, made: Tensor) -> None:
    """`nn.Parameter(data)`: a new face of the same memory."""
    facts = FunctionFacts("Parameter", "Parameter", Role.RECORD)
    with DisableTorchFunction():
        now = perf_counter_ns()
        call: tuple[Any, ...] = (Tensor.detach, facts, (data,), {}, [recorder.read(data)], now, now, *user_position())
        recorder.after_call(call, made)


def hear_transform(recorder: Recorder, name: str, original: Any, args: Any) -> Any:
    """A tensor enters or leaves `vmap` / `grad`."""
    if not isinstance(args[0], Tensor):
        return original(*args)
    facts = FunctionFacts(name.strip("_"), name, Role.RECORD, replayable=False)
    with DisableTorchFunction():
        reads = [recorder.read(args[0])]
        started = perf_counter_ns()
        out = original(*args)
        ended = perf_counter_ns()
        if out is not args[0]:
            recorder.after_call((original, facts, args, {}, reads, started, ended, *user_position()), out)
    return out
