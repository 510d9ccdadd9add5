"""What a recorder costs that is nothing but one global hook, one `measure` call and pyarrow in a thread.

It holds what a recorded step needs (results of modules, their gradients, parameters, `.grad`, updates), measures all
of it at the end of the step and writes it. It knows no graph, copies nothing that is overwritten, tags nothing and
survives nothing: for orientation, beside the recorder.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from endoscope.stats.measuring import measure
from endoscope.stats.request import Request


class PlainRecorder:
    """Of one or several models; a step ends with any of the optimizers."""

    def __init__(self, models: Sequence[nn.Module], optimizers: Sequence[Any], path: Path, keep: bool) -> None:
        self.watched = {id(module) for model in models for module in model.modules()}
        self.parameters = [parameter for model in models for parameter in model.parameters()]
        self.before = [torch.empty_like(p) for p in self.parameters]
        self.keep = keep  # or decided against at the end: nothing is measured
        self.handles: list[Any] = []
        self.results: list[Tensor] = []
        self.gradients: list[Tensor] = []
        self.queue: queue.Queue[Any] = queue.Queue(4)
        threading.Thread(target=self._write, args=(path,), daemon=True).start()
        for model in models:
            model.register_forward_pre_hook(self._begin)
        for optimizer in optimizers:
            optimizer.register_step_pre_hook(self._before_update)
            optimizer.register_step_post_hook(self._after_update)

    def flush(self) -> None:
        self.queue.join()

    def close(self) -> None:
        self.queue.put(None)

    def _begin(self, module: nn.Module, args: Any) -> None:
        if self.handles:
            return
        results, gradients, watched = self.results, self.gradients, self.watched

        def hold(module: nn.Module, args: Any, result: Any) -> None:
            if id(module) in watched and isinstance(result, Tensor):
                results.append(result)
                if result.requires_grad:
                    result.register_hook(gradients.append)

        self.handles = [register_module_forward_hook(hold, always_call=True)]

    def _before_update(self, *_: Any) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []
        if self.keep:
            with torch.no_grad():
                torch._foreach_copy_(self.before, self.parameters)

    def _after_update(self, *_: Any) -> None:
        if self.keep:
            requests = [Request(t, 0) for t in (*self.results, *self.gradients)]
            requests += [Request(p, None) for p in self.parameters]
            requests += [Request(p.grad, None) for p in self.parameters if p.grad is not None]
            pairs = zip(self.parameters, self.before, strict=True)
            requests += [Request(p.detach(), None, minus=b) for p, b in pairs]
            self.queue.put(measure(requests, threads=1))
        self.results, self.gradients = [], []

    def _write(self, path: Path) -> None:
        writers: dict[str, Any] = {}
        while (measured := self.queue.get()) is not None:
            for name, columns in _tables(measured).items():
                batch = pa.record_batch(columns)
                if name not in writers:
                    writers[name] = pa.ipc.new_stream(pa.OSFile(f"{path}.{name}", "wb"), batch.schema)
                writers[name].write_batch(batch)
            self.queue.task_done()
        for writer in writers.values():
            writer.close()


def _tables(measured: Any) -> dict[str, dict[str, Any]]:
    bins = pa.ListArray.from_arrays(pa.array(measured.hist_offsets), pa.array(measured.hist_values))
    offsets = pa.array(measured.unit_offsets)
    samples = {key: pa.array(values) for key, values in measured.samples.items()}
    return {
        "stats": {**{key: pa.array(values) for key, values in measured.whole.items()}, "hist": bins},
        "samples": {"request": pa.array(measured.sample_request), **samples},
        "units": {key: pa.ListArray.from_arrays(offsets, pa.array(values)) for key, values in measured.units.items()},
    }
