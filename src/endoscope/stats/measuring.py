"""`measure`: the statistics of many tensors at once.

request ─► readable in place? ─ yes ──────────────────────► plan ─► compiled kernels ─┐
             └─ no ─► elements.as_plain ─ CPU, kernels ───┘                           ├─► answers ─► Measured
                         │                └─ else ─► fused: plain torch calls ────────┤
                         └─ cannot be had ─► gap ─────────────────────────────────────┘

Statistics that somebody registered are asked afterwards, tensor by tensor (one_by_one.py).

Nothing is written to a tensor, nothing is recorded by autograd, and random numbers are not drawn.
"""

from __future__ import annotations

import ctypes
import os
import threading
from array import array
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from endoscope.schema.stats import registered
from endoscope.stats import geometry, kernels, one_by_one
from endoscope.stats.answers import Answers, joined
from endoscope.stats.elements import NotMeasurable, as_plain, element_of, locate
from endoscope.stats.fused import Fused
from endoscope.stats.kernels import Kernels
from endoscope.stats.plan import Plan, Reading, plan_of, reading_of
from endoscope.stats.request import Measured, Request

SAMPLE_CAP = 65_536  # samples of one tensor that are measured one by one

_ORDINARY = (Tensor, torch.nn.Parameter)


def measure(requests: Sequence[Request], *, threads: int | None = None) -> Measured:
    """The statistics of all requested tensors.

    Never raises because of a tensor: what cannot be measured is named in `gaps`. With `threads=2` a second
    thread helps with large steps; None takes one if torch itself may use several.
    """
    return joined([measure_part(requests, threads=threads)])


def measure_part(requests: Sequence[Request], *, threads: int | None = None) -> Answers:
    """The same, to be `joined` with others before it is looked at."""
    # Modes of torch, a tracer for example, must not see what is asked here.
    with torch._C.DisableTorchFunction():
        return _Measurement(requests).run(_threads() if threads is None else threads)


def warm() -> str:
    """Load the compiled kernels, and say which: "avx512", "avx2", "portable", or "plain torch" if there are none."""
    loaded = kernels.load()
    return loaded.variant if loaded else "plain torch"


