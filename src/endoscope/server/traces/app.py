"""The application for one trace. Around it are the same guard and the same page as around recordings."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette

from endoscope.server import live
from endoscope.server.app import guarded
from endoscope.server.routes import trace as routes
from endoscope.server.security import Access
from endoscope.server.traces.heat import Heats
from endoscope.server.traces.shown import ShownTrace


def create(trace: Any, access: Access | None = None) -> Starlette:
    """`trace` is anything with the public interface of a trace: fresh, or read from a file."""
    app = guarded([*routes.ROUTES, *live.ROUTES], access)
    shown = ShownTrace(trace)
    app.state.questions = routes.QUESTIONS
    app.state.trace = shown
    app.state.prepare = shown.prepare
    app.state.heats = Heats(shown)
    app.state.live = live.Listeners()
    return app
