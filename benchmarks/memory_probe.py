"""Measures the memory of one forward pass or one trace, once, in the process that calls it.

    plain   the resident peak of model(x), for comparison
    trace   the resident peak of endoscope.trace(model, x), and the bytes and operations it kept
    count   the same trace while torch's allocator and tracemalloc count: no page noise, Python's share apart
    torch   what torch allocates besides the kept outputs, whoever traces: the workspace of an operation
            (convolutions copy their weights into another order) and what autograd saves for itself

The resident peak is what the system sees: Linux's high-water mark, reset just before the call. Before that
the model has been built and run, and a small model been traced, so the peak is that of one more trace and not
of loading code. A storage that several activations share is counted once; those of parameters, buffers and
inputs existed before and are not counted.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import re
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import floor
import torch
from models import CASES, Case
from torch import Tensor, nn
from torch.autograd import profiler

Measured = tuple[Any, dict[str, int]]


VARIANTS = ("plain", "trace", "count", "torch")


def probe(variant: str, case: Case, no_grad: bool, floor_only: bool) -> dict[str, int]:
    """The numbers of one variant, in bytes; only the first call in a process tells the truth."""
    trace, values = (floor.watch, _floor_values) if floor_only else (_trace, _trace_values)
    with torch.no_grad() if no_grad else contextlib.nullcontext():
        return _measured(variant, case, trace, values)


def _measured(
    variant: str, case: Case, trace: Callable[[nn.Module, Tensor], Any], values: Callable[[Any], list[Any]]
) -> dict[str, int]:
    trace(*CASES[0].make())
    model, x = case.make()
    model(x)
    before = {tensor.untyped_storage().data_ptr() for tensor in (x, *model.parameters(), *model.buffers())}
    if variant == "plain":
        return _resident(lambda: model(x))[1]
    if variant == "torch":
        calls, numbers = _counted(lambda: floor.watch(model, x))
        return {"own": numbers["torch"] - _storage_bytes(_floor_values(calls), before)}
    result, numbers = (_counted if variant == "count" else _resident)(lambda: trace(model, x))
    kept = values(result)
    return {**numbers, "ops": len(kept), "kept": _storage_bytes(kept, before)}


def _trace(model: nn.Module, x: Tensor) -> Any:
    import endoscope

    return endoscope.trace(model, x)


def _trace_values(trace: Any) -> list[Any]:
    return [op.value for op in trace.ops]


def _floor_values(calls: list[floor.Call]) -> list[Any]:
    return [call[3] for call in calls if floor.holds_tensor(call[3])]


def _resident(call: Callable[[], Any]) -> Measured:
    """How far the resident size rises above where it was, at its highest."""
    gc.collect()
    _return_free_memory()
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark to the present size
    start = status("VmRSS")
    result = call()
    return result, {"peak": status("VmHWM") - start}


def _counted(call: Callable[[], Any]) -> Measured:
    """Highest sum of torch's CPU allocations plus Python's, and what Python still holds at the end."""
    gc.collect()
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    with profiler.profile(profile_memory=True) as record:
        result = call()
        held, python_peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    level = peak = 0
    for event in record.kineto_results.events():
        if event.name() == "[memory]":
            level += event.nbytes()
            peak = max(peak, level)
    return result, {"peak": peak + python_peak - start, "torch": peak, "python": held - start}


def _storage_bytes(values: Iterable[Any], before: set[int]) -> int:
    sizes: dict[int, int] = {}
    for value in values:
        for tensor in _tensors(value):
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
    return sum(size for address, size in sizes.items() if address not in before)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def status(name: str) -> int:
    """A size from the process status, in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"this system does not report {name} in /proc/self/status; the probe needs Linux")
    return int(found[1]) * 1024


def _return_free_memory() -> None:
    """Ask the C library to give freed memory back, so that the call cannot live on leftovers unseen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
