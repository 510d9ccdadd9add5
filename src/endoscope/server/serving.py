"""uvicorn, in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import uvicorn

from endoscope.errors import BadArgument
from endoscope.server.early import Early

_START_SECS = 30.0
_KEEP_ALIVE_SECS = 300  # somebody who reads for a while should not have to connect again for the next click


class Serving:
    """Serves until it is stopped; `before_end` is called before it waits for those who listen."""

    def __init__(self, app: Early, bound: socket.socket) -> None:
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", ws="none", server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECS,
        )  # fmt: skip
        self._server = _Server(config)
        self.thread = threading.Thread(target=self._server.run, args=([bound],), name="endoscope-viewer", daemon=True)

    def start(self, address: str) -> None:
        self.thread.start()
        if not self._server.is_up.wait(_START_SECS) or self._server.should_exit:
            raise BadArgument(f"The server could not be started at {address}. What it said stands above.")

    def at_end(self, call: Callable[[], None]) -> None:
        self._server.before_end = call

    def stop(self) -> None:
        self._server.should_exit = True
        self.thread.join()


class _Server(uvicorn.Server):
    """Says when it is up, and lets listeners go before it waits for them."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.before_end: Callable[[], None] | None = None
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.is_up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.before_end is not None:
            self.before_end()
        await super().shutdown(sockets)
