"""The application: a guard around the routes, the data behind them, the built page beside them.

request ─► security.Guard ─► routes_* ─► library ─► query ─► answers
"""

from __future__ import annotations

import mimetypes
import stat
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from endoscope.errors import EndoscopeError
from endoscope.server import live, routes_layout, routes_tables, routes_together, routes_trials, routes_views, wire
from endoscope.server.answers import as_json
from endoscope.server.library import Library
from endoscope.server.routes_tables import Heats
from endoscope.server.security import Access, Guard
from endoscope.server.views import Views

STATIC = Path(__file__).parent / "static"
_NOT_BUILT = """\
The page has not been built. In the folder of Endoscope's sources, type:  make page
Then load this page again. The data is served already, for instance at /api/catalog.
"""
_SMALL = 4 << 20  # bytes
_FOREVER = "public, max-age=31536000, immutable"  # names of built files change with their contents


def create(library: Library, views: Views | None = None, access: Access | None = None) -> Starlette:
    """The application for a folder of trials."""
    views = views or Views()
    routes = [
        *routes_trials.ROUTES,
        *routes_tables.ROUTES,
        *routes_layout.ROUTES,
        *routes_together.ROUTES,
        *routes_views.ROUTES,
        *live.ROUTES,
        Route("/api/{rest:path}", _no_such_address),
        Mount("/", _Page(STATIC)),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, access=access or Access())],
        exception_handlers={EndoscopeError: _say_why, HTTPException: _say_status},  # type: ignore[dict-item]
    )
    app.state.library = library
    app.state.views = views
    app.state.live = live.Live(library, views)
    app.state.heats = Heats()
    return app


class _Page(StaticFiles):
    """The built page; a sentence in its place while there is none. It may be built while the server runs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True, check_dir=False)
        self._folder = folder

    async def check_config(self) -> None:
        """A folder that is not there is no mistake: `get_response` says what to do."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path == "." and not (self._folder / "index.html").is_file():
            return PlainTextResponse(_NOT_BUILT, 503)
        if any(part.startswith(".") and part != "." for part in Path(path).parts):
            raise HTTPException(404)  # the stamp of the build
        answer = self._in_one_piece(path, scope) or await super().get_response(path, scope)
        is_hashed = path.startswith("assets/") and answer.status_code == 200
        answer.headers["Cache-Control"] = _FOREVER if is_hashed else "no-cache"
        return answer

    def _in_one_piece(self, path: str, scope: Scope) -> Response | None:
        """A file that the page is made of. Files in pieces wait for a thread at every piece, just while all begins."""
        found, facts = self.lookup_path("index.html" if path == "." else path)
        if facts is None or not stat.S_ISREG(facts.st_mode) or facts.st_size > _SMALL or scope["method"] != "GET":
            return None
        kind = mimetypes.guess_type(found)[0] or "application/octet-stream"
        return Response(Path(found).read_bytes(), media_type=kind)


def _no_such_address(request: Request) -> Response:
    sentence = f"There is nothing at {request.url.path}. HTTP_API.md lists the addresses."
    return as_json(wire.Failure(error=sentence, kind="NotFound"), 404)


def _say_why(request: Request, error: EndoscopeError) -> Response:
    return as_json(wire.Failure(error=str(error), kind=type(error).__name__), error.http_status)


def _say_status(request: Request, error: HTTPException) -> Response:
    sentence = f"{request.method} {request.url.path}: {error.detail}"
    return as_json(wire.Failure(error=sentence, kind="HTTPException"), error.status_code)
