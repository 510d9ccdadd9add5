"""Parameters that are used and that the model, and so its optimizer, does not know."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Those that a traced step has read, and those that are other objects at every step."""
    said = facts.remarks("unregistered")
    if said:
        names = tuple(dict.fromkeys(one["name"] for one in said))
        modules = tuple(dict.fromkeys(one["module"] for one in said if one["module"]))
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"{len(names)} parameters are used, and no optimizer holds them",
            detail=f"{_listed(names)}: they require a gradient, are in no module that the model has registered and in "
            "no optimizer, so they are not trained and never updated.",
            value=float(len(names)), threshold=0.0, node=said[0]["node"] or modules[0] if modules else names[0],
            also=(*names, *modules), source=said[0]["source"], **facts.steps_of(said[0]["node"]),
        )  # fmt: skip
    exchanged: dict[str, list[int]] = {}
    for place, names in facts.extra("exchanged"):
        for name in names:
            exchanged.setdefault(name, []).append(place)
    for name, places in exchanged.items():
        if len(places) < limits["steps"]:
            continue
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[places] = True
        row = facts.parameters.row_of.get((name, "", 1))
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"`{name}` is a new parameter at every step, and the optimizer holds an old one",
            detail=f"At {len(places)} recorded steps it was another object than before, so it is never updated: what "
            "the optimizer holds is no longer used.",
            value=float(len(places)), threshold=limits["steps"], node=name, cause="exchanged",
            tensor=None if row is None else facts.parameters.tensors[row], causes=_NEW, remedies=_MAKE_ONCE,
            **facts.steps_where(mask),
        )  # fmt: skip


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


_NEW = ("nn.Parameter(…) is called in forward, or the model is loaded or converted in the training loop.",)
_MAKE_ONCE = ("Make parameters once, in __init__, and write into them in place: `with torch.no_grad(): p.copy_(…)`.",)

CHECK = Check(
    name="unregistered_parameters",
    description="Parameters are used and are in no optimizer, because the model does not know them.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={"steps": 3},
    evidence=Evidence(("norm",)),
    causes=("Layers in a plain list or dict: only nn.ModuleList and nn.ModuleDict register what they hold.",),
    remedies=("Put them into nn.ModuleList, nn.ModuleDict or nn.ParameterList, before the optimizer is made.",),
)
