"""`endoscope.origin`: where NaN, infinity or something unusual begins, in a trace or in a recording."""

from __future__ import annotations

from os import PathLike
from typing import Any

from endoscope.errors import BadArgument, LookupFailed
from endoscope.findings.facts import Facts
from endoscope.findings.one_trial import one_trial
from endoscope.findings.origin_nonfinite import nonfinite_of
from endoscope.findings.origin_noted import recorded_outliers
from endoscope.findings.origin_outliers import outliers_of
from endoscope.query import bulk
from endoscope.query.recording import Recording
from endoscope.schema.origin import Origin
from endoscope.schema.recording import GRADIENT


def origin(
    what: Any,
    node: str | None = None,
    *,
    step: int | None = None,
    sample: int | None = None,
    of: str = "value",
    type: str | None = None,
) -> list[Origin]:
    """Find the operations that made NaN, infinity or outliers, in order of computation.

    `what` is a trace, a recording, or the path of one. The list is empty if nothing looks wrong. If you give a node, a
    step or a sample, and all values are finite, the answer is where the sample (or the whole step) becomes unusual.
    `of` is "value" or "gradient" (in a recording "gradient:<loss>").
    """
    _check_whole("step", step)
    _check_whole("sample", sample)
    if isinstance(what, (str, PathLike)):
        return _of_recording(one_trial(what), node, step, sample, of, type)
    if isinstance(what, Recording):
        return _of_recording(what, node, step, sample, of, type)
    if not hasattr(what, "record") or not hasattr(what, "graph_data"):
        raise BadArgument(
            f"endoscope.origin() was given a {what.__class__.__name__}. Give it a trace (endoscope.trace(model, x)), a "
            "recording (endoscope.open(path)), or the path of a recorded trial."
        )
    from endoscope.replay.origins import origins_of  # here: a trace needs torch, a recording does not

    if step is not None or type is not None:
        raise BadArgument("A trace is of one pass, so it has neither step nor type. Leave out step= and type=.")
    return origins_of(what, node, sample, of)


def _of_recording(
    recording: Recording, node: str | None, step: int | None, sample: int | None, of: str, type_: str | None
) -> list[Origin]:
    facts = Facts(recording)
    _check_of(facts, of)
    if node is not None and node not in recording.nodes:
        near = [name for name in recording.nodes if node in name or name in node][:5] or recording.nodes[:5]
        raise LookupFailed(f"There is no node {node!r} in {recording.name!r}. Near: {', '.join(near)}.")
    place = None if step is None else _place(facts, bulk.step_at(recording, step, type_).ordinal)
    try:
        found = nonfinite_of(facts, place)
        if sample is not None:
            found = [one for one in found if not one.samples or sample in one.samples]
        if found or (node is None and step is None and sample is None):
            return found
        noted = recorded_outliers(facts, place, sample) if place is not None and node is None and of == "value" else []
        return noted or outliers_of(facts, node, place, sample, of, type_)
    finally:
        recording.tables.release()


def _place(facts: Facts, ordinal: int) -> int:
    return next(place for place, step in enumerate(facts.steps) if step.ordinal == ordinal)


def _check_of(facts: Facts, of: str) -> None:
    known = ["value", *(GRADIENT + loss for loss in facts.gradients)]
    if of not in known:
        raise BadArgument(f"of={of!r} was not recorded. Use one of: {', '.join(map(repr, known))}.")


def _check_whole(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise BadArgument(f"{name}={value!r}: use a whole number from 0 on, such as {name}=3.")
