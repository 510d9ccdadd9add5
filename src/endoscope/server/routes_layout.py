"""The user's arrangement of the graph: read and saved."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from endoscope.query.recording import Recording
from endoscope.server import asked, layouts
from endoscope.server.answers import as_json
from endoscope.server.sent import json_of


def read(request: Request) -> Response:
    return as_json(layouts.read(asked.trial_of(request).path))


async def save(request: Request) -> Response:
    layout = layouts.check(await json_of(request, layouts.MOST_BYTES, "A layout", "The layout"))
    recording: Recording = await run_in_threadpool(asked.trial_of, request)
    await run_in_threadpool(layouts.write, recording.path, layout)
    return as_json(layout)


ROUTES = [
    Route("/api/trials/{trial}/layout", read, methods=["GET"]),
    Route("/api/trials/{trial}/layout", save, methods=["PUT"]),
]
