"""Parameters that could learn and never get a gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, INFO, WARNING
from endoscope.findings.health import learns_well


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """A parameter without a gradient at one step may have one at another: at every step it must be missing."""
    has_any = np.isfinite(facts.parameter_gradients).any(axis=0)
    missing: dict[str, list[int]] = {}
    for place, names in facts.extra("no_gradient"):
        for name in names:
            missing.setdefault(name, []).append(place)
    with_gradients = int(np.count_nonzero(has_any))
    if with_gradients < limits["steps"]:
        yield from _none_at_all(facts, missing, limits)
        return
    well = learns_well(facts)
    for tensor in facts.parameters.tensors:
        places = missing.get(tensor.node, [])
        got_some = np.isfinite(facts.parameter_gradients[tensor.row]).any()
        if got_some or len(places) < with_gradients or not facts.trainable.get(tensor.node, True):
            continue
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[places] = True
        read = bool(facts.structure.children.get(tensor.place))
        how = "It is used in the forward pass, but no path leads from there to a loss" if read else "It is never used"
        yield Seen(
            severity=WARNING if read or not (well or _has_busy_siblings(facts, tensor.key.module)) else INFO,
            title="the parameter gets no gradient",
            detail=f"{how}: the parameter requires a gradient and got none at {len(places)} of "
            f"{with_gradients} recorded steps.",
            value=len(places) / with_gradients, threshold=1.0, tensor=tensor, cause="used" if read else "unused",
            **facts.steps_where(mask),
        )  # fmt: skip


def _has_busy_siblings(facts: Facts, module: str) -> bool:
    """Whether it is one of a list of modules of which others are used, as the experts of a mixture are."""
    lists = [part for part in module.split(".") if part.isdigit()]
    head = module.split(f".{lists[0]}")[0] if lists else ""
    busy = np.isfinite(facts.parameter_gradients).any(axis=1)
    same = [one.row for one in facts.parameters.tensors if head and one.key.module.startswith(f"{head}.")]
    return bool(busy[same].any())


def _none_at_all(facts: Facts, missing: dict[str, list[int]], limits: Limits) -> Iterator[Seen]:
    """A backward pass that reaches no parameter of the model."""
    places = sorted({place for found in missing.values() for place in found})
    if not any(tensor.key.kind == "computed" for tensor in facts.values.tensors):
        return  # the model was not called at all, which `lost_parts` says
    if len(places) < limits["steps"] or np.isfinite(facts.parameter_gradients).any():
        return
    mask = np.zeros(len(facts.steps), dtype=bool)
    mask[places] = True
    first = next((tensor for tensor in facts.parameters.tensors if tensor.node in missing), None)
    yield Seen(
        severity=ERROR, title="no parameter of the model gets a gradient",
        detail=f"At all {len(places)} recorded steps with a backward pass, none of {len(missing)} parameters got a "
        "gradient: the loss is not connected to the model.",
        value=1.0, threshold=1.0, tensor=first, cause="all", also=tuple(name for name in missing),
        causes=(
            "A loss that is made anew from a number: torch.tensor(loss.item(), requires_grad=True).",
            "Everything is detached, or computed under torch.no_grad().",
        ),
        remedies=("Call backward() on the tensor that the loss function returned.",),
        **facts.steps_where(mask),
    )  # fmt: skip


def _cut(facts: Facts, node: str) -> str:
    """The line on which the recorder saw a gradient being cut, if it was one only."""
    lines = {one["source"] for one in facts.remarks("cut")}
    return lines.pop() if len(lines) == 1 else ""


CHECK = Check(
    name="missing_gradient",
    description="Parameters that require a gradient and get none at any step.",
    stage=Stage.BACKWARD,
    run=run,
    thresholds={"steps": 2},
    evidence=Evidence(("norm",), of="gradient"),
    causes=(
        "A detach(), .item(), numpy or torch.no_grad() between the parameter and the loss.",
        "A module that is created and never called, or whose result is not used.",
        "An operation without a gradient (argmax, rounding, comparison) on the way.",
    ),
    remedies=(
        "Follow the graph from this parameter towards the loss and look where it ends.",
        "Remove the module, or set requires_grad_(False) if it is frozen on purpose.",
    ),
)
