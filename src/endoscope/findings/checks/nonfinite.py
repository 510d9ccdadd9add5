"""NaN and infinity: where they appear first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings import completeness
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, INFO
from endoscope.findings.functions import ATTENTIONS, MASKS, SOFTMAXES
from endoscope.findings.origin_noted import recorded_origins
from endoscope.findings.rows import Rows, Tensor
from endoscope.schema.origin import Origin

_MOST_PRODUCERS = 4


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The producers at the first step that has anything of the kind."""
    first = first_place(facts)
    if first is not None:
        yield from producers_at(facts, first)
    elif names := completeness.nonfinite_parameters(facts.recording):
        yield _at_the_end(facts, names)


def _at_the_end(facts: Facts, names: list[str]) -> Seen:
    """Only a part of the steps is recorded: what none of them shows may still be in the parameters."""
    row = facts.parameters.row_of.get((names[0], "", 1))
    last = facts.steps_where(np.arange(len(facts.steps)) == int(np.argmax(facts.numbers)))
    return Seen(
        of_the_run=True, severity=ERROR, title=f"{len(names)} parameters hold NaN or infinity at the end",
        detail="The recorded steps are finite, and when the run was closed the parameters were not: a step that was "
        "not recorded made them NaN or infinite. Record every step to see which operation it was: "
        "`endoscope.Run(root, when=1)`.",
        value=float(len(names)), threshold=0.0, node=names[0], also=tuple(names[1:]),
        tensor=None if row is None else facts.parameters.tensors[row], **last,
    )  # fmt: skip


def first_place(facts: Facts) -> int | None:
    """Place of the first step with something that is not finite."""
    counts = [_count(facts, rows) for rows in _sorts(facts)]
    return min((int(np.flatnonzero(c.any(axis=0))[0]) for c in counts if c.any()), default=None)


def producers_at(facts: Facts, place: int) -> Iterator[Seen]:
    """The producers, in order of computation: values, then gradients from the loss on backwards, then updates."""
    for rows in _sorts(facts):
        count = _count(facts, rows)
        wrong = np.flatnonzero(count[:, place] > 0)
        if len(wrong):
            is_gradient = rows is not facts.values and rows is not facts.parameters
            yield from _producers(facts, rows, count, wrong, place, is_gradient)
            return


def _sorts(facts: Facts) -> list[Rows]:
    return [facts.parameters, facts.values, *facts.gradients.values(), facts.used_gradients, facts.updates]


def _count(facts: Facts, rows: Rows) -> np.ndarray:
    """How many elements are not finite. Minus infinity is a fine way to mask something for a softmax."""
    count: np.ndarray = np.nan_to_num(rows["nans"] + rows["infs"])
    lows = np.nan_to_num(rows["neg_infs"])
    for tensor in rows.tensors if lows.any() else ():
        if lows[tensor.row].any() and _is_mask(facts, tensor):
            count[tensor.row] -= lows[tensor.row]
    return count


def _is_mask(facts: Facts, tensor: Tensor) -> bool:
    readers = {facts.structure.type.get(place, "") for place in facts.structure.readers(tensor.place)}
    masks = facts.type_of(tensor) in MASKS or tensor.key.kind in ("input", "buffer")
    return masks or (bool(readers) and readers <= SOFTMAXES | ATTENTIONS | MASKS)


