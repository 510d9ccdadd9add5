"""Several questions in one address: what a click asks for, or the page begins with, is one request and one answer.

length of the head (4 bytes, little-endian) ─ head (JSON, list of `Part`) ─ answers, in the order of the questions

The head and every answer are filled up to a multiple of eight bytes, so that columns of numbers need not be copied.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from urllib.parse import quote, unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Route

from endoscope.errors import BadArgument, EndoscopeError, LookupFailed
from endoscope.query.recording import Recording
from endoscope.server import wire
from endoscope.server.answers import InPieces, as_json, to_json
from endoscope.server.graph import layouts
from endoscope.server.library import Library
from endoscope.server.routes import asked, first_look, layout, overview, tables, trials

_MOST = 32  # questions
_MOST_TRIED = 8  # trials without a step
_MOST_GRAPHS = 16  # as many as the page puts together
_TOLD = ("content-type", "x-shape", "x-samples", "x-dtype")
_KIND = "application/octet-stream"
_SMALL = 1 << 20  # bytes; more is sent piece by piece


async def together(request: Request) -> Response:
    addresses = request.query_params.getlist("ask")
    if not 0 < len(addresses) <= _MOST:
        raise BadArgument(
            f"The address has {len(addresses)} parameters ask=…. It needs at least one, and at most {_MOST}."
        )
    gone = threading.Event()
    watching = asyncio.ensure_future(_until_gone(request, gone))
    try:
        return _joined(addresses, await run_in_threadpool(_answers, request, addresses, gone))
    finally:
        watching.cancel()


async def _until_gone(request: Request, gone: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()


def _answers(request: Request, addresses: list[str], gone: threading.Event) -> list[Response]:
    """The page hangs up when somebody clicks while it asks ahead; whoever clicked must not wait for the rest."""
    answers: list[Response] = []
    for address in addresses:
        if answers and gone.is_set():
            break
        answers.append(_answer(request, address))
    return answers


def start(request: Request) -> Response:
    """What the page begins with if nobody has chosen anything: asked for while its code is still on its way."""
    library = asked.library_of(request)
    library.look_again()
    addresses = ["catalog", "overview", *_first(library)]
    return joined(request, addresses)


def joined(request: Request, addresses: list[str]) -> Response:
    """The answers at several addresses as one."""
    return _joined(addresses, [_answer(request, address) for address in addresses])


def _first(library: Library) -> list[str]:
    """The newest trial that has steps, its newest step, the graphs of all of its steps, and what is selected there."""
    readable: list[tuple[str, Recording]] = []
    for name in library.newest_first()[:_MOST_TRIED]:
        with contextlib.suppress(EndoscopeError):
            readable.append((name, library.get(name)))
            if readable[-1][1].steps:
                break
    if not readable:
        return []
    name, recording = max(readable, key=lambda found: (len(found[1].steps) > 0, found[1].created))
    if recording.world_size > 1 and len(recording.ranks) == 1:  # one rank alone has recorded: there is no whole
        name = f"{name}:rank-{recording.ranks[0]}"
        recording = library.get(name)
    here, steps = f"trials/{quote(name, safe='')}", recording.steps
    newest = [f"{here}/steps/{steps[-1].number}?type={quote(steps[-1].type, safe='')}"] if steps else []
    hashes = list(dict.fromkeys(step.graph for step in steps if step.graph))[-_MOST_GRAPHS:]
    return [
        here,
        *_picture(name, recording, hashes),
        *(f"{here}/{word}" for word in ("tensors", "modules", "layout", *(f"graphs/{h}" for h in hashes))),
        *newest,
        *first_look.addresses(recording, here),
    ]


def _picture(name: str, recording: Recording, hashes: list[str]) -> list[str]:
    """Where everything in the graph is, unless the user has arranged it: then the page sends the arrangement along."""
    try:
        is_arranged = layouts.read(recording.path) != layouts.empty()
    except EndoscopeError:
        is_arranged = False
    if is_arranged or not hashes:
        return []
    graphs = "".join(f"&graph={quote(f'{name}/{found}', safe='')}" for found in hashes)
    return [f"picture?trial={quote(name, safe='')}{graphs}"]


def _joined(addresses: list[str], answers: list[Response]) -> Response:
    head = to_json([_part(*found) for found in zip(addresses, answers, strict=False)]).encode()
    head += b" " * (-(4 + len(head)) % 8)
    pieces = _pieces(head, answers)
    if sum(_size(answer) for answer in answers) <= _SMALL:
        return Response(b"".join(pieces), media_type=_KIND)
    return StreamingResponse(pieces, media_type=_KIND)


def _answer(request: Request, address: str) -> Response:
    """What the address alone would be answered with."""
    path, _, query = address.partition("?")
    here = request.scope["path"].rpartition("/")[0] + "/"
    scope = {**request.scope, "path": here + unquote(path), "query_string": query.encode()}
    try:
        for route in request.app.state.questions:
            match, found = route.matches(scope)
            if match is Match.FULL:
                answer = found["endpoint"](Request({**scope, **found}))
                assert isinstance(answer, Response)
                return answer
        raise LookupFailed(f"There is nothing at /api/{path[:200]} that can be asked for together with others.")
    except EndoscopeError as error:
        return as_json(wire.Failure(error=str(error), kind=type(error).__name__), error.http_status)


def _part(address: str, answer: Response) -> wire.Part:
    told = {name: answer.headers[name] for name in _TOLD if name in answer.headers}
    return wire.Part(address=address, status=answer.status_code, bytes=_size(answer), headers=told)


def _size(answer: Response) -> int:
    return answer.size if isinstance(answer, InPieces) else len(answer.body)


def _pieces(head: bytes, answers: list[Response]) -> Iterator[bytes]:
    yield len(head).to_bytes(4, "little") + head
    for answer in answers:
        yield from answer.pieces() if isinstance(answer, InPieces) else (bytes(answer.body),)
        yield bytes(-_size(answer) % 8)


#: What may be asked for together, where trials are served.
QUESTIONS: list[Route] = [*trials.ROUTES, *tables.ROUTES, *layout.ROUTES, *overview.ROUTES]
ROUTES = [Route("/api/together", together), Route("/api/start", start)]