class _Measurement:
    """One call of `measure`."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
        self.kernels = kernels.load()
        self.readings: list[Reading | None] = []
        self.copied: list[tuple[int, int]] = []  # request, and the one whose answer it gets, too
        self.addresses: list[int] = []
        self.minus: list[int] = []
        self.elsewhere: dict[int, Tensor] = {}  # request -> tensor to measure with torch
        self.gaps: list[tuple[int, str]] = []
        self.notes: list[tuple[int, str]] = []
        self.kept: list[Tensor] = []  # tensors made here, alive until they are measured
        self.one_by_one = [one for one in registered() if one.measure is not None]
        self.tensors: dict[int, Tensor] = {}  # request -> what those are asked about

    def run(self, threads: int) -> Answers:
        self.readings.extend(map(self._add, range(len(self.requests)), self.requests))
        plan = plan_of(self.readings, tuple(self.elsewhere), tuple(self.copied))
        answers = Answers(plan)
        fused = self._start_elsewhere(plan, answers) if self.elsewhere else None
        if self.kernels:
            self._run_kernels(self.kernels, plan, answers, threads)
        if fused:
            self.gaps += fused.collect()
            failed = dict(self.gaps)
            self.gaps += [(number, failed[other]) for number, other in self.copied if other in failed]
        answers.settle()
        if self.one_by_one:
            self._ask_one_by_one(answers)
        for number, _ in self.gaps:
            answers.set_count(number, _count(self.requests[number].tensor))
        answers.gaps, answers.notes = sorted(self.gaps), self.notes
        return answers

    def _run_kernels(self, kernels: Kernels, plan: Plan, answers: Answers, threads: int) -> None:
        """A second thread holds on to the tensors, the plan and the answers: it knows only their addresses, and may
        outlive this call when an interrupt ends it."""
        addresses, minus = array("q", self.addresses), array("q", self.minus)
        fields = (
            plan.sources_at, addresses.buffer_info()[0], minus.buffer_info()[0], ctypes.addressof(kernels.columns),
            len(plan.readings), *answers.addresses(),
        )  # fmt: skip
        first, second = plan.shares() if threads > 1 else (plan.rows, None)
        helper = None
        if second:
            keep = addresses, minus, plan, answers, self.requests, self.kept
            helper = threading.Thread(target=kernels.work, args=(fields, second, keep), daemon=True)
            try:
                helper.start()
            except RuntimeError:  # too many of them, or the interpreter is about to end
                helper = None
                kernels.work(fields, second)
        kernels.work(fields, first)
        if helper:
            helper.join()

    def _ask_one_by_one(self, answers: Answers) -> None:
        columns = answers.whole_columns()
        answers.more, problems = one_by_one.measure(self.one_by_one, self.tensors, columns["nans"] + columns["infs"])
        for number, other in self.copied:
            for column in answers.more.values():
                column[number] = column[other]
        self.notes += problems

    def _add(self, number: int, request: Request) -> Reading | None:
        """Find out how to measure one tensor, and where the kernels find it if they can do that."""
        address, subtracted = 0, 0
        reading: Reading | None = None
        try:
            tensor, batch_dim, samples, units, minus, same_as = request
            if same_as is not None:
                return self._again(number, same_as)
            if minus is not None:
                subtracted = self._subtracted(request)
                tensor = tensor if subtracted else self._difference(request)
            place = locate(tensor) if type(tensor) in _ORDINARY else None
            if place is None:
                tensor = self._plain(tensor)
                place = locate(tensor)
            strides = None if tensor.is_contiguous() else tensor.stride()
            by_kernels = place is not None and self.kernels is not None
            reading = _reading(tensor.shape, strides, tensor.dtype, batch_dim, samples, units, by_kernels)
            if self.one_by_one:
                self.tensors[number] = self._difference(request) if subtracted else tensor
            if by_kernels:
                address = place or 0
            else:
                self.elsewhere[number] = tensor
            if reading.note:
                self.notes.append((number, reading.note))
        except Exception as problem:  # whatever a tensor can do wrong must not stop a training run
            self.gaps.append((number, _reason(problem)))
        self.addresses.append(address)
        self.minus.append(subtracted)
        return reading

    def _again(self, number: int, other: int) -> Reading | None:
        """A request that asks for the same as another one."""
        self.addresses.append(0)
        self.minus.append(0)
        reading = self.readings[other]
        if reading is None:
            self.gaps += [(number, reason) for gap, reason in self.gaps if gap == other]
        else:
            self.copied.append((number, other))
            self.notes += [(number, reading.note)] if reading.note else []
        return reading

    def _start_elsewhere(self, plan: Plan, answers: Answers) -> Fused:
        """Ask other devices first: they work while the kernels do."""
        fused = Fused(answers)
        for number, tensor in self.elsewhere.items():
            batch = geometry.batch_axis(tensor.shape, self.requests[number].batch_dim)
            units = plan.unit_starts[number + 1] - plan.unit_starts[number]
            fused.add(number, tensor, batch, plan.sample_counts[number], units)
        fused.start()
        return fused

    def _subtracted(self, request: Request) -> int:
        """The address of what the kernels can subtract while they read; 0 if they cannot."""
        tensor, minus = request.tensor, request.minus
        assert minus is not None
        ordinary = type(tensor) in _ORDINARY and type(minus) in _ORDINARY and request.batch_dim is None
        if not (ordinary and tensor.dtype is minus.dtype is torch.float32 and self.kernels):
            return 0
        if tensor.shape != minus.shape or not (tensor.is_contiguous() and minus.is_contiguous()):
            return 0
        return locate(minus) or 0 if locate(tensor) else 0

    def _difference(self, request: Request) -> Tensor:
        assert request.minus is not None
        with torch.no_grad():
            return self._keep(request.tensor.detach() - request.minus.detach())

    def _keep(self, tensor: Tensor) -> Tensor:
        self.kept.append(tensor)
        return tensor

    def _plain(self, tensor: Tensor) -> Tensor:
        with torch.no_grad():
            return self._keep(as_plain(tensor))


@lru_cache(8192)  # the same shapes come back in every step
def _reading(
    shape: torch.Size,
    strides: tuple[int, ...] | None,  # None: contiguous
    dtype: torch.dtype,
    batch_dim: int | None,
    want_samples: bool,
    want_units: bool,
    by_kernels: bool,
) -> Reading:
    batch = geometry.batch_axis(shape, batch_dim)
    how = geometry.arranged(shape, strides, batch, want_units)
    if not by_kernels:
        how = how._replace(unit_order=())  # torch keeps their order
    samples, note = how.samples if want_samples and batch is not None else 0, ""
    if samples > SAMPLE_CAP:
        note = f"it has {samples} samples, which were not measured one by one: the limit is {SAMPLE_CAP}"
        samples = 0
    element = element_of(dtype)
    assert element is not None
    return reading_of(element, how, samples, note)


def _reason(problem: Exception) -> str:
    if isinstance(problem, NotMeasurable):
        return str(problem)
    return f"torch could not read it: {type(problem).__name__}: {problem}"


def _count(tensor: Tensor) -> int:
    try:
        return tensor.numel()
    except Exception:
        return 0


def _threads() -> int:
    return min(2, torch.get_num_threads(), _processors())


@lru_cache(1)
def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
