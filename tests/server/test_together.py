"""Several questions in one address are answered as each would be alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import numpy as np
import pytest
import torch
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from endoscope.errors import LookupFailed
from endoscope.query.recording import Recording
from endoscope.server.library import Library
from endoscope.server.routes import together
from tests.query.ranks.made_up import Step, placed, write_rank
from tests.query.ranks.made_up import part as a_part
from tests.query.small_recording import KEYS

KEPT = {"node": KEYS[0].node, "role": KEYS[0].role, "pass": KEYS[0].pass_, "of": KEYS[0].of, "step": 0}


def parts(answer: Any) -> list[tuple[dict[str, object], bytes]]:
    assert answer.status_code == 200, answer.text
    length = int.from_bytes(answer.content[:4], "little")
    at = 4 + length
    found = []
    for part in json.loads(answer.content[4:at]):
        assert at % 8 == 0
        found.append((part, answer.content[at : at + part["bytes"]]))
        at += -(-part["bytes"] // 8) * 8
    assert at == len(answer.content)
    return found


def addresses() -> list[str]:
    return [
        "trials/first",
        "trials/first/steps/0",
        f"trials/first/tensor?{urlencode(KEPT)}",
        "trials/first/layout",
        f"trials/first/series?{urlencode({'node': KEYS[0].node, 'statistics': 'mean,std'})}",
    ]


def test_each_is_answered_as_it_would_be_alone(client: TestClient) -> None:
    found = parts(client.get("/api/together", params={"ask": addresses()}))
    for (part, body), address in zip(found, addresses(), strict=True):
        alone = client.get(f"/api/{address}")
        assert (part["status"], body) == (200, alone.content), address
        assert isinstance(part["headers"], dict) and part["headers"]["content-type"] == alone.headers["content-type"]
    tensor = found[2][0]["headers"]
    assert isinstance(tensor, dict) and json.loads(tensor["x-samples"]) == [1, 3]


def test_much_is_sent_in_pieces(client: TestClient, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("endoscope.server.answers._PIECE", 8)
    monkeypatch.setattr(together, "_SMALL", 8)
    found = parts(client.get("/api/together", params={"ask": addresses()}))
    expected = Recording(runs / "first").tensor(KEYS[0].node, 0, role=KEYS[0].role, pass_=KEYS[0].pass_)
    assert np.array_equal(np.frombuffer(found[2][1], "<f4"), np.asarray(expected, "<f4").reshape(-1))


def test_one_that_fails_leaves_the_others_alone(client: TestClient) -> None:
    bad = ["trials/first/steps/99", "trials/none", "nowhere", "together?ask=catalog", "catalog"]
    found = parts(client.get("/api/together", params={"ask": bad}))
    assert [part["status"] for part, _ in found] == [404, 404, 404, 404, 200]
    assert "99" in json.loads(found[0][1])["error"]


def test_the_start_is_the_newest_trial_and_its_newest_step(client: TestClient) -> None:
    found = {part["address"]: (part["status"], body) for part, body in parts(client.get("/api/start"))}
    trials = client.get("/api/catalog").json()["trials"]
    newest = max(trials, key=lambda trial: trial["created"])
    here = f"trials/{newest['name']}"
    described = client.get(f"/api/{here}").json()
    graphs = [f"{here}/graphs/{hash_}" for hash_ in described["graphs"]]
    step = f"{here}/steps/{newest['lastStep']}?type={described['types'][described['steps']['type'][-1]]}"
    named = "".join(f"&graph={newest['name']}%2F{hash_}" for hash_ in described["graphs"])
    picture = f"picture?trial={newest['name']}{named}"
    first = [
        "catalog",
        "overview",
        here,
        picture,
        f"{here}/tensors",
        f"{here}/modules",
        f"{here}/layout",
        *graphs,
        step,
    ]
    assert list(found)[: len(first)] == first
    # The tensor that the page selects by itself.
    asked = {address.split("?")[0].removeprefix(f"{here}/") for address in list(found)[len(first) :]}
    assert {"gaps", "series", "histograms"} <= asked
    for address, (status, body) in found.items():
        alone = client.get(f"/api/{address}")
        assert (status, body) == (alone.status_code, alone.content), address
        assert status == 200 or address == picture  # this made-up graph cannot be drawn


def test_the_start_of_trials_that_cannot_be_read_is_the_catalog(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(library: Library, name: str) -> Recording:
        raise LookupFailed(f"{name} is damaged.")

    monkeypatch.setattr(Library, "get", refuse)
    found = parts(client.get("/api/start"))
    assert [part["address"] for part, _ in found] == ["catalog", "overview"]


@pytest.mark.parametrize("count", [0, 33])
def test_too_few_and_too_many_are_refused(client: TestClient, count: int) -> None:
    answer = client.get("/api/together", params={"ask": ["catalog"] * count})
    assert answer.status_code == 400 and str(count) in answer.json()["error"]


def test_nothing_more_is_computed_for_who_has_hung_up(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    answer = together._answer

    def counted(request: Request, address: str) -> Response:
        computed.append(address)
        return answer(request, address)

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def sent(message: object) -> None:
        pass

    monkeypatch.setattr(together, "_answer", counted)
    asked = "&".join(f"ask={address}" for address in ("trials/first", "trials/second", "trials/first/tensors"))
    scope = {
        "type": "http", "method": "GET", "path": "/api/together", "query_string": asked.encode(),
        "headers": [(b"host", b"127.0.0.1:6280")], "scheme": "http", "server": ("127.0.0.1", 6280), "root_path": "",
    }  # fmt: skip
    anyio.run(client.app, scope, gone, sent)
    assert computed == ["trials/first"]


def test_the_start_of_a_job_of_which_one_rank_has_recorded_is_that_rank(
    tmp_path: Path, serve: Callable[..., TestClient]
) -> None:
    """Of all ranks there would be gaps and nothing else."""
    for trial, ranks in (("one", [1]), ("both", [0, 1])):
        for rank in ranks:
            own = a_part("x", torch.ones(4, 3), placed(["batch"]), batch_dim=0)
            write_rank(tmp_path / trial, rank, {0: Step([own])}, world=2, trial=trial)
        asked = [str(found["address"]) for found, _ in parts(serve(tmp_path / trial).get("/api/start"))]
        here = "trials/one%3Arank-1" if trial == "one" else "trials/both"
        assert here in asked and all(one.startswith(here) for one in asked if one.startswith("trials/"))
