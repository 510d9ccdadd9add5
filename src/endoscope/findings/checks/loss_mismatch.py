"""A loss that is handed something else than it expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.functions import LOSSES_OF_CLASSES, LOSSES_OF_NUMBERS, RECTIFIERS, SIGMOIDS
from endoscope.findings.lasting import lasts
from endoscope.findings.rows import Tensor

_PROBABILITIES = frozenset(("softmax",))
_OF_LOGITS = LOSSES_OF_CLASSES | {"binary_cross_entropy_with_logits"}
_NLL = frozenset("nll_loss nll_loss_nd nll_loss2d ctc_loss".split())
_NEVER_NEGATIVE = _NLL | {"cross_entropy", "cross_entropy_loss", "kl_div", "binary_cross_entropy"}
_NEVER_NEGATIVE |= {"binary_cross_entropy_with_logits"}
_LAYERS = frozenset("linear addmm conv1d conv2d conv3d matmul".split())
_BOUNDED = SIGMOIDS - {"logsigmoid"}


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """From the functions that were called, then from the range of the numbers."""
    told = False
    for said in facts.remarks("loss"):
        made_by = said["reads"][0] if said["reads"] else ""
        if text := _mismatch(said["type"], made_by):
            told = True
            yield _seen(facts, said, *text)
    for said in facts.remarks("paired"):
        if said["node"] == "loss" or any(t.node == said["node"] and t.key.kind == "loss" for t in facts.values.tensors):
            yield _seen(
                facts, said, "the loss compares every sample with every other",
                f"shapes {said['shapes'][0]} and {said['shapes'][1]} are broadcast to a matrix, sample by sample",
                ("A dimension of size 1 that only one of prediction and target has: (n, 1) and (n,).",),
                ("Give both the same shape: `prediction.squeeze(1)`, or `target.unsqueeze(1)`.",),
            )  # fmt: skip
    yield from _out_of_reach(facts, limits)
    if not told:
        yield from _negative(facts)


def _negative(facts: Facts) -> Iterator[Seen]:
    """What gets logarithms of probabilities, and targets between 0 and 1, is never below zero."""
    rows = facts.values
    for tensor in rows.tensors:
        type_ = facts.type_of(tensor)
        bad = rows["mean"][tensor.row] < -1e-4
        if tensor.key.kind != "loss" or type_ not in _NEVER_NEGATIVE or np.count_nonzero(bad) < 2:
            continue
        by_logits = type_ in _OF_LOGITS | {"binary_cross_entropy"}  # torch itself checks what this one reads
        yield Seen(
            of_the_run=True, severity=WARNING, title=f"{type_} is negative, which a loss of probabilities never is",
            detail=f"It is {float(np.nanmin(rows['mean'][tensor.row])):.3g} at the lowest, and below zero at "
            f"{np.count_nonzero(bad)} recorded steps: it gets "
            + ("targets that are not between 0 and 1." if by_logits else "no logarithms of probabilities."),
            value=float(-np.nanmin(rows["mean"][tensor.row])), threshold=0.0, tensor=tensor, cause="negative",
            causes=(
                "Targets below 0 or above 1, such as -1 for no, or pixels from 0 to 255."
                if by_logits
                else f"log_softmax is missing between the model and {type_}, so the loss has no lower bound.",
            ),
            remedies=("Look up what the loss expects, and hand that over.",), also=_read_by(facts, tensor),
            **facts.steps_where(bad),
        )  # fmt: skip


def _mismatch(loss: str, made_by: str) -> tuple[str, str, tuple[str, ...], tuple[str, ...]] | None:
    """Title, detail, causes and remedies; None if they go together."""
    if loss in _OF_LOGITS and made_by in _PROBABILITIES | _BOUNDED:
        twice = "softmax" if loss in LOSSES_OF_CLASSES else "sigmoid"
        return (
            f"the loss gets probabilities and applies a {twice} once more",
            f"{loss} has a {twice} in it and expects logits, but reads the result of {made_by}",
            (f"A {made_by} at the end of the model, and a loss that applies {twice} already: it is done twice.",),
            (f"Remove the {made_by} at the end, or use a loss of probabilities.",),
        )
    if loss in _OF_LOGITS and made_by in RECTIFIERS:
        return (
            f"the loss gets logits from which {made_by} has cut the negative side",
            f"{loss} expects logits of both signs, but reads the result of {made_by}, which is never negative",
            ("An activation behind the last layer, often from a helper that puts one behind every layer.",),
            (f"Remove the {made_by} behind the last layer.",),
        )
    if loss in _NLL and made_by in _LAYERS | _PROBABILITIES | RECTIFIERS | _BOUNDED:
        return (
            "the loss expects logarithms of probabilities and gets something else",
            f"{loss} reads the result of {made_by}, not of log_softmax, so it has no lower bound",
            (f"log_softmax is missing between the model and {loss}: the loss falls without end.",),
            ("Apply F.log_softmax over the classes first; of single labels, F.cross_entropy takes logits.",),
        )
    if loss == "kl_div" and made_by in _PROBABILITIES | _LAYERS:
        return (
            "kl_div expects logarithms of probabilities and gets something else",
            f"its first argument is the result of {made_by}, not of log_softmax",
            ("log_softmax is missing before kl_div.",), ("Apply F.log_softmax to the first argument.",),
        )  # fmt: skip
    return None


def _seen(
    facts: Facts, said: dict[str, Any], title: str, detail: str, causes: tuple[str, ...], remedies: tuple[str, ...]
) -> Seen:
    at = facts.value_at(said["node"])
    return Seen(
        of_the_run=True, severity=WARNING,
        title=title, detail=f"{detail[:1].upper()}{detail[1:]}.", value=1.0, threshold=0.0,
        tensor=at, node=said["node"] or said["module"] or "loss", source=said["source"], cause=title, causes=causes,
        remedies=remedies, also=_read_by(facts, at), **facts.steps_of(said["node"]),
    )  # fmt: skip


def _read_by(facts: Facts, loss: Tensor | None) -> tuple[str, ...]:
    """What the loss was computed from: the place to mend is often there."""
    if loss is None:
        return ()
    above = [place for place in facts.structure.parents.get(loss.place, ()) if place[0] != "target"]
    return tuple(dict.fromkeys(name for place in above for name in _names(facts, place)))


def _names(facts: Facts, place: tuple[str, str, int]) -> list[str]:
    """A tensor, and what it is another name of."""
    names = [place[0]]
    parents = facts.structure.parents.get(place, [])
    if place[0].rpartition(".")[2] == "output" and len(parents) == 1:
        names += _names(facts, parents[0])
    return names


def _out_of_reach(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Targets on a side that the last activation can never give."""
    rows = facts.values
    for said in facts.remarks("loss"):
        if said["type"] not in LOSSES_OF_NUMBERS or len(said["reads"]) < 2:
            continue
        low, high = _reach(said["reads"][0])
        loss = facts.value_at(said["node"])
        above = facts.structure.parents.get(loss.place, ()) if loss is not None else ()
        found = [rows.tensors[rows.row_of[place]] for place in above if place in rows.row_of]
        targets = [one for one in found if one.key.kind == "target" and one.is_float]
        if not targets or loss is None or (low == -np.inf and high == np.inf):
            continue
        row = targets[0].row
        there = rows.there[row]
        outside = (rows["q25"][row] < low - 1e-3) | (rows["q75"][row] > high + 1e-3)
        if lasts((outside & there)[None], there[None], limits["steps_share"], 3)[0]:
            reach = f"between {low:g} and {high:g}" if high < np.inf else f"not below {low:g}"
            yield _seen(
                facts, said, f"targets are out of the range of the {said['reads'][0]} at the end",
                f"the last activation gives numbers {reach}, and a quarter of the targets or more lie outside "
                f"(they reach from {np.nanmin(rows['min'][row]):.3g} to {np.nanmax(rows['max'][row]):.3g})",
                ("An activation behind the last layer of a regression.", "Targets that are not scaled as it expects."),
                (f"Remove the {said['reads'][0]} behind the last layer, or scale the targets into its range.",),
            )  # fmt: skip


def _reach(function: str) -> tuple[float, float]:
    """The range of an activation."""
    if function in _BOUNDED | _PROBABILITIES:
        return 0.0, 1.0
    if function in RECTIFIERS | {"softplus", "exp"}:
        return 0.0, np.inf
    return (-1.0, 1.0) if function == "tanh" else (-np.inf, np.inf)


CHECK = Check(
    name="loss_mismatch",
    description="A loss gets something else than it expects: probabilities instead of logits, other shapes, targets "
    "out of range.",
    stage=Stage.START,
    run=run,
    thresholds={"steps_share": 0.5},
    evidence=Evidence(("q05", "q50", "q95")),
    causes=("The last activation, or the shape of the prediction, does not fit the loss.",),
    remedies=("Look up what the loss expects, and hand that over.",),
)
