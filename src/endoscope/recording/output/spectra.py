"""Singular values and effective rank of matrices, on request and rarely: they cost more than all the rest together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from endoscope.recording.deciding.policies import When
from endoscope.recording.deciding.schedule import Schedule
from endoscope.stats import spectrum

OF = ("parameter", "value")  # gradients and updates follow from these, and would double the price


class Spectra:
    """At which of the captured steps they are computed: decided like recording itself, for each type of step."""

    def __init__(self, when: When) -> None:
        self._schedule = Schedule(when)

    def wanted(self, number: int, type_: str | None) -> bool:
        verdict = self._schedule.begin(number, type_)
        return verdict.capture and verdict.decided

    def finished(self, kept: bool) -> None:
        if kept:
            self._schedule.finish()
        else:
            self._schedule.abandon()


def spectra_of(tensors: Iterable[tuple[Any, str, Tensor]]) -> list[list[Any]]:
    """Node, role, pass, what of it, effective rank and largest singular values of every matrix.

    Of an activation it is the matrix of samples by everything else, of a kernel that of its outputs by everything else.
    """
    found: list[list[Any]] = []
    for item, of, tensor in tensors:
        if of in OF and tensor.dim() >= 2 and tensor.is_floating_point() and min(tensor.shape) > 1:
            known = spectrum(tensor)
            if len(known.singular_values):
                values = [float(value) for value in known.singular_values]
                found.append([item.node, item.role, item.pass_, of, known.effective_rank, values])
    return found
