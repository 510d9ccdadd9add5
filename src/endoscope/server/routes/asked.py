"""What an address asks for: the words behind its question mark, checked."""

from __future__ import annotations

from starlette.requests import Request

from endoscope.errors import BadArgument
from endoscope.query.bulk import Which
from endoscope.query.recording import Recording
from endoscope.server.library import Library

_MOST_DIGITS = 18  # of a whole number; Python reads longer ones slowly, and nobody counts so far


def library_of(request: Request) -> Library:
    found = request.app.state.library
    assert isinstance(found, Library)
    return found


def trial_of(request: Request) -> Recording:
    return library_of(request).get(request.path_params["trial"])


def text(request: Request, name: str) -> str | None:
    return request.query_params.get(name)


def needed(request: Request, name: str) -> str:
    found = request.query_params.get(name)
    if found is None:
        raise BadArgument(f"The address lacks {name}=…: {request.url.path}?{name}=…")
    return found


def whole(request: Request, name: str) -> int | None:
    found = request.query_params.get(name)
    return None if found is None else to_whole(name, found)


def needed_whole(request: Request, name: str) -> int:
    return to_whole(name, needed(request, name))


def to_whole(name: str, typed: str) -> int:
    digits = typed.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise BadArgument(f"{name}={typed[:40]!r} is no whole number.")
    return int(typed)


def words(request: Request, name: str) -> list[str]:
    """A list, separated by commas."""
    return [word for word in (request.query_params.get(name) or "").split(",") if word]


def which(request: Request) -> Which:
    """The tensor that is meant; the names are those of `recording.series`, with `pass` for `pass_`."""
    return Which(
        node=needed(request, "node"),
        of=text(request, "of") or "value",
        role=text(request, "role"),
        pass_=whole(request, "pass"),
        type=text(request, "type"),
    )
