"""What a page sends: JSON, of a limited size, and only from a page of ours."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from endoscope.errors import BadArgument


async def json_of(request: Request, most_bytes: int, what: str, the: str) -> Any:
    """The body of a request; `what` and `the` name it in a sentence that says what is wrong with it."""
    # A form of another page cannot send this type without asking first, and the answer to that is no.
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise BadArgument(f"{what} is sent as application/json.")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > most_bytes:
            raise BadArgument(f"{what} has at most {most_bytes} bytes.")
    try:
        return json.loads(body)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadArgument(f"{the} is no JSON: {error}") from error
