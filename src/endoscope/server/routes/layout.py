"""Where the boxes of the graph are, and the user's own arrangement of them: read and saved."""

from __future__ import annotations

import json

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from endoscope.errors import BadArgument
from endoscope.query import bulk
from endoscope.query.recording import Recording
from endoscope.server.answers import as_json
from endoscope.server.graph import layouts, opened, pictures
from endoscope.server.routes import asked
from endoscope.server.routes.sent import json_of


def read(request: Request) -> Response:
    return as_json(layouts.read(asked.trial_of(request).path))


async def save(request: Request) -> Response:
    layout = layouts.check(await json_of(request, layouts.MOST_BYTES, "A layout", "The layout"))
    recording: Recording = await run_in_threadpool(asked.trial_of, request)
    await run_in_threadpool(layouts.write, recording.path, layout)
    return as_json(layout)


def picture(request: Request) -> Response:
    """Boxes and edges while some modules are open."""
    names = request.query_params.getlist("graph")
    if not names:
        raise BadArgument("The address lacks graph=…, a trial and the hash of one of its graphs: graph=trial/hash.")
    library = asked.library_of(request)
    graphs = {}
    for name in names:
        trial, _, found = name.rpartition("/")
        graphs[name] = bulk.graph(library.get(trial), found)
    modules = library.get(asked.text(request, "trial") or names[0].rpartition("/")[0]).modules.get("modules", [])
    types = {str(entry.get("address", "")): str(entry.get("type", "")) for entry in modules}
    arrangement = asked.text(request, "arrangement")
    layout = layouts.empty() if arrangement is None else layouts.check(_json(arrangement))
    drawable = _pictures(request).drawable(graphs, types, layout)
    open_ = asked.words(request, "open") if "open" in request.query_params else None
    if open_ and open_[0].startswith("@"):
        main = asked.text(request, "trial") or names[0].rpartition("/")[0]
        open_ = _opened(request).read(library.get(main).path, open_[0][1:])
    pins = {key: (float(x), float(y)) for key, (x, y) in layout["pins"].items()}
    return Response(pictures.picture(drawable, open_, pins), media_type="application/octet-stream")


async def keep_opened(request: Request) -> Response:
    """A short name for a long list of open modules."""
    addresses = await json_of(request, opened.MOST_BYTES, "A list of open modules", "The list of open modules")
    recording: Recording = await run_in_threadpool(asked.trial_of, request)
    name = await run_in_threadpool(_opened(request).keep, recording.path, addresses)
    return as_json({"name": name})


def _opened(request: Request) -> opened.Opened:
    found = request.app.state.opened
    assert isinstance(found, opened.Opened)
    return found


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArgument(f"arrangement=… is no JSON: {error}") from error


def _pictures(request: Request) -> pictures.Pictures:
    found = request.app.state.pictures
    assert isinstance(found, pictures.Pictures)
    return found


ROUTES = [
    Route("/api/picture", picture),
    Route("/api/trials/{trial}/layout", read, methods=["GET"]),
    Route("/api/trials/{trial}/layout", save, methods=["PUT"]),
    Route("/api/trials/{trial}/opened", keep_opened, methods=["PUT"]),
]
