"""Weights that begin all equal, or with the wrong scale."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, WARNING
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """At the first recorded step, if that is the beginning of training."""
    rows = facts.parameters
    if not len(rows) or not len(facts.numbers) or facts.numbers.min() > limits["latest_step"]:
        return
    first = int(np.argmin(facts.numbers))
    mask = np.zeros(len(facts.steps), dtype=bool)
    mask[first] = True
    for tensor in rows.tensors:
        size = int(np.prod(tensor.key.shape))
        if (
            tensor.is_matrix
            and size >= 4
            and not np.isnan(rows["std"][tensor.row, first])
            and _is_weight(facts, tensor)
        ):
            yield from _judge(facts, tensor, first, mask, limits)
    yield from _all_zero(facts, first, mask)


def _all_zero(facts: Facts, first: int, mask: np.ndarray) -> Iterator[Seen]:
    """A layer may begin as zero on purpose; then it has a gradient. Where it has none, others are zero, too."""
    rows = facts.parameters
    zero = [
        tensor for tensor in rows.tensors
        if tensor.is_matrix and facts.trainable.get(tensor.node, True) and _is_weight(facts, tensor)
        and rows["abs_max"][tensor.row, first] == 0 and facts.parameter_gradients[tensor.row, first] == 0
    ]  # fmt: skip
    if zero:
        others = f" and {len(zero) - 1} other weights begin" if len(zero) > 1 else " begins"
        told = f"`{zero[0].node}`{others} as zero"
        yield Seen(
            of_the_run=True, severity=ERROR, title=f"{told} and get no gradient",
            detail=f"At step {facts.numbers[first]} all elements of {len(zero)} weights are zero, and so are their "
            "gradients: these layers cannot begin to learn, because all their units are identical.",
            value=0.0, threshold=0.0, tensor=zero[0], cause="zero", also=tuple(tensor.node for tensor in zero[1:]),
            causes=("An initialisation that sets weights to zero, such as a loop that was meant for biases.",),
            **facts.steps_where(mask),
        )  # fmt: skip


def _judge(facts: Facts, tensor: Tensor, first: int, mask: np.ndarray, limits: Limits) -> Iterator[Seen]:
    std, largest = (
        float(facts.parameters["std"][tensor.row, first]),
        float(facts.parameters["abs_max"][tensor.row, first]),
    )
    where = {"tensor": tensor, **facts.steps_where(mask)}
    fan_in = int(np.prod(tensor.key.shape[1:]))
    gain = std * np.sqrt(fan_in)
    if std == 0 and gain == 0 and largest > 0 and min(tensor.key.shape[:2]) > 1:
        yield Seen(
            of_the_run=True, severity=ERROR,
            title="all weights begin with the same size, so all units learn the same",
            detail=f"All weights are {largest:g} in size at step {facts.numbers[first]}, so all units learn the same.",
            value=0.0, threshold=0.0, cause="equal", **where,
        )  # fmt: skip
    elif largest > 0 and (gain > limits["high"] or gain < limits["low"]):
        limit = limits["high"] if gain > limits["high"] else limits["low"]
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"weights begin too {'large' if gain > limits['high'] else 'small'} for {fan_in} inputs",
            detail=f"Their standard deviation times the root of the {fan_in} inputs is {gain:.2g}; between 0.5 "
            "and 1.5 is "
            f"usual, and {'above' if gain > limits['high'] else 'below'} {limit:g} is reported.",
            value=float(gain), threshold=limit, cause="scale", **where,
        )  # fmt: skip


def _is_weight(facts: Facts, tensor: Tensor) -> bool:
    """Embeddings, positions and tokens of their own have no inputs to be scaled by."""
    readers = {facts.structure.type.get(place, "") for place in facts.structure.children.get(tensor.place, ())}
    is_layer = bool(readers & {"linear", "conv1d", "conv2d", "conv3d", "matmul", "addmm", "gru", "lstm", "rnn_tanh"})
    module = facts.module_types.get(tensor.key.module, "")
    return (is_layer or module.startswith(("Linear", "Conv"))) and not module.startswith(("Embedding", "ConvTranspose"))


CHECK = Check(
    name="bad_initialisation",
    description="Weights that begin all equal, or far too large or small for the size of the layer.",
    stage=Stage.START,
    run=run,
    needs_harm=True,
    thresholds={"low": 0.02, "high": 3.0, "latest_step": 2},
    evidence=Evidence(("std",)),
    causes=("Weights that were set to a constant.", "A standard deviation that does not fit the number of inputs."),
    remedies=("Use torch.nn.init.kaiming_normal_ or xavier_uniform_, or leave the default of the layer.",),
)
