"""Gradients that become smaller and smaller on their way back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from endoscope.findings.architecture import has_no_normalisation, is_recurrent, is_squashed, lacks_gates
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import below, lasts, median_where
from endoscope.findings.rows import Rows


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """From layer to layer, and from pass to pass of a recurrence."""
    yield from _over_layers(facts, limits)
    yield from _over_time(facts, limits)
    for rows in facts.gradients.values():
        yield from _over_passes(facts, rows, limits)


def _over_layers(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Compare each weight's gradient with the largest one of the same step."""
    rows = facts.parameters
    weights = rows.rows(lambda tensor: tensor.is_matrix)
    if len(weights) < 2:
        return
    norm = facts.parameter_gradients[weights]
    there = norm > 0
    root_mean_square = norm / np.sqrt(np.maximum(rows["count"][weights], 1))
    largest = np.nanmax(np.where(there, norm, np.nan), axis=0, initial=0)
    # What matters is whether anything comes back to here: a weight of its own may be small beside its neighbours.
    ratio = np.where(there, _up_to_here(facts, weights, norm), np.nan) / largest
    bad = there & below(ratio, limits["ratio"]) & below(root_mean_square, limits["size"])
    lasting = lasts(bad, there, limits["steps_share"], 3)
    usual = median_where(ratio, bad)
    for place in np.flatnonzero(lasting).tolist():
        tensor = rows.tensors[int(weights[place])]
        yield Seen(
            severity=WARNING,
            title=f"the gradient is only {usual[place]:.1e} times the largest one of the model",
            detail=f"The norm of the gradient is {usual[place]:.1e} times that of the largest gradient of the same "
            f"step; reported below {limits['ratio']:g}.",
            value=float(usual[place]), threshold=limits["ratio"], tensor=tensor, **_rounding(float(usual[place])),
            **facts.steps_where(bad[place]),
        )  # fmt: skip


def _rounding(ratio: float) -> dict[str, Any]:
    """A gradient as small as the last bit of others is none: what it is made of cancels."""
    if ratio > _LAST_BIT:
        return {}
    return {"cause": "rounding", "causes": CHECK.causes + _CANCELS}


_LAST_BIT = 1e-6  # of 32-bit numbers, of sums of some
_CANCELS = (
    "It is a zero gradient but for rounding: what the weight makes cancels out on the way to the loss, such as a "
    "number that is divided by itself, a router whose one expert always has the weight one, a shift before a softmax.",
)


def _over_time(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Where networks take turns, one may leave the other nothing to learn from: compare with how it began."""
    if len(set(facts.types.tolist())) < 2:
        return
    order = np.argsort(facts.numbers, kind="stable")
    for type_ in dict.fromkeys(facts.types.tolist()):
        places = order[facts.types[order] == type_]
        moved = np.isfinite(facts.parameter_updates[:, places]).any(axis=1)
        norm = facts.parameter_gradients[moved][:, places]
        total = np.sqrt(np.nansum(norm**2, axis=0))
        part = max(3, len(total) // 6)
        if not moved.any() or len(total) < 2 * part:
            continue
        first, last = float(np.median(total[:part])), float(np.median(total[-part:]))
        if first > 0 and last < limits["faded"] * first:
            row = int(np.flatnonzero(moved)[int(np.nanargmax(np.nan_to_num(norm).sum(axis=1)))])
            mask = np.zeros(len(facts.steps), dtype=bool)
            mask[places[total < limits["faded"] * first]] = True
            yield Seen(
                of_the_run=True, severity=WARNING,
                title=f"the gradient of the steps of type {type_!r} has faded to {last / first:.1e} of its first size",
                detail=f"The norm over all parameters that they move fell from {first:.2g} to {last:.2g}; reported "
                f"below {limits['faded']:g} times what it was at first.",
                value=last / first, threshold=limits["faded"], tensor=facts.parameters.tensors[row], cause="time",
                causes=(
                    "One network has become so good that the other gets no gradient: a discriminator that wins, with a "
                    "loss that saturates.",
                ),
                remedies=(
                    "Let the discriminator learn less often or more slowly; use the loss that does not saturate.",
                ),
                **facts.steps_where(mask),
            )  # fmt: skip


def _up_to_here(facts: Facts, weights: np.ndarray, norm: np.ndarray) -> np.ndarray:
    """For each weight and step the largest gradient of the weights that are read no later than it."""
    depths = np.array([facts.structure.depth(facts.parameters.tensors[row].place) for row in weights.tolist()])
    order = np.argsort(depths, kind="stable")
    result = np.empty_like(norm)
    result[order] = np.maximum.accumulate(np.nan_to_num(norm[order]), axis=0)
    return result


def _over_passes(facts: Facts, rows: Rows, limits: Limits) -> Iterator[Seen]:
    """Compare the gradient at the first pass of a node with that at its last."""
    passes: dict[tuple[str, str], list[int]] = {}
    for tensor in rows.tensors:
        passes.setdefault(tensor.place[:2], []).append(tensor.row)
    for found in passes.values():
        if len(found) < limits["passes"]:
            continue
        found.sort(key=lambda row: rows.tensors[row].key.pass_)
        norm = rows["norm"][found].astype(np.float64)
        last = np.nanmax(norm[-2:], axis=0, initial=0.0)
        ratio = np.where((norm[0] > 0) & (last > 0), norm[0] / last, np.nan)
        bad = below(ratio, limits["pass_ratio"])
        if lasts(bad[None], np.isfinite(ratio)[None], limits["steps_share"], 3)[0]:
            value = float(np.median(ratio[bad]))
            yield Seen(
                severity=WARNING,
                title=f"the gradient fades over {len(found)} passes, to {value:.1e} of its size at the last",
                detail=f"At the first pass of {len(found)} the gradient is {value:.1e} times that at its last; "
                f"reported below {limits['pass_ratio']:g}.",
                value=value, threshold=limits["pass_ratio"], tensor=rows.tensors[found[0]], cause="passes",
                **facts.steps_where(bad),
            )  # fmt: skip


CHECK = Check(
    name="vanishing_gradient",
    description="The gradient of a weight, or of an early pass of a recurrence, is tiny beside that of others.",
    stage=Stage.BACKWARD,
    run=run,
    thresholds={"ratio": 1e-3, "size": 1e-5, "steps_share": 0.5, "pass_ratio": 1e-5, "passes": 4, "faded": 0.01},
    quantity="gradient_share",
    evidence=Evidence(("norm",), of="gradient"),
    explained_by=("dead_units", "saturated", "bad_initialisation"),
    causes=("Weights that began too small, or many layers without skip connections.",),
    causes_where=(
        (is_squashed, "Many saturating activations (sigmoid, tanh) in a row."),
        (is_recurrent, "A long recurrence."),
    ),
    remedies=("Use He or Glorot initialisation; look whether each block has its skip connection.",),
    remedies_where=(
        (is_squashed, "Use ReLU, GELU or SiLU instead of sigmoid and tanh inside the network."),
        (has_no_normalisation, "Add normalisation layers."),
        (lacks_gates, "Use LSTM or GRU cells for long sequences."),
        (is_recurrent, "Cut long sequences into parts."),
    ),
)
