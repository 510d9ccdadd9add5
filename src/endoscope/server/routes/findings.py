"""What looks wrong in a trial, as far as it is known; and what the user does not want to hear of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from endoscope.errors import BadArgument
from endoscope.server import wire
from endoscope.server.answers import as_json
from endoscope.server.checking import Checking
from endoscope.server.routes import asked
from endoscope.server.routes.sent import json_of

if TYPE_CHECKING:
    from endoscope.findings.silence import Silenced

_MOST_BYTES = 64 << 10


def read(request: Request) -> Response:
    return as_json(_answer(request))


async def change(request: Request) -> Response:
    words = "What is to be silent"
    wanted = _silencing(await json_of(request, _MOST_BYTES, words, words))
    return await run_in_threadpool(_change, request, wanted)


def _change(request: Request, wanted: wire.Silencing) -> Response:
    from endoscope.findings import silence

    trial = asked.trial_of(request).path
    with _checking_of(request).writing:
        (silence.add if wanted["silenced"] else silence.remove)(trial, wanted["check"], wanted["node"])
    return as_json(_answer(request))


def _answer(request: Request) -> wire.Findings:
    from endoscope.findings import silence  # imported late: the page must not wait for it before it begins

    silenced = silence.read(asked.trial_of(request).path)
    result, is_checking = _checking_of(request).look(request.path_params["trial"])
    found = described(result["findings"]) if result else []
    return wire.Findings(
        checked=result is not None,
        checking=is_checking,
        problem=result["problem"] if result else None,
        checks=result["checks"] if result else 0,
        steps=result["steps"] if result else 0,
        lastStep=result["lastStep"] if result else None,
        findings=[one for one in found if silenced_by(one, silenced) is None],
        silenced=[
            wire.SilencedCheck(
                check=entry.check, node=entry.node,
                findings=[one for one in found if silenced_by(one, silenced) == entry],
            )
            for entry in silenced
        ],
    )  # fmt: skip


def silenced_by(finding: wire.Finding, silenced: Sequence[Silenced]) -> Silenced | None:
    check, node = finding["check"], finding["node"]
    return next((entry for entry in silenced if entry.check == check and entry.node in (None, node)), None)


def described(findings: Sequence[dict[str, Any]]) -> list[wire.Finding]:
    """As the page reads them: each with a name of its own, which stays the same while more is recorded."""
    names = _names(findings)
    by_place: dict[str, str] = {}
    for name, one in zip(names, findings, strict=True):
        by_place.setdefault(f"{one['check']} at {one['node']}", name)
    return [
        wire.Finding(
            id=name, check=one["check"], severity=one["severity"], title=one["title"], detail=one["detail"],
            node=one["node"], role=one["role"], of=one["of"], firstStep=one["first_step"],
            lastStep=one["last_step"], types=list(one["types"]), samples=list(one["samples"]), value=one["value"],
            threshold=one["threshold"], strength=one["strength"], usual=one["usual"], steps=one["steps"],
            source=one["source"], causes=list(one["causes"]), remedies=list(one["remedies"]),
            link=one["link"], follows=by_place.get(one["follows"], ""), also=list(one["also"]),
        )
        for name, one in zip(names, findings, strict=True)
    ]  # fmt: skip


def _names(findings: Sequence[dict[str, Any]]) -> list[str]:
    """`dead_units@encoder.2`; where several would be called so, role and kind of value stand behind it."""
    short = [one["check"] + (f"@{one['node']}" if one["node"] else "") for one in findings]
    often = {name for name, count in Counter(short).items() if count > 1}
    found: list[str] = []
    for name, one in zip(short, findings, strict=True):
        named = "@".join([name, one["role"], one["of"]]) if name in often else name
        while named in found:
            named += "'"
        found.append(named)
    return found


def _silencing(data: Any) -> wire.Silencing:
    example = '{"check": "dead_units", "node": "encoder.2", "silenced": true}; node may be null, which means everywhere'
    if not isinstance(data, dict) or set(data) != set(wire.Silencing.__annotations__):
        raise BadArgument(f"What is to be silent is an object like {example}.")
    check, node, silenced = data["check"], data["node"], data["silenced"]
    if not isinstance(check, str) or not isinstance(node, str | None) or not isinstance(silenced, bool):
        raise BadArgument(f"What is to be silent is an object like {example}.")
    return wire.Silencing(check=check, node=node, silenced=silenced)


def _checking_of(request: Request) -> Checking:
    found = request.app.state.checking
    assert isinstance(found, Checking)
    return found


ROUTES = [
    Route("/api/trials/{trial}/findings", read, methods=["GET"]),
    Route("/api/trials/{trial}/findings", change, methods=["PUT"]),
]
