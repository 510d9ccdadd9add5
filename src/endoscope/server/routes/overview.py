"""All trials at once: the table of them, and what looks wrong in any."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from endoscope.query import arrays
from endoscope.query.summary import Summary
from endoscope.server.answers import as_arrow, as_json
from endoscope.server.checking import Checking
from endoscope.server.overview.findings import Found, together
from endoscope.server.overview.summaries import Known, Summaries
from endoscope.server.routes import asked

_OWN = "endoscope"  # under this name the recorder keeps its own report among the settings


def table(request: Request) -> Response:
    """What is known by now; `complete` says whether that is all."""
    asked.library_of(request).look_again()
    found = summaries_of(request).look()
    facts = {"complete": all(one.is_read for one in found.values())}
    return as_arrow(_table(list(found), list(found.values())), facts)


def _table(names: list[str], trials: list[Known]) -> pa.Table:
    read = [one.summary or _NOTHING for one in trials]
    metrics = [one.metrics for one in read]
    counts = np.array([len(several) for several in metrics], np.int64)
    flat = [metric for several in metrics for metric in several]
    points = np.array([len(one.curve_steps) for one in read], np.int64)
    return pa.table(
        {
            "name": arrays.texts(names),
            "known": arrays.numbers(np.array([_known(one) for one in trials], np.int8)),
            "problem": arrays.texts([one.problem or "; ".join(found.problems) for one, found in _both(trials, read)]),
            "created": _floats([one.created for one in trials]),
            "updated": _floats([one.updated for one in read]),
            "live": arrays.numbers(np.array([one.live for one in trials], bool)),
            "closed": arrays.numbers(np.array([one.closed for one in read], bool)),
            "steps": _wholes([one.steps for one in read]),
            "lastStep": _wholes([_or_none(one.last_step) for one in read]),
            "trainedTo": _wholes([_or_none(one.trained_to) for one in read]),
            "cost": _floats([one.cost for one in read]),
            "bytes": _wholes([one.size for one in read]),
            "config": arrays.texts([_config(one.config) for one in trials]),
            "metrics": _lists(counts, arrays.dictionary([metric.name for metric in flat])),
            "last": arrays.lists(counts, np.array([metric.last for metric in flat], np.float64)),
            "lowest": arrays.lists(counts, np.array([metric.lowest for metric in flat], np.float64)),
            "highest": arrays.lists(counts, np.array([metric.highest for metric in flat], np.float64)),
            "loss": arrays.dictionary([one.loss for one in read]),
            "curveSteps": arrays.lists(points, np.concatenate([np.empty(0), *(one.curve_steps for one in read)])),
            "curveValues": arrays.lists(
                points, np.concatenate([np.empty(0, np.float32), *(one.curve_values for one in read)])
            ),
        }
    )


_NOTHING = Summary(0, None, None, 0.0, False, 0, float("nan"))


def _both(trials: list[Known], read: list[Summary]) -> Sequence[tuple[Known, Summary]]:
    return list(zip(trials, read, strict=True))


def _known(one: Known) -> int:
    return 0 if not one.is_read else 2 if one.summary is None else 1


def _or_none(number: int | None) -> int:
    return -1 if number is None else number


def _floats(found: list[float]) -> pa.Array:
    return arrays.numbers(np.array(found, np.float64))


def _wholes(found: list[int]) -> pa.Array:
    return arrays.numbers(np.array(found, np.int64).astype(np.float64))  # as the page counts


def _lists(lengths: np.ndarray, inner: pa.Array) -> pa.Array:
    offsets = arrays.numbers(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, inner)


def _config(config: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in config.items() if name != _OWN}, default=str)


def findings(request: Request) -> Response:
    """What is known by now. The first question has all trials checked, one after the other."""
    from endoscope.findings import silence  # imported late: the page must not wait for it before it begins

    library, checking = asked.library_of(request), request.app.state.checking
    assert isinstance(checking, Checking)
    paths = library.paths()
    found = {
        name: Found(result, is_checking, silence.read(paths[name]) if name in paths else [])
        for name, (result, is_checking) in checking.look_at_all().items()
    }
    return as_json(together(found))


def summaries_of(request: Request) -> Summaries:
    found = request.app.state.summaries
    assert isinstance(found, Summaries)
    return found


ROUTES = [Route("/api/overview", table), Route("/api/overview/findings", findings)]
