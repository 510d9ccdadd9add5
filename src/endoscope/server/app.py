"""The application: a guard around the routes, the data behind them, the built page beside them.

request ─► security.Guard ─► routes/* ─► library ─► query ─► answers
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from endoscope.errors import EndoscopeError
from endoscope.server import live, wire
from endoscope.server.answers import as_json
from endoscope.server.checking import Checking
from endoscope.server.custom_views.views import Views
from endoscope.server.graph.opened import Opened
from endoscope.server.graph.pictures import Pictures
from endoscope.server.kept import Kept
from endoscope.server.library import Library
from endoscope.server.overview.summaries import Summaries
from endoscope.server.page_files import STATIC, PageFiles
from endoscope.server.routes import findings, layout, overview, tables, together, trials
from endoscope.server.routes import views as view_routes
from endoscope.server.security import Access, Guard


def create(library: Library, views: Views | None = None, access: Access | None = None) -> Starlette:
    """The application for a folder of trials."""
    views = views or Views()
    routes = [
        *trials.ROUTES,
        *tables.ROUTES,
        *layout.ROUTES,
        *findings.ROUTES,
        *overview.ROUTES,
        *together.ROUTES,
        *view_routes.ROUTES,
        *live.ROUTES,
    ]
    app = guarded(routes, access)
    app.state.questions = together.QUESTIONS
    app.state.library = library
    app.state.prepare = library.prepare
    app.state.views = views
    app.state.checking = Checking(library)
    app.state.summaries = Summaries(library)
    app.state.live = live.Live(library, views, app.state.checking, app.state.summaries)
    app.state.kept = Kept()
    app.state.pictures = Pictures()
    app.state.opened = Opened()
    return app


def guarded(routes: Sequence[BaseRoute], access: Access | None) -> Starlette:
    """These addresses and the page's files behind the guard; whatever goes wrong becomes a sentence."""
    return Starlette(
        routes=[*routes, Route("/api/{rest:path}", _no_such_address), Mount("/", PageFiles(STATIC))],
        middleware=[Middleware(Guard, access=access or Access())],
        exception_handlers={EndoscopeError: _say_why, HTTPException: _say_status},  # type: ignore[dict-item]
    )


def _no_such_address(request: Request) -> Response:
    sentence = f"There is nothing at {request.url.path}. HTTP_API.md lists the addresses."
    return as_json(wire.Failure(error=sentence, kind="NotFound"), 404)


def _say_why(request: Request, error: EndoscopeError) -> Response:
    return as_json(wire.Failure(error=str(error), kind=type(error).__name__), error.http_status)


def _say_status(request: Request, error: HTTPException) -> Response:
    sentence = f"{request.method} {request.url.path}: {error.detail}"
    return as_json(wire.Failure(error=sentence, kind="HTTPException"), error.status_code)
