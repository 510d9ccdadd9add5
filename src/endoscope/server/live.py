"""News while a training runs, as server-sent events.

    one task ─► library.refresh(), about once a second ─► the queue of every page that listens ─► event: trial …

The files are looked at only while somebody listens. An event says how much there is and not what: a page that missed
one loses nothing with the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from endoscope.errors import EndoscopeError
from endoscope.server import wire
from endoscope.server.answers import to_json
from endoscope.server.checking import Checking
from endoscope.server.custom_views.views import Views
from endoscope.server.library import Library
from endoscope.server.overview.summaries import Summaries

POLL_SECS = 0.7
_HEARTBEAT_SECS = 15.0  # a comment, so that a page that has gone is noticed
_MOST_WAITING = 1000  # events; a page that is so far behind has gone

Event = tuple[str, Any]  # name, data


class Listeners:
    """Everybody who listens, and the one task that looks. There is never any news: a trace does not grow."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[Event | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    async def listen(self) -> AsyncIterator[str]:
        """The text of the events, until the server ends."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue(_MOST_WAITING)
        self._listeners.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            yield ": listening\n\n"
            while not self._is_over:
                try:
                    event = await asyncio.wait_for(queue.get(), _HEARTBEAT_SECS)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if event is None:
                    break
                yield f"event: {event[0]}\ndata: {to_json(event[1])}\n\n"
        finally:
            self._listeners.discard(queue)

    def stop(self) -> None:
        """Let everybody go; otherwise a server would wait for pages that wait for it."""
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
        for queue in self._listeners:
            if not queue.full():
                queue.put_nowait(None)

    async def _look(self) -> None:
        while self._listeners and not self._is_over:
            for event in await run_in_threadpool(self.news):
                for queue in list(self._listeners):
                    if not queue.full():
                        queue.put_nowait(event)
            await asyncio.sleep(POLL_SECS)

    def news(self) -> list[Event]:
        """What has happened since the last look."""
        return []


class Live(Listeners):
    """Of a folder of trials."""

    def __init__(
        self,
        library: Library,
        views: Views,
        checking: Checking | None = None,
        summaries: Summaries | None = None,
    ) -> None:
        super().__init__()
        self._library = library
        self._views = views
        self._checking = checking or Checking(library)
        self._summaries = summaries or Summaries(library)
        self._known = (library.names, views.stamp())

    def stop(self) -> None:
        super().stop()
        self._checking.stop()
        self._summaries.stop()

    def news(self) -> list[Event]:
        """The first look tells of every trial that is open."""
        try:
            grown = self._library.refresh()
        except (EndoscopeError, OSError):  # the folder has gone, or cannot be read at the moment
            return []
        names, stamp = self._library.names, self._views.stamp()
        events: list[Event] = []
        if names != self._known[0]:
            events.append(("catalog", wire.CatalogNews(trials=names)))
        if stamp != self._known[1]:
            events.append(("views", wire.ViewsNews(file=str(self._views.file))))
        self._known = (names, stamp)
        if self._summaries.has_news():
            events.append(("overview", wire.OverviewNews(trials=len(names))))
        events += [("trial", self._news_of(name)) for name in grown]
        return events + [("findings", wire.FindingsNews(trial=name)) for name in self._checking.news()]

    def _news_of(self, name: str) -> wire.TrialNews:
        recording = self._library.get(name)
        steps = recording.steps
        return wire.TrialNews(
            trial=name,
            steps=len(steps),
            metrics=recording.read("metrics").num_rows,
            lastStep=steps[-1].number if steps else None,
            closed=recording.closed,
        )


async def events(request: Request) -> Response:
    live = request.app.state.live
    assert isinstance(live, Listeners)
    return StreamingResponse(live.listen(), media_type="text/event-stream")


ROUTES = [Route("/api/events", events)]
