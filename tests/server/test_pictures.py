"""Pictures of graphs: what the page asks for whenever something is opened, closed or moved."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from starlette.testclient import TestClient

from endoscope.layout.recorded import Recorded, RecordedTree
from endoscope.query import bulk
from endoscope.server.graph.pictures import Drawable, Pictures, picture
from tests.server.pictures import read

ADDRESS = "/api/picture"


def graph_of(client: TestClient, trial: str = "first") -> str:
    found: str = client.get(f"/api/trials/{trial}").json()["graphs"][0]
    return found


@pytest.fixture
def drawn(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Asks for a picture of a trial with a small graph."""
    monkeypatch.setattr(bulk, "graph", lambda recording, name: GRAPH)

    def ask(**params: Any) -> dict[str, Any]:
        answer = client.get(ADDRESS, params={"graph": "first/any", **params})
        assert answer.status_code == 200, answer.text
        return read(answer.content)

    return ask


def test_every_tensor_has_a_box_and_every_edge_a_path(drawn: Callable[..., dict[str, Any]]) -> None:
    found = drawn()
    assert found["head"]["tensors"] == 5
    assert all(0 <= box < found["head"]["boxes"] for box in found["boxOfTensor"])
    assert found["starts"][0] == 0 and found["starts"][-1] == found["head"]["points"]
    assert all(later - start >= 4 for start, later in pairwise(found["starts"]))


def nested() -> Drawable:
    return Drawable(RecordedTree(Recorded.merged([GRAPH])))


def small_graph() -> dict[str, Any]:
    nodes = [
        {"node": name, "role": "", "pass": 1, "kind": kind, "module": module, "modules": [], "type": "op", "shape": [2]}
        for name, kind, module in (
            ("x", "input", ""), ("m.w", "parameter", "m"), ("m.a", "computed", "m"), ("m", "computed", "m"),
            ("out", "output", ""),
        )
    ]  # fmt: skip
    edges = [[0, 2, []], [1, 2, []], [2, 3, []], [3, 4, []]]
    return {"nodes": nodes, "edges": edges}


GRAPH = small_graph()


def test_modules_open_and_close() -> None:
    drawable = nested()
    closed, opened, everything = (read(picture(drawable, chosen, {})) for chosen in ((), ("m",), ("*",)))
    assert closed["head"]["labels"] == ["x", "m", "out"] and closed["head"]["opened"] == []
    assert opened["head"]["labels"] == ["x", "m", "w", "a", "output", "out"] and opened["head"]["opened"] == ["m"]
    assert opened == everything == read(picture(drawable, None, {}))  # small enough to be open at first
    assert opened["flags"] == [8, 1, 2, 8, 8, 8] and opened["tensor"] == [0, -1, 1, 2, 3, 4]
    assert opened["entry"][0] == opened["entry"][1] == opened["points"][0]  # a straight line in
    assert closed["head"]["addresses"] == ["m"] and closed["address"] == [-1, 0, -1] and closed["size"] == [0, 3, 0]


def test_boxes_stay_where_they_were_put() -> None:
    found = read(picture(nested(), ("m",), {"n:m.a": (300.0, 50.0)}))
    assert (found["x"][3] - found["x"][1], found["y"][3] - found["y"][1]) == (310, 72)


def test_names_of_the_users_own(drawn: Callable[..., dict[str, Any]]) -> None:
    arrangement = json.dumps({"version": 1, "pins": {}, "renames": {"m.a": "eyes"}, "groups": []})
    assert "eyes" in drawn(arrangement=arrangement, open="*")["head"]["labels"]
    assert "eyes" not in drawn(open="*")["head"]["labels"]


def test_a_graph_that_is_none_is_named(client: TestClient) -> None:
    """That of this trial only has names."""
    answer = client.get(ADDRESS, params={"graph": f"first/{graph_of(client)}"})
    assert answer.status_code >= 400
    assert f"first/{graph_of(client)} cannot be drawn" in answer.json()["error"]


def test_graphs_are_kept_and_forgotten() -> None:
    kept = Pictures()
    layout: Any = {"renames": {}, "groups": []}
    empty: dict[str, Any] = {"nodes": [], "edges": []}
    first = kept.drawable({"a/1": empty}, {}, layout)
    assert kept.drawable({"a/1": empty}, {}, layout) is first
    for number in range(9):
        kept.drawable({f"b/{number}": empty}, {}, layout)
    assert kept.drawable({"a/1": empty}, {}, layout) is not first


@pytest.mark.parametrize(
    ("params", "status", "said"),
    [
        ({}, 400, "lacks graph="),
        ({"graph": "nobody/x"}, 404, "no trial 'nobody'"),
        ({"graph": "first/nonsense"}, 404, "nonsense"),
        ({"arrangement": "{"}, 400, "no JSON"),
        ({"arrangement": "[]"}, 400, "A layout is an object"),
    ],
)
def test_bad_questions(client: TestClient, params: dict[str, str], status: int, said: str) -> None:
    whole = {"graph": f"first/{graph_of(client)}", **params} if "arrangement" in params else params
    answer = client.get(ADDRESS, params=whole)
    assert answer.status_code == status and said in answer.json()["error"]
