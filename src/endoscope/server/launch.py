"""Starting the server: which port, which address, in the foreground or beside the user's own code.

    start ─► path, views, port: whatever can be wrong is said now ─► the address is known, and told
          ─► uvicorn in a thread serves the page's files (early.py) ─► numpy, pyarrow, the recording ─► the data, too

`endoscope show` does this and waits until Ctrl+C; `endoscope.show` returns a Viewer. What takes time to import is
imported where it is needed, in the order in which a browser asks for it.
"""

from __future__ import annotations

import errno
import gc
import os
import socket
import sys
import time
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

from endoscope.errors import BadArgument
from endoscope.query import places
from endoscope.server.access import EVERYWHERE, Access
from endoscope.server.inline import check_notebook, embed

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from endoscope.server.serving import Serving

FIRST_PORT = 6280
_PORTS_TRIED = 20
_SWITCH_SECS = 0.001  # a click must not wait for threads that read ahead; five times as long is usual


class SupportsTrace(Protocol):
    """A trace, fresh or read from a file."""

    @property
    def graph(self) -> Any: ...
    def everything(self) -> Any: ...


class Viewer:
    """A server that runs in a thread of its own, until `close()` or the end of the process."""

    def __init__(self, serving: Serving, port: int, address: str) -> None:
        self._serving = serving
        self.port = port
        self.address = address
        self.token = address.partition("?token=")[2]

    def __repr__(self) -> str:
        return f"<Viewer at {self.address}>" if self._serving.thread.is_alive() else "<Viewer, closed>"

    def wait(self) -> None:
        """Keep serving until Ctrl+C."""
        try:
            # Not by joining the thread: Python 3.11 takes it for ended if that is interrupted, and so would we.
            while self._serving.thread.is_alive():
                time.sleep(0.5)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop serving."""
        self._serving.stop()


def show(
    path: str | PathLike[str] | SupportsTrace,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    views: str | PathLike[str] | None = None,
    browser: bool = False,
    inline: bool = False,
) -> Viewer:
    """Serve a trial, a folder of trials, or a trace, as a page on this machine; returns at once, with the address.

    Only this machine can reach it, and only who has the address with its token; with another `host`, others can, too.
    `inline` shows it below the cell of a notebook, or says there why the browser cannot reach it.
    """
    if inline:
        check_notebook()
    viewer = start(path, port=port, access=Access.of_host(host, framed=inline), views=views, browser=browser)
    if inline:
        embed(viewer.address)
    return viewer


def start(
    path: str | PathLike[str] | SupportsTrace,
    *,
    port: int | None,
    access: Access,
    views: str | PathLike[str] | None,
    browser: bool,
    announce: Callable[[str], None] | None = None,
) -> Viewer:
    """The same. `announce` is told the address as soon as a browser may ask for it, though it will have to wait.

    With it, a folder that is empty or not there yet is no mistake: the page waits for the first trial.
    """
    _check_views(views)
    make = _maker(path, views, may_wait=announce is not None)
    bound = bind(access.host, port)
    try:
        address = _address(access, bound.getsockname()[1])
        if announce is not None:
            sys.setswitchinterval(_SWITCH_SECS)  # the process is ours alone
            announce(address)
        return _serve(make, access, bound, address, browser)
    except BaseException:
        bound.close()
        raise


#: Makes the application, once the page's files are served already.
Maker = Callable[[Access], "Starlette"]


def _maker(path: str | PathLike[str] | SupportsTrace, views: str | PathLike[str] | None, *, may_wait: bool) -> Maker:
    """Whatever is wrong with what is to be shown is said here. A file is a trace, a folder has recordings."""
    if not isinstance(path, (str, PathLike)):
        return _trace_maker(path, views)
    if places.is_trace(path):
        import endoscope

        return _trace_maker(endoscope.load(path), views)
    if not may_wait or not places.is_to_come(path):
        places.check(path)
    return _recordings_maker(path, views)


def _recordings_maker(path: str | PathLike[str], views: str | PathLike[str] | None) -> Maker:
    def make(access: Access) -> Starlette:
        from endoscope.server import app as application
        from endoscope.server.custom_views.views import Views
        from endoscope.server.library import Library

        return application.create(Library(path, waits=True), Views(views), access)

    return make


def _trace_maker(trace: SupportsTrace, views: str | PathLike[str] | None) -> Maker:
    if not (hasattr(trace, "everything") and hasattr(trace, "graph")):
        raise BadArgument(
            f"{type(trace).__name__} cannot be shown. Pass the path of a trial or of a folder of trials, or a trace."
        )
    if views is not None:
        raise BadArgument("Views of your own draw what a recording holds; a trace has none. Leave views out.")

    def make(access: Access) -> Starlette:
        from endoscope.server.traces.app import create

        return create(trace, access)

    return make


def _serve(make: Maker, access: Access, bound: socket.socket, address: str, browser: bool) -> Viewer:
    from endoscope.server.early import Early
    from endoscope.server.serving import Serving

    early = Early(access)
    serving = Serving(early, bound)
    serving.start(address)
    try:
        if browser:
            import webbrowser

            webbrowser.open(address)
        app = make(access)
        serving.at_end(app.state.live.stop)
        gc.freeze()  # what was imported is never garbage; looking through it would hold up a layout for 150 ms
        app.state.prepare()
        early.begin(app)
    except BaseException as error:
        early.fail(error)
        serving.stop()
        raise
    return Viewer(serving, bound.getsockname()[1], address)


def _check_views(views: str | PathLike[str] | None) -> None:
    if views is not None and not os.path.isfile(os.path.expanduser(views)):
        raise BadArgument(f"There is no file {views} with views. Type the path of a Python file after --views.")


def bind(host: str, port: int | None) -> socket.socket:
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
