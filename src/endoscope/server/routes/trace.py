"""A trace: its graph, its operations, their values and the code that asked for them."""

from __future__ import annotations

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from endoscope import __version__
from endoscope.errors import BadArgument
from endoscope.server import wire
from endoscope.server.answers import as_arrow, as_floats, as_json
from endoscope.server.graph import opened, pictures
from endoscope.server.routes import asked
from endoscope.server.routes.sent import json_of
from endoscope.server.routes.together import joined, together
from endoscope.server.traces import code as code_around
from endoscope.server.traces import facts as told
from endoscope.server.traces import graph as graphs
from endoscope.server.traces import values
from endoscope.server.traces.heat import Heats
from endoscope.server.traces.shown import ShownTrace

_FIRST = ("catalog", "trace", "trace/graph", "trace/picture")  # what the page begins with


def catalog(request: Request) -> Response:
    return as_json(wire.Catalog(version=__version__, root="", trials=[], trace=_shown(request).name))


def start(request: Request) -> Response:
    return joined(request, list(_FIRST))


def facts(request: Request) -> Response:
    return as_json(told.trace_facts(_shown(request)))


def graph(request: Request) -> Response:
    return as_json(graphs.graph_of(_shown(request), _is_rolled(request)))


def picture(request: Request) -> Response:
    """Boxes and edges while some modules are open."""
    shown = _shown(request)
    drawable = shown.drawable(_is_rolled(request))
    open_ = asked.words(request, "open") if "open" in request.query_params else None
    if open_ and open_[0].startswith("@"):
        found = shown.opened.get(open_[0][1:])
        if found is None:
            raise BadArgument(f"This server keeps no list of open modules under the name {open_[0][1:]!r}.")
        open_ = found
    with shown.lock:
        return Response(pictures.picture(drawable, open_, {}), media_type="application/octet-stream")


async def keep_opened(request: Request) -> Response:
    """A short name for a long list of open modules; kept as long as this server runs."""
    sent = await json_of(request, opened.MOST_BYTES, "A list of open modules", "The list of open modules")
    name, addresses = opened.named(sent)
    _shown(request).opened[name] = addresses
    return as_json({"name": name})


def heat(request: Request) -> Response:
    found = request.app.state.heats
    assert isinstance(found, Heats)
    return as_arrow(found.table(asked.needed(request, "statistic"), asked.text(request, "of") or "value"))


def op(request: Request) -> Response:
    return as_json(told.op_facts(_shown(request), asked.needed(request, "label")))


def code(request: Request) -> Response:
    shown = _shown(request)
    started = float(shown.trace.timing.started)
    return as_json(code_around.code_of(shown.op(asked.needed(request, "label")), started))


def value(request: Request) -> Response:
    """Statistics and histogram of one tensor."""
    return as_arrow(values.table(_numbers(request)))


def tensor(request: Request) -> Response:
    """Numbers of one tensor; of a large one its beginning."""
    part = values.beginning(_numbers(request))
    return as_floats(part.values, {"X-Whole": list(part.whole)})


def select(request: Request) -> Response:
    return as_json(graphs.selected(_shown(request), asked.needed(request, "pattern")))


def path(request: Request) -> Response:
    start_, end = (str(_shown(request).op(asked.needed(request, name)).label) for name in ("from", "to"))
    return as_json(graphs.between(_shown(request), start_, end))


def _numbers(request: Request) -> np.ndarray:
    shown = _shown(request)
    output = asked.whole(request, "output") or 0
    with shown.lock:
        found = shown.op(asked.needed(request, "label"))
        return values.numbers(values.tensor_of(found, output, asked.text(request, "of") or "value"))


def _is_rolled(request: Request) -> bool:
    return asked.text(request, "rolled") == "1"


def _shown(request: Request) -> ShownTrace:
    found = request.app.state.trace
    assert isinstance(found, ShownTrace)
    return found


#: What may be asked for together.
QUESTIONS = [
    Route("/api/catalog", catalog),
    Route("/api/trace", facts),
    Route("/api/trace/graph", graph),
    Route("/api/trace/picture", picture),
    Route("/api/trace/heat", heat),
    Route("/api/trace/op", op),
    Route("/api/trace/code", code),
    Route("/api/trace/value", value),
    Route("/api/trace/tensor", tensor),
    Route("/api/trace/select", select),
    Route("/api/trace/path", path),
]
ROUTES = [
    *QUESTIONS,
    Route("/api/start", start),
    Route("/api/together", together),
    Route("/api/trace/opened", keep_opened, methods=["PUT"]),
]
