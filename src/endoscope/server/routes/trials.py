"""Descriptions: which trials there are, what is in one, its graphs, notes, modules and gaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from endoscope import __version__
from endoscope.query import bulk, layers, presence
from endoscope.query.liveness import is_running
from endoscope.query.recording import Recording
from endoscope.server import wire
from endoscope.server.answers import as_json
from endoscope.server.overview.summaries import Known
from endoscope.server.routes import asked
from endoscope.server.routes.overview import summaries_of


def catalog(request: Request) -> Response:
    library = asked.library_of(request)
    library.look_again()
    known, opened = summaries_of(request).look(), library.opened()
    trials = [_summary(name, known[name], opened.get(name)) for name in library.names if name in known]
    return as_json(wire.Catalog(version=__version__, root=str(library.path), trials=trials, trace=None))


def _summary(name: str, known: Known, opened: Recording | None) -> wire.TrialSummary:
    found = known.summary
    problems = [*(found.problems if found else ()), *(str(one) for one in (opened.problems if opened else ()))]
    return wire.TrialSummary(
        name=name,
        created=known.created,
        updated=found.updated if found else 0.0,
        steps=found.steps if found else 0,
        lastStep=found.last_step if found else None,
        live=known.live,
        closed=found.closed if found else False,
        known=known.is_read,
        readable=not known.problem,
        problems=[known.problem] if known.problem else list(dict.fromkeys(problems)),
        ranks=list(found.ranks) if found else [],
    )


def trial(request: Request) -> Response:
    recording = asked.trial_of(request)
    described = _describe(request.path_params["trial"], recording)
    asked.library_of(request).warm(recording)
    return as_json(described)


def _describe(name: str, recording: Recording) -> wire.Trial:
    steps = recording.steps
    types, graphs, reasons = _Places(), _Places(), _Places()
    columns = wire.StepColumns(
        ordinal=[step.ordinal for step in steps],
        number=[step.number for step in steps],
        type=[types.of(step.type) for step in steps],
        graph=[graphs.of(step.graph) if step.graph else -1 for step in steps],
        time=[step.time for step in steps],
        seconds=[step.recording_seconds for step in steps],
        why=[reasons.of(step.why) for step in steps],
        raw=[bool(step.raw_file) for step in steps],
        tensors=[step.tensors for step in steps],
    )
    return wire.Trial(
        name=name,
        created=recording.created,
        updated=recording.updated,
        live=is_running(recording),
        closed=recording.closed,
        config=recording.config,
        versions=recording.versions,
        types=types.words,
        losses=recording.losses,
        reasons=reasons.words,
        statistics=[wire.statistic(one) for one in recording.tables.statistics],
        derived=[wire.derived(one) for one in layers.offered(recording)],
        steps=columns,
        graphs=graphs.words,
        metrics=list(recording.metrics),
        problems=[str(problem) for problem in recording.problems],
        gaps=len(recording.gaps),
        notes=len(recording.notes),
        tensors=recording.read("keys").num_rows,
    )


class _Places:
    """Words in the order in which they first occur."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def of(self, word: str) -> int:
        return self._places.setdefault(word, len(self._places))

    @property
    def words(self) -> list[str]:
        return list(self._places)


def graph(request: Request) -> Response:
    found = bulk.graph(asked.trial_of(request), request.path_params["hash"])
    nodes = [_node(node) for node in _list(found, "nodes")]
    edges = [(edge[0], edge[1], list(edge[2])) for edge in _list(found, "edges")]
    return as_json(wire.Graph(hash=request.path_params["hash"], nodes=nodes, edges=edges))


def _list(found: dict[str, Any], name: str) -> Iterable[Any]:
    return found.get(name) or []


def _node(node: Any) -> wire.GraphNode:
    """A recorded tensor; what an older recorder left out is filled in."""
    empty = {"role": "", "pass": 1, "kind": "computed", "module": "", "source": ""}
    unknown = {"modules": None, "type": None, "shape": None}
    return cast(wire.GraphNode, {**empty, **unknown, **(node if isinstance(node, dict) else {"node": str(node)})})


def tensors(request: Request) -> Response:
    found = presence.presence(asked.trial_of(request))
    keys = [key for key, _ in found.tensors]
    return as_json(
        wire.Tensors(
            node=[key.node for key in keys],
            role=[key.role for key in keys],
            passes=[key.pass_ for key in keys],
            of=[key.of for key in keys],
            kind=[key.kind for key in keys],
            batch=[batch for _, batch in found.tensors],
            sets=found.sets,
            ordinals=found.ordinals,
            setOf=found.set_of,
        )
    )


def notes(request: Request) -> Response:
    return as_json([wire.Note(step=n.step, time=n.time, text=n.text) for n in asked.trial_of(request).notes])


def gaps(request: Request) -> Response:
    found = asked.trial_of(request).gaps
    return as_json([wire.Gap(step=g.step, node=g.node, of=g.of, reason=g.reason, time=g.time) for g in found])


def modules(request: Request) -> Response:
    return as_json(wire.Modules(modules=asked.trial_of(request).modules.get("modules", [])))


ROUTES = [
    Route("/api/catalog", catalog),
    Route("/api/trials/{trial}", trial),
    Route("/api/trials/{trial}/graphs/{hash}", graph),
    Route("/api/trials/{trial}/tensors", tensors),
    Route("/api/trials/{trial}/notes", notes),
    Route("/api/trials/{trial}/gaps", gaps),
    Route("/api/trials/{trial}/modules", modules),
]
