"""The page is there before its data: its files are served at once, what else is asked for waits until it can be read.

    request ─┬─ a file of the page ─► Guard ─► page_files
             └─ anything else ─► waits for `begin(app)` ─► app

Importing numpy and pyarrow and opening a recording take as long as a browser needs to load and run the page.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from endoscope.server.access import Access
from endoscope.server.page_files import STATIC, PageFiles
from endoscope.server.security import Guard

_DATA = ("/api/", "/frames/")


class Early:
    """Stands in for an application that is still being made."""

    def __init__(self, access: Access) -> None:
        self._files = Starlette(routes=[Mount("/", PageFiles(STATIC))], middleware=[Middleware(Guard, access=access)])
        self._app: Future[ASGIApp] = Future()

    def begin(self, app: ASGIApp) -> None:
        """From now on the application answers, also those who wait."""
        self._app.set_result(app)

    def fail(self, error: BaseException) -> None:
        """It cannot be made; those who wait are let go."""
        if not self._app.done():
            self._app.set_exception(RuntimeError(f"Nothing can be shown: {error}"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app.done():
            await self._app.result()(scope, receive, send)
        elif scope["type"] == "http" and not scope["path"].startswith(_DATA):
            await self._files(scope, receive, send)
        else:
            app = await asyncio.wrap_future(self._app)
            await app(scope, receive, send)