def _producers(
    facts: Facts, rows: Rows, count: np.ndarray, wrong: np.ndarray, first: int, is_gradient: bool
) -> Iterator[Seen]:
    structure = facts.structure
    tensors = sorted((rows.tensors[row] for row in wrong.tolist()), key=lambda one: structure.depth(one.place))
    places = {tensor.place for tensor in tensors}
    if is_gradient:
        tensors.reverse()
    sources = structure.children if is_gradient else structure.parents
    begun = [tensor for tensor in tensors if not any(place in places for place in sources.get(tensor.place, ()))]
    begun = (begun or tensors[:1])[:_MOST_PRODUCERS]
    others = tuple(dict.fromkeys(tensor.node for tensor in tensors if tensor not in begun))
    skipped = is_gradient and _were_skipped(facts, np.asarray(count.any(axis=0)))
    known = _by_node(recorded_origins(facts, first), [tensor.node for tensor in begun])
    for tensor in begun:
        origin = known.get(tensor.node)
        samples = origin.samples if origin is not None else ()
        yield Seen(
            severity=INFO if skipped else ERROR,
            title=_title(rows, tensor, first, is_gradient, origin),
            detail=_detail(facts, rows, tensor, first, skipped, origin),
            value=float(count[tensor.row, first]), threshold=0.0, tensor=tensor,
            samples=samples or facts.samples_with(tensor, first, ("nans", "infs")),
            source=origin.source if origin is not None else "",
            also=others if tensor is begun[0] else (), **facts.steps_where(count[tensor.row] > 0),
        )  # fmt: skip


def _by_node(origins: list[Origin], nodes: list[str]) -> dict[str, Origin]:
    """What the recorder found out, by the node that is reported; what fits none of them belongs to the first."""
    found: dict[str, Origin] = {}
    for origin in origins:
        found.setdefault(origin.node, origin)
    if origins and not any(node in found for node in nodes):
        found[nodes[0]] = origins[0]
    return found


def _title(rows: Rows, tensor: Tensor, first: int, is_gradient: bool, origin: Origin | None) -> str:
    what = "NaN" if rows["nans"][tensor.row, first] > 0 else "infinity"
    if origin is None or not origin.source or not origin.exact or origin.operation == tensor.key.kind:
        return f"the gradient holds {what}" if is_gradient else f"{what} appears"
    samples = f" in sample {origin.samples[0]}" if len(origin.samples) == 1 else ""
    maker = f"the backward pass of {origin.operation}" if origin.of.startswith("gradient") else origin.operation
    return f"{maker} makes {what}{samples}"


def _detail(facts: Facts, rows: Rows, tensor: Tensor, first: int, skipped: bool, origin: Origin | None) -> str:
    nans, total = rows["nans"][tensor.row, first], rows["count"][tensor.row, first]
    infs = rows["infs"][tensor.row, first]
    found = f"{nans:.0f} NaN and {infs:.0f} infinite of {total:.0f} elements at step {facts.numbers[first]}"
    if skipped:
        return f"{found}; the optimizer skipped these steps, as a gradient scaler does."
    if origin is not None and origin.source:
        return f"{found}: {origin}."
    if tensor.key.kind in ("input", "target", "buffer"):
        return f"{found}; it came in from outside of the model."
    if tensor.key.of == "parameter":
        return f"{found}, before the forward pass: an earlier step that was not recorded made it, or the start."
    return f"{found}, although everything recorded that it is made from is finite."


def _were_skipped(facts: Facts, steps: np.ndarray) -> bool:
    """A gradient scaler finds its scale by trying, and leaves out the steps that overflowed."""
    norms = facts.parameter_updates[:, steps]
    return bool(norms.size and not np.isnan(norms).all() and np.nanmax(norms) == 0 and not steps.all())


CHECK = Check(
    name="nonfinite",
    description="NaN or infinite elements, reported where they appear first.",
    stage=Stage.DATA,
    run=run,
    evidence=Evidence(("nans", "infs", "neg_infs"), page="std"),
    causes=(
        "The logarithm or the root of zero or of a negative number, a division by zero, exp of a large number.",
        "A learning rate so large that the weights overflowed.",
        "A sample with NaN in it, or a softmax over a row that is masked completely.",
        "Numbers beyond 65,504 in 16-bit floats.",
    ),
    remedies=(
        "Look at the operation in the source line and at its inputs; add a small constant inside the log, root "
        "or quotient.",
        "Clip gradients, lower the learning rate, or use bfloat16 or a gradient scaler.",
        "Check the data of the samples that are named.",
    ),
)
