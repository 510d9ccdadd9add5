"""Custom views: which there are, what one returns, and the frames they are shown in."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from endoscope.server.answers import as_json
from endoscope.server.custom_views import selection
from endoscope.server.custom_views.views import Views
from endoscope.server.routes import asked


def views_of(request: Request) -> Views:
    found = request.app.state.views
    assert isinstance(found, Views)
    return found


def listed(request: Request) -> Response:
    return as_json(views_of(request).describe())


def run(request: Request) -> Response:
    chosen = selection.parse(asked.text(request, "selection") or "{}")
    library = asked.library_of(request)
    recording = library.get(chosen.trial) if chosen.trial is not None else library.newest()
    return as_json(views_of(request).run(request.path_params["name"], chosen, recording))


def frame(request: Request) -> Response:
    return HTMLResponse(views_of(request).frame(request.path_params["number"]))


ROUTES = [
    Route("/api/views", listed),
    Route("/api/views/{name}", run),
    Route("/frames/{number}", frame),
]
