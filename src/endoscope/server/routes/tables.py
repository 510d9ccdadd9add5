"""Numbers: one step, one tensor over time, all tensors over time, samples, units, metrics, raw values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from endoscope.errors import BadArgument
from endoscope.query import arrays, bulk, one_sample
from endoscope.query.series import Metrics
from endoscope.query.steps import Step
from endoscope.server import wire
from endoscope.server.answers import as_arrow, as_floats
from endoscope.server.kept import Kept
from endoscope.server.routes import asked


def step(request: Request) -> Response:
    recording = asked.trial_of(request)
    number = asked.to_whole("step", request.path_params["step"])
    found = bulk.step_at(recording, number, asked.text(request, "type"))
    return _small(bulk.step_table(recording, found, asked.text(request, "names")), {"step": _facts(found)})


def step_sample(request: Request) -> Response:
    """One sample of the batch, in all tensors of a step."""
    recording = asked.trial_of(request)
    number = asked.to_whole("step", request.path_params["step"])
    sample = asked.to_whole("sample", request.path_params["sample"])
    found = bulk.step_at(recording, number, asked.text(request, "type"))
    return _small(one_sample.sample_table(recording, found, sample, asked.text(request, "names")), {})


def _small(table: pa.Table, facts: dict[str, Any]) -> Response:
    """In few bytes: it is asked for with every step that somebody passes."""
    narrow = {name: arrays.narrow(table[name].combine_chunks()) for name in table.column_names}
    return as_arrow(pa.table(narrow), {**facts, "names": table.schema.metadata[b"names"].decode()})


def _facts(step: Step) -> wire.StepFacts:
    return wire.StepFacts(
        number=step.number,
        ordinal=step.ordinal,
        type=step.type,
        time=step.time,
        why=step.why,
        seconds=step.recording_seconds,
        graph=step.graph,
        passes=step.passes,
        rawSamples=list(step.raw_samples),
        categories=list(step.categories),
        config=step.config,
        extra=step.extra,
    )


def series(request: Request) -> Response:
    """Several statistics of one tensor, or of one of its samples, over all steps."""
    recording, which = asked.trial_of(request), asked.which(request)
    statistics = asked.words(request, "statistics")
    if not statistics:
        known = ", ".join(one.name for one in recording.tables.statistics)
        raise BadArgument(f"The address lacks statistics=…, a list such as mean,std. There are: {known}.")
    columns: dict[str, pa.Array] = {}
    for name in statistics:
        found = recording.series(
            which.node, name, of=which.of, type=which.type, role=which.role, pass_=which.pass_,
            sample=asked.whole(request, "sample"), unit=asked.whole(request, "unit"),
        )  # fmt: skip
        if not columns:
            columns = {"step": arrays.numbers(found.steps), "type": arrays.dictionary(found.types)}
        columns[name] = arrays.numbers(found.values)
    return as_arrow(pa.table(columns))


def histograms(request: Request) -> Response:
    return as_arrow(bulk.histograms(asked.trial_of(request), asked.which(request)))


def heat(request: Request) -> Response:
    recording = asked.trial_of(request)
    of, statistic = asked.text(request, "of") or "value", asked.text(request, "statistic") or "mean"
    found = _kept(request).matrix(recording, of, statistic)
    pass_ = asked.whole(request, "pass")
    if pass_ is not None:
        found = bulk.of_pass(recording, found, pass_)
    names = bulk.names_of(recording, found.keys)
    flat = arrays.numbers(found.values.reshape(-1))
    # A list of a fixed length must have one; a trial without steps has no row either.
    lists = pa.FixedSizeListArray.from_arrays(flat, max(found.values.shape[1], 1))
    names = names if len(lists) == names.num_rows else names.slice(0, 0)
    return as_arrow(names.append_column("values", lists), {"ordinals": found.ordinals.tolist()})


def layers(request: Request) -> Response:
    """The same for layers × steps: what is not a number says why, and some statistics are made of others."""
    recording = asked.trial_of(request)
    of, statistic = asked.text(request, "of") or "value", asked.text(request, "statistic") or "abs_mean"
    found = _kept(request).layers(recording, of, statistic, asked.text(request, "rows") or "")
    names, length = bulk.names_of(recording, found.keys), max(found.values.shape[1], 1)
    names = names if found.values.shape[1] else names.slice(0, 0)
    for name, flat in (("values", found.values.reshape(-1)), ("states", found.states.reshape(-1))):
        names = names.append_column(name, pa.FixedSizeListArray.from_arrays(arrays.numbers(flat), length))
    return as_arrow(names, {"ordinals": found.ordinals.tolist()})


def _kept(request: Request) -> Kept:
    found = request.app.state.kept
    assert isinstance(found, Kept)
    return found


def samples(request: Request) -> Response:
    found = asked.trial_of(request).samples(*_place(request), **_details(request))
    return as_arrow(pa.table({name: arrays.numbers(values) for name, values in found.items()}))


def units(request: Request) -> Response:
    found = asked.trial_of(request).units(*_place(request), **_details(request))
    shape = next(iter(found.values())).shape
    return as_arrow(
        pa.table({name: arrays.numbers(values.reshape(-1)) for name, values in found.items()}), {"shape": shape}
    )


def _place(request: Request) -> tuple[str, int]:
    return asked.needed(request, "node"), asked.needed_whole(request, "step")


def _details(request: Request) -> dict[str, Any]:
    which = asked.which(request)
    return {"of": which.of, "role": which.role, "pass_": which.pass_, "type": which.type}


def tensor(request: Request) -> Response:
    step, sample = asked.needed_whole(request, "step"), asked.whole(request, "sample")
    found = bulk.tensor(asked.trial_of(request), asked.which(request), step, sample)
    return as_floats(found.values, {"X-Samples": found.samples})


def metrics(request: Request) -> Response:
    known = asked.trial_of(request).metrics
    if "names" not in request.query_params:
        return as_arrow(known.table)
    return as_arrow(known.of(_names_of_metrics(request, known)))


def _names_of_metrics(request: Request, known: Metrics) -> list[str]:
    """names=a,b or names=a&names=b; the second form is for names with commas in them."""
    found = []
    for typed in request.query_params.getlist("names"):
        found += [typed] if typed in known else [word for word in typed.split(",") if word]
    for name in found:
        known[name]  # says what there is, if there is no such metric
    return found


ROUTES = [
    Route("/api/trials/{trial}/steps/{step}", step),
    Route("/api/trials/{trial}/steps/{step}/samples/{sample}", step_sample),
    Route("/api/trials/{trial}/series", series),
    Route("/api/trials/{trial}/histograms", histograms),
    Route("/api/trials/{trial}/heat", heat),
    Route("/api/trials/{trial}/layers", layers),
    Route("/api/trials/{trial}/samples", samples),
    Route("/api/trials/{trial}/units", units),
    Route("/api/trials/{trial}/tensor", tensor),
    Route("/api/trials/{trial}/metrics", metrics),
]
