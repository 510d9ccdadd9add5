"""Bodies that cannot be seen from Python become one operation each: TorchScript, function transforms."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.data.functions import FunctionFacts, Role
from endoscope.capture.patch.torch_private import DisableTorchFunction
from endoscope.capture.record.functions import timed
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.records import TorchCall
from endoscope.capture.record.source import user_position


def record_script(recorder: Recorder, original: Any, script: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """TorchScript runs below Python: its body becomes one operation."""
    name = getattr(script, "original_name", None) or getattr(script, "name", None) or type(script).__name__
    is_module = isinstance(script, torch.nn.Module)
    call = recorder.begin_module(script, args, kwargs) if is_module else None
    hidden: list[Tensor] = [*script.parameters(), *script.buffers()] if is_module else []
    stateful = is_module and getattr(script, "training", False)
    facts = FunctionFacts(name, name, Role.RECORD, random=True, replayable=not stateful, opaque=True)
    with DisableTorchFunction():
        reads = recorder.reads_of(args, kwargs)
        if hidden:
            recorder.hidden_reads[len(recorder.nodes)] = [recorder.read(t) for t in hidden]
        recorder.before_call(list(script.buffers()) if stateful else [], facts, None)
    func, position = functools.partial(original, script), user_position()
    try:
        out, started, ended = timed(func, args, kwargs)
        recorder.notice("script", f"TorchScript {name!r} is opaque: it is one operation here")
        with DisableTorchFunction():
            done = TorchCall(func, facts, args, kwargs, reads, started, ended, position)
            out = recorder.after_call(done, out)
        if call is not None:
            recorder.end_module(call, out)
        return out
    finally:
        if call is not None:
            recorder.leave(call)


def record_transform(recorder: Recorder, name: str, original: Any, args: Any) -> Any:
    """A tensor enters or leaves `vmap` / `grad`."""
    if not isinstance(args[0], Tensor):
        return original(*args)
    facts = FunctionFacts(name.strip("_"), name, Role.RECORD, replayable=False)
    with DisableTorchFunction():
        reads = [recorder.read(args[0])]
        out, started, ended = timed(original, args, {})
        if out is not args[0]:
            recorder.after_call(TorchCall(original, facts, args, {}, reads, started, ended, user_position()), out)
    return out
