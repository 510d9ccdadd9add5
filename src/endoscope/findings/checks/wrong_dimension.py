"""Operations over a dimension that was not meant: the batch, or one of size 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.functions import RECURRENCES

_MIXED = (
    "A softmax or reshape over the dimension of the batch: what the model says of one sample depends on the others.",
)
_PROBE = "`endoscope check DIR --deep script.py:build` tries whether samples of a batch influence each other."


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """All of it is told by the operations of a traced step."""
    for said in facts.remarks("softmax"):
        shape, dim = said["shape"], said["dim"]
        if len(shape) >= 2 and shape[dim] == 1:
            yield _seen(
                facts, said, f"softmax over a dimension of size 1 gives the constant {_constant(facts, said)}",
                f"softmax over dimension {dim} of the shape {tuple(shape)}: each result is the same for every sample",
                ("A softmax over a single unit or number: its result does not depend on the input.",),
                ("Use a sigmoid for one unit, or two units with a softmax.", "Take the softmax over another dim."),
            )  # fmt: skip
        elif dim == 0 and len(shape) >= 2 and shape[0] == said["batch"] and said["module"] + said["node"] != "loss":
            if not said["node"] or _is_of_the_model(facts, said):
                yield _seen(
                    facts, said, "softmax over the dimension of the batch mixes samples",
                    f"softmax over dimension 0 of the shape {tuple(shape)}, and the batch has {shape[0]} samples",
                    _MIXED, ("Take the softmax over the last dimension: dim=-1.", _PROBE),
                )  # fmt: skip
        elif dim % len(shape) == len(shape) - 2 >= 1 and shape[-1] == shape[-2] > 1:
            yield _seen(
                facts, said, "softmax runs over the last dimension but one of square scores",
                f"softmax over dimension {dim} of the shape {tuple(shape)}: of attention, the weights of one query do "
                "not sum to one, and what later places give leaks into earlier ones",
                ("The dim of the queries in place of that of the keys.",), ("Take the softmax over dim=-1.",),
            )  # fmt: skip
    for said in facts.remarks("normalised"):
        yield _seen(
            facts, said, f"{said['type']} over a single number gives a constant",
            f"{said['type']} over the last dimension of the shape {tuple(said['shape'])}, which has size 1: what comes "
            "out is the same for every sample",
            ("A normalisation behind a layer with one unit: its result does not depend on the input.",),
            ("Remove the normalisation there, or normalise over a dimension with more than one number.",),
        )  # fmt: skip
    yield from _recurrence_over_the_batch(facts)
    for said in facts.remarks("exchanged"):
        yield _seen(
            facts, said, "a view in place of a transpose mixes samples",
            f"a view or reshape turns the shape {tuple(said['shape'])} into {tuple(said['result'])}: that cuts the "
            "same order of numbers into other pieces, and the numbers of several samples come to stand in one row",
            ("view or reshape where transpose or permute was meant.",),
            ("Exchange dimensions with transpose(0, 1) or permute.", _PROBE),
        )  # fmt: skip


def _recurrence_over_the_batch(facts: Facts) -> Iterator[Seen]:
    """Its last state has a row for each sequence: as many as the second dimension has, and not as there are samples."""
    rows = facts.values
    for tensor in rows.tensors:
        name, role, pass_ = tensor.place
        shape = tensor.key.shape
        state = rows.row_of.get((name, "1", pass_), rows.row_of.get((name, "1.0", pass_)))
        if facts.type_of(tensor) not in RECURRENCES or role != "0" or len(shape) != 3 or state is None:
            continue
        states = rows.tensors[state].key.shape
        if tensor.key.batch_dim == 0 and len(states) == 3 and states[1] == shape[1] != shape[0]:
            yield Seen(
                of_the_run=True, severity=WARNING, title=f"{facts.type_of(tensor)} runs over the samples of the batch",
                detail=f"It returns the shape {shape}, of {shape[0]} samples, and {states[1]} last states, one for "
                "each time step: its recurrence goes from sample to sample, over the dimension of the batch, and the "
                "steps of time know nothing of each other.",
                value=1.0, threshold=0.0, tensor=tensor, cause="recurrence", causes=_BATCH_FIRST,
                remedies=("Make it with batch_first=True, or hand over (time, batch, features).", _PROBE),
                **facts.steps_of(name),
            )  # fmt: skip


_BATCH_FIRST = ("batch_first=True was forgotten: without it the first dimension is time.",)


def _constant(facts: Facts, said: dict[str, Any]) -> str:
    tensor = facts.value_at(said["node"])
    is_log = tensor is not None and facts.type_of(tensor) == "log_softmax"
    return "0" if is_log else "1"


def _is_of_the_model(facts: Facts, said: dict[str, Any]) -> bool:
    """Losses may well compare samples with each other."""
    tensor = facts.value_at(said["node"])
    return tensor is None or tensor.key.kind != "loss"


def _seen(
    facts: Facts, said: dict[str, Any], title: str, detail: str, causes: tuple[str, ...], remedies: tuple[str, ...]
) -> Seen:
    return Seen(
        of_the_run=True, severity=WARNING,
        title=title, detail=f"{detail[:1].upper()}{detail[1:]}.", value=1.0, threshold=0.0,
        tensor=facts.value_at(said["node"]), node=said["node"] or said["module"], source=said["source"],
        also=(said["module"],) if said["module"] and said["module"] != said["node"] else (), cause=said["source"],
        causes=causes, remedies=remedies, **facts.steps_of(said["node"]),
    )  # fmt: skip


CHECK = Check(
    name="wrong_dimension",
    description="A softmax, recurrence or view over a dimension that was not meant: the batch, or one of size 1.",
    stage=Stage.START,
    run=run,
    evidence=Evidence(("std",)),
    causes=("A dimension that was counted wrongly.",),
    remedies=("Look at the shapes on this line, and give the dimension explicitly.", _PROBE),
)
