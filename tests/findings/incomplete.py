"""Recordings that lack steps, or parts of their steps; made by real runs where that is possible."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.nn import functional

import endoscope
from endoscope.schema.recording import GapRecord
from endoscope.store import files
from endoscope.store.writer import TrialWriter
from tests.findings.runs import blobs, classifier
from tests.store.made_up import step_record

Body = Callable[[Any], None]


@contextmanager
def quietly(folder: Path, **settings: Any) -> Iterator[endoscope.Run]:
    """A run that is not strict; what it warns of is what is wanted here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with endoscope.Run(folder, trial="trial", **settings) as run:
            yield run


def loop(model: nn.Module, steps: int, call: Callable[[Any, torch.Tensor], torch.Tensor] | None = None) -> None:
    """A plain loop; `call` is what calls the model."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for number in range(steps):
        inputs, labels = blobs(number)
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs) if call is None else call(model, inputs), labels).backward()
        optimizer.step()


def never_called(folder: Path) -> Path:
    with quietly(folder) as run:
        run.watch(classifier())
    return Path(run.path)


def in_evaluation_mode(folder: Path) -> Path:
    """Trained so: the recorder notices it at every update."""
    model = classifier().eval()
    with quietly(folder) as run:
        run.watch(model)
        loop(model, 5)
    return Path(run.path)


def without_forward(folder: Path) -> Path:
    def by_hand(model: Any, inputs: torch.Tensor) -> torch.Tensor:
        hidden = functional.linear(inputs, model[0].weight, model[0].bias).relu()
        return functional.linear(hidden, model[2].weight, model[2].bias)

    model = classifier()
    with quietly(folder) as run:
        run.watch(model)
        loop(model, 5, by_hand)
    return Path(run.path)


def nobody_wanted(folder: Path) -> Path:
    model = classifier()
    with quietly(folder, when=lambda step: False) as run:
        run.watch(model)
        loop(model, 7)
    return Path(run.path)


def full_disk(folder: Path, before: int = 2, meanwhile: int = 30, after: int = 1) -> Path:
    """The disk takes nothing of the steps in the middle; there is room again when the run is closed."""
    model, write, is_full = classifier(), files._write_some, False

    def perhaps(descriptor: int, buffers: Any) -> int:
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, buffers)

    with mock.patch.object(files, "_write_some", perhaps), quietly(folder, when=1, keep=0) as run:
        run.watch(model)
        for steps, is_full in ((before, False), (meanwhile, True), (after, False)):  # noqa: B007
            loop(model, steps)
            run.flush()
    return Path(run.path)


def slow_disk(folder: Path, before: int = 3, meanwhile: int = 30) -> Path:
    """From some step on the queue to the writer is always full."""
    model = classifier()
    with quietly(folder, when=1, keep=0) as run:
        run.watch(model)
        loop(model, before)
        with mock.patch.object(run._worker, "has_room", return_value=False):
            loop(model, meanwhile)
    return Path(run.path)


def another_model(folder: Path) -> Path:
    """The model in the block is not the one that is watched."""
    with quietly(folder, when=1) as run:
        run.watch(classifier())
        other = classifier()
        for number in range(4):
            with run.step():
                functional.cross_entropy(other(blobs(number)[0]), blobs(number)[1]).backward()
    return Path(run.path)


def made_up(folder: Path, *gaps: GapRecord, steps: int = 6, first: int = 0, trial: str = "trial") -> Path:
    """Steps without graph or gradients; from step `first` on each has these gaps."""
    writer = TrialWriter.create(folder, trial)
    for number in range(steps):
        told = list(gaps) if number >= first else []
        writer.write_step(step_record(writer, number, graph=None, graph_hash="", gaps=told))
    writer.close()
    return Path(writer.path)
