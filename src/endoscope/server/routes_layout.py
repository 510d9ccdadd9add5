"""The user's arrangement of the graph: read and saved."""

from __future__ import annotations

import json

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from endoscope.errors import BadArgument
from endoscope.query.recording import Recording
from endoscope.server import asked, layouts
from endoscope.server.answers import as_json


def read(request: Request) -> Response:
    return as_json(layouts.read(asked.trial_of(request).path))


async def save(request: Request) -> Response:
    # A form of another page cannot send this type without asking first, and the answer to that is no.
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise BadArgument("A layout is sent as application/json.")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > layouts.MOST_BYTES:
            raise BadArgument(f"A layout has at most {layouts.MOST_BYTES} bytes.")
    try:
        layout = layouts.check(json.loads(body))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadArgument(f"The layout is no JSON: {error}") from error
    recording: Recording = await run_in_threadpool(asked.trial_of, request)
    await run_in_threadpool(layouts.write, recording.path, layout)
    return as_json(layout)


ROUTES = [
    Route("/api/trials/{trial}/layout", read, methods=["GET"]),
    Route("/api/trials/{trial}/layout", save, methods=["PUT"]),
]
