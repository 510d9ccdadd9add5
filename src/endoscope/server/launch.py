"""Starting the server: which port, which address, in the foreground or beside the user's own code.

show(path) ─► library, views ─► socket ─► uvicorn in a thread ─► Viewer
`endoscope show` ─► the same, then waits until Ctrl+C
"""

from __future__ import annotations

import errno
import socket
import threading
import webbrowser
from os import PathLike

import uvicorn

from endoscope.errors import BadArgument
from endoscope.server import app as application
from endoscope.server.library import Library
from endoscope.server.live import Live
from endoscope.server.security import EVERYWHERE, Access
from endoscope.server.views import Views

FIRST_PORT = 6280
_PORTS_TRIED = 20
_START_SECS = 30.0


class Viewer:
    """A server that runs in a thread of its own, until `close()` or the end of the process."""

    def __init__(self, server: _Server, bound: socket.socket, access: Access) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.run, args=([bound],), name="endoscope-viewer", daemon=True)
        self.port: int = bound.getsockname()[1]
        self.address = _address(access, self.port)
        self._thread.start()
        if not server.is_up.wait(_START_SECS) or server.should_exit:
            raise BadArgument(f"The server could not be started at {self.address}. What it said stands above.")

    def __repr__(self) -> str:
        return f"<Viewer at {self.address}>" if self._thread.is_alive() else "<Viewer, closed>"

    def wait(self) -> None:
        """Keep serving until Ctrl+C."""
        try:
            while self._thread.is_alive():
                self._thread.join(0.5)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        self._thread.join()


def show(
    path: str | PathLike[str],
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    views: str | PathLike[str] | None = None,
    browser: bool = False,
) -> Viewer:
    """Serve a trial, or a folder of trials, as a page on this machine; returns at once, with the address.

    Only this machine can reach it. With another `host`, whoever has the address with its token can.
    """
    library, custom = Library(path), Views(views)
    access = Access.of_host(host)
    bound = _bind(host, port)
    app = application.create(library, custom, access)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", ws="none", server_header=False)
    viewer = Viewer(_Server(config, app.state.live), bound, access)
    library.prepare()
    if browser:
        webbrowser.open(viewer.address)
    return viewer


class _Server(uvicorn.Server):
    """Says when it is up, and lets listeners go before it waits for them."""

    def __init__(self, config: uvicorn.Config, live: Live) -> None:
        super().__init__(config)
        self._live = live
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.is_up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._live.stop()
        await super().shutdown(sockets)


def _bind(host: str, port: int | None) -> socket.socket:
    """A listening socket on the port that was asked for, or on the first free one."""
    if port is not None and not 0 <= port <= 65535:
        raise BadArgument(f"There is no port {port}. Ports are numbers from 1 to 65535; 0 means any that is free.")
    for candidate in [port] if port is not None else [*range(FIRST_PORT, FIRST_PORT + _PORTS_TRIED), 0]:
        try:
            return _socket(host, candidate)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port is None:
                continue
            raise BadArgument(_why_not(host, candidate, error)) from error
    raise BadArgument(f"No port is free on {host}.")


def _socket(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port of a server that has just ended
        found.bind(address)
        found.listen(128)
    except OSError:
        found.close()
        raise
    return found


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} is in use by another program, perhaps by another page of Endoscope. "
            "Leave --port out to get a free one, or choose another."
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"Port {port} may not be used by this user: {error.strerror}. Choose one above 1023, or leave --port out."
        )
    return f"Nothing can be served at {host}: {error.strerror or error}. Leave --host out to serve this machine only."


def _address(access: Access, port: int) -> str:
    host = socket.gethostname() if access.host in EVERYWHERE else access.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"?token={access.token}" if access.token else "")
