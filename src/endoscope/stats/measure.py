"""`measure`: the statistics of many tensors at once.

request ─► readable in place? ─ yes ──────────────────────► plan ─► compiled kernels ─┐
             └─ no ─► elements.as_plain ─ CPU, kernels ───┘                           ├─► answers ─► Measured
                         │                └─ else ─► fused: plain torch calls ────────┤
                         └─ cannot be had ─► gap ─────────────────────────────────────┘

Nothing is written to a tensor, nothing is recorded by autograd, and random numbers are not drawn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch

from endoscope.stats import compiled, geometry
from endoscope.stats.answers import Answers
from endoscope.stats.elements import NotMeasurable, address_of, as_plain, element_of, is_readable
from endoscope.stats.fused import Fused
from endoscope.stats.geometry import Arrangement
from endoscope.stats.plan import Plan
from endoscope.stats.request import Measured, Request

SAMPLE_CAP = 65_536  # samples of one tensor that are measured one by one

_contiguous = lru_cache(4096)(geometry.contiguous)  # the same shapes come back in every step
_strided = lru_cache(4096)(geometry.strided)
_ORDINARY = (torch.Tensor, torch.nn.Parameter)


class _Job(NamedTuple):
    """A tensor that can be measured."""

    tensor: torch.Tensor
    batch: int | None
    how: Arrangement
    samples: int  # that are measured one by one
    in_place: bool  # by the kernels


def measure(requests: Sequence[Request], *, threads: int | None = None) -> Measured:
    """The statistics of all requested tensors.

    Never raises because of a tensor: what cannot be measured is named in `gaps`. With `threads=2` a second
    thread helps with large steps; None takes one if torch itself may use several.
    """
    # Modes of torch, a tracer for example, must not see what is asked here.
    with torch._C.DisableTorchFunction():
        return _measure(requests, _threads() if threads is None else threads)


def warm() -> str:
    """Load the compiled kernels, or compile them if this machine has not done so before; says where they are from."""
    kernels = compiled.load()
    return kernels.origin if kernels else "plain torch"


def _measure(requests: Sequence[Request], threads: int) -> Measured:
    kernels = compiled.load()
    jobs: list[_Job | None] = []
    gaps: list[tuple[int, str]] = []
    for number, request in enumerate(requests):
        job = _prepare(request, number, gaps, kernels is not None)
        jobs.append(job)
    answers = Answers([job and job.how for job in jobs], [job.samples if job else 0 for job in jobs])
    plan, fused = Plan(), Fused(answers)
    for number, job in enumerate(jobs):
        if job and job.in_place:
            element = element_of(job.tensor.dtype)
            assert element is not None
            row = answers.sample_starts[number] if job.samples else -1
            plan.add(address_of(job.tensor), element, job.how, row, answers.unit_starts[number])
            continue
        plan.skip()
        if job:
            fused.add(number, job.tensor, job.batch, job.samples)
        else:
            answers.counts[0, number] = _count(requests[number].tensor)
    if kernels and plan.rows:
        plan.run(kernels, answers, threads)
    gaps += fused.collect()
    return answers.measured(sorted(gaps))


def _prepare(request: Request, number: int, gaps: list[tuple[int, str]], has_kernels: bool) -> _Job | None:
    try:
        tensor = request.tensor
        in_place = type(tensor) in _ORDINARY and is_readable(tensor)
        if not in_place:
            with torch.no_grad():
                tensor = as_plain(tensor)
            in_place = is_readable(tensor)
        shape = tensor.shape
        batch = geometry.batch_axis(shape, request.batch_dim)
        if not batch and tensor.is_contiguous():
            how = _contiguous(shape, batch, request.units)
        else:
            how = _strided(shape, tensor.stride(), batch, request.units)
        in_place = in_place and has_kernels
        if not in_place:  # torch keeps the order of the units
            how = how._replace(unit_order=())
        samples = how.samples if request.samples and batch is not None else 0
        if samples > SAMPLE_CAP:
            gaps.append((number, f"it has {samples} samples, and only up to {SAMPLE_CAP} are measured one by one"))
            samples = 0
        return _Job(tensor, batch, how, samples, in_place)
    except NotMeasurable as reason:
        gaps.append((number, str(reason)))
    except Exception as problem:  # whatever a tensor can do wrong must not stop a training run
        gaps.append((number, f"torch could not read it: {type(problem).__name__}: {problem}"))
    return None


def _count(tensor: torch.Tensor) -> int:
    try:
        return tensor.numel()
    except Exception:
        return 0


def _threads() -> int:
    return min(2, torch.get_num_threads(), _processors())


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
