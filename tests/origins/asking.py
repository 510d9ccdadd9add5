"""Trace or record a planted case, and ask for its origin."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

import endoscope
from tests.origins.outliers import Outlier, Switch
from tests.origins.producers import Case

BAD_STEP = 6
STEPS = 9


def traced(case: Case | Outlier) -> Any:
    """The trace of one bad step; of producers, with gradients."""
    torch.manual_seed(1)
    model = case.make()
    x, flaw, target = case.data()
    with endoscope.tracing(model, gradients=isinstance(case, Case)) as trace:
        loss = _loss(case, model(x, flaw), target, flaw)
        if isinstance(case, Case):
            loss.backward()
    return trace


def recorded(case: Case | Outlier, folder: Any, when: Any = 1, what: Any = None) -> str:
    """The path of a recorded training in which one step is bad."""
    torch.manual_seed(1)
    model = case.make()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with endoscope.Run(folder, trial="planted", when=when, strict=True) as run:
        run.watch(model, optimizer, what=what)
        for number in range(STEPS):
            bad = number == BAD_STEP
            if isinstance(getattr(model, "plant", None), Switch):
                model.plant.on = bad
            x, flaw, target = case.data(bad=bad, seed=number)
            loss = _loss(case, model(x, flaw), target, flaw)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return run.path


def _loss(case: Case | Outlier, out: Any, target: Any, flaw: Any) -> Any:
    return case.loss_of(out, target, flaw) if isinstance(case, Case) else functional.cross_entropy(out, target)


def names_producer(case: Case, found: list[Any], step: int | None = None) -> bool:
    """Whether the first answer has the right operation, line, samples and step."""
    if not found:
        return False
    first = found[0]
    return (
        first.operation == case.operation
        and first.samples == case.samples
        and (not case.line or first.source.endswith(f"producers.py:{case.line}"))
        and (first.of.startswith(case.of) or first.of == "parameter")
        and first.step == step
        and bool(first.exact)
    )


def names_outlier(case: Outlier, found: list[Any], node: str | None = None) -> bool:
    """Whether the first answer has the right sample, and the right operation and line (in a recording: node)."""
    if not found or found[0].samples != (case.sample,):
        return False
    if node is not None:
        return bool(found[0].node == node)
    right = not case.line or found[0].source.endswith(f"outliers.py:{case.line}")
    return bool(found[0].operation == case.operation and right)
