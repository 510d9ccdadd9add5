"""Who may ask. Every request passes here first.

    Host     must name this machine as it is served: a foreign name that resolves to it (DNS rebinding) is refused
    Origin   must be this page, if the browser sends one; pages of other sites are refused, whatever they ask for
    token    needed for all data, on loopback too; the printed address carries it once, from then on the page sends it
             with every request. The page's own files are the same for everybody, and what views made has a name that
             nobody can guess

Answers carry a policy that lets the browser load nothing from elsewhere and run no script but the page's own.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from endoscope.server.access import EVERYWHERE, Access, address_of, is_loopback
from endoscope.server.json_answers import as_json

__all__ = ["EVERYWHERE", "FRAMES", "Access", "Guard", "is_loopback"]

FRAMES = "/frames/"  # what custom views made; has a policy of its own
DATA = "/api/"

_PAGE = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self' blob:",
    "frame-src": "'self'",
    "manifest-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
#: Where a notebook shows the page: whoever else frames it has no token, and so no data to show.
_FRAMED_PAGE = {**_PAGE, "frame-ancestors": "http: https: vscode-webview: vscode-file:"}
# What a user's function returned may have scripts of its own. It gets an origin that nobody shares, so it can neither
# read the page nor ask the server, and it can load nothing from anywhere: all that it needs is in it.
_FRAME = {
    "sandbox": "allow-scripts",
    "default-src": "'none'",
    "script-src": "'unsafe-inline' 'unsafe-eval' blob:",
    "style-src": "'unsafe-inline'",
    "img-src": "data: blob:",
    "font-src": "data:",
    "worker-src": "blob:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'self'",
}
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """The middleware around everything."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        policy = _FRAME if connection.url.path.startswith(FRAMES) else _FRAMED_PAGE if self._access.framed else _PAGE
        sender = _with_headers(send, policy)
        refusal = self._refusal(connection)
        if refusal is not None:
            await refusal(scope, receive, sender)
        else:
            await self._app(scope, receive, sender)

    def _refusal(self, asked: HTTPConnection) -> Response | None:
        host = asked.headers.get("host", "")
        if not self._knows(_name_in(host)):
            return _refuse(
                403, f"This server does not answer to the name {host[:80]!r}. Use the address that it printed."
            )
        if not _is_own_page(asked.headers, host) and not self._is_framed(asked):
            return _refuse(403, "Another page asked for this. Only Endoscope's own page may; open the printed address.")
        if not asked.url.path.startswith(DATA) or not self._access.token or self._has_token(asked):
            return None
        return _refuse(401, "A token is needed, because others can reach this server, too. Use the address that it "
                            "printed: it ends in ?token=…")  # fmt: skip

    def _is_framed(self, asked: HTTPConnection) -> bool:
        """The page itself as a frame of a notebook; from then on it asks for itself."""
        is_frame = asked.headers.get("sec-fetch-dest") == "iframe" and "origin" not in asked.headers
        return self._access.framed and is_frame and not asked.url.path.startswith(DATA)

    def _knows(self, name: str) -> bool:
        if is_loopback(name):
            return True
        if self._access.host in EVERYWHERE:
            # Addresses cannot be rebound, and these names are the machine's own.
            return address_of(name) is not None or name.lower() in _own_names()
        return bool(self._access.token) and name.lower() == self._access.host.strip("[]").lower()

    def _has_token(self, asked: HTTPConnection) -> bool:
        sent = asked.headers.get("authorization", "").removeprefix("Bearer ")
        return _same(sent, self._access.token)


def _is_own_page(headers: Headers, host: str) -> bool:
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
        return False
    site = headers.get("sec-fetch-site", "same-origin")
    # A link on another site may lead to the page, which then asks for itself; it may not fetch or embed anything.
    return site in ("same-origin", "none") or headers.get("sec-fetch-dest") == "document"


def _with_headers(send: Send, policy: Mapping[str, str]) -> Send:
    text = "; ".join(f"{name} {value}" for name, value in policy.items())

    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Content-Security-Policy"] = text
            for name, value in _ALWAYS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sender


def _refuse(status: int, sentence: str) -> Response:
    return as_json({"error": sentence, "kind": "Refused"}, status)


def _name_in(host: str) -> str:
    """`localhost:80` -> `localhost`, `[::1]:80` -> `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _own_names() -> set[str]:
    return {socket.gethostname().lower(), socket.gethostname().partition(".")[0].lower()}


def _same(given: str, expected: str) -> bool:
    """In a time that does not tell how much of it was right."""
    return hmac.compare_digest(given.encode(), expected.encode())
