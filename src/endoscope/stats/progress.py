"""The requests of a plan, measured a few at a time while their tensors come.

    plan ─► Progress ─► place, run ─► place, run ─► … ─► finish ─► Answers of all requests
                                                └─ something else comes ─► first ─► Answers of those before

All answers of a step lie in one piece of memory, wherever a step is cut: nothing needs to be joined afterwards.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from endoscope.stats import layout as at
from endoscope.stats.answers import Answers
from endoscope.stats.elements import address_of
from endoscope.stats.plan import Scratch

if TYPE_CHECKING:
    from endoscope.stats.compiled import Kernels
    from endoscope.stats.plan import Plan
    from endoscope.stats.request import Request

_ORDINARY = (Tensor, torch.nn.Parameter)


class Progress:
    """What the kernels need for the requests of one plan, and how far they are."""

    def __init__(self, plan: Plan, kernels: Kernels, threads: int) -> None:
        self.plan = plan
        self.answers = Answers(plan)
        self.done = 0  # requests that are measured
        self._kernels = kernels
        self.threads = threads
        self._addresses = array("q", bytes(8 * len(plan.readings)))
        self._minus = array("q", bytes(8 * len(plan.readings)))
        self._scratch: Scratch | None = None
        places = (self._addresses.buffer_info()[0], self._minus.buffer_info()[0])
        self._job = array("q", [*plan.tables, *places, *self.answers.addresses(), *at.SCRATCH])
        self._table_at = self._job.buffer_info()[0]

    def place(self, first: int, addresses: list[int], minus: list[int] | None = None) -> None:
        """Say where the tensors of some requests lie, and what is to be subtracted from them, 0 if nothing is."""
        self._addresses[first : first + len(addresses)] = array("q", addresses)
        if minus is not None:
            self._minus[first : first + len(minus)] = array("q", minus)

    def take(self, first: int, requests: Sequence[Request]) -> bool:
        """The same for the last requests; False if the kernels cannot read all of these as the plan says."""
        readings, addresses, minus = self.plan.readings, [], []
        if first + len(requests) != len(readings) or not self.plan.is_direct:
            return False
        try:
            for number, (tensor, _, _, _, other, same_as) in enumerate(requests, first):
                address = subtracted = 0
                if same_as is None:
                    reading = readings[number]
                    assert reading is not None
                    address = place_again(tensor, reading.strides)
                    if other is not None:
                        subtracted = place_again(other, None)
                        alike = other.dtype is tensor.dtype and other.shape == tensor.shape
                        if number not in self.plan.subtracted or not (subtracted and alike):
                            return False
                    if not address:
                        return False
                addresses.append(address)
                minus.append(subtracted)
        except Exception:  # whatever is odd about a tensor is found out by asking for more
            return False
        self.place(first, addresses, minus)
        return True

    def run(self, until: int, tensors: object) -> None:
        """Measure all requests up to this one.

        A second thread holds on to the tensors, the plan and the answers: it knows only their addresses, and may
        outlive this call when an interrupt ends it.
        """
        plan = self.plan
        first, last = plan.rows_before[self.done], plan.rows_before[until]
        self.done = until
        if self.threads > 1 and plan.shares(first, last)[1]:
            self._run_together(*plan.shares(first, last), tensors)
        else:
            self._work(plan.rows_at + 8 * first, last - first)

    def finish(self) -> Answers:
        """All is measured."""
        self.answers.notes = list(self.plan.notes)
        self.answers.settle()
        return self.answers

    def first(self) -> Answers:
        """The answers to what is measured so far; nothing more will be."""
        answers = self.answers.first(self.done)
        answers.notes = list(answers.plan.notes)
        answers.settle()
        return answers

    def _work(self, rows_at: int, count: int) -> None:
        scratch = Scratch.take()
        if scratch is not self._scratch:  # nearly always the same as before
            self._scratch = scratch
            self._job[at.FINE :] = array("q", scratch.addresses)
        self._kernels.measure_all(self._table_at, rows_at, count)
        scratch.give_back()

    def _run_together(self, first: array[int], second: array[int], tensors: object) -> None:
        helper = threading.Thread(target=self._help, args=(second, tensors), daemon=True)
        try:
            helper.start()
        except RuntimeError:  # too many of them, or the interpreter is about to end
            self._help(second, tensors)
            self._work(first.buffer_info()[0], len(first))
        else:
            self._work(first.buffer_info()[0], len(first))
            helper.join()

    def _help(self, rows: array[int], keep: object) -> None:
        """With a table of its own; `keep` is what it reads."""
        scratch = Scratch.take()
        job = self._job[: at.FINE] + array("q", scratch.addresses)
        self._kernels.measure_all(job.buffer_info()[0], rows.buffer_info()[0], len(rows))
        scratch.give_back()


def place_again(tensor: Tensor, strides: tuple[int, ...] | None) -> int:
    """The address of a tensor whose shape and type the kernels can read; 0 if it does not lie as it should."""
    if type(tensor) not in _ORDINARY or not tensor.is_cpu or tensor.is_neg():
        return 0
    if not tensor.is_contiguous() if strides is None else tensor.stride() != strides:
        return 0
    if tensor.storage_offset() and not tensor.untyped_storage().nbytes():
        return 0  # its memory was given back
    address: int = address_of(tensor)
    return address
