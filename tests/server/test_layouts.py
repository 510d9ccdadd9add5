"""The user's arrangement: kept beside the recording, all or nothing, and nothing but a layout."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import endoscope
from endoscope.errors import StoreError
from endoscope.server.graph import layouts

ADDRESS = "/api/trials/first/layout"
LAYOUT: dict[str, Any] = {
    "version": 1, "pins": {"encoder": [1.5, -2]}, "renames": {"encoder": "eyes"}, "groups": ["head."]
}  # fmt: skip


def test_at_first_it_is_empty(client: TestClient) -> None:
    assert client.get(ADDRESS).json() == {"version": 1, "pins": {}, "renames": {}, "groups": []}


def test_it_is_kept_beside_the_recording(client: TestClient, runs: Path) -> None:
    before = sorted(path.name for path in (runs / "first").iterdir())
    assert client.put(ADDRESS, json=LAYOUT).json() == LAYOUT
    assert client.get(ADDRESS).json() == LAYOUT
    assert json.loads((runs / "first" / "page.json").read_text()) == LAYOUT
    assert sorted(path.name for path in (runs / "first").iterdir()) == sorted([*before, "page.json"])
    assert client.get("/api/trials/second/layout").json()["pins"] == {}
    recording = endoscope.open(runs / "first")
    assert recording.verify() and recording.problems == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version 1"),
        ({"pins": {"a": [1]}}, "pins are"),
        ({"pins": {"a": [1, float("inf")]}}, "pins are"),
        ({"pins": []}, "pins are"),
        ({"renames": {"a": 1}}, "renames are"),
        ({"groups": "a"}, "groups are"),
        ({"script": 1}, "A layout has no 'script'"),
    ],
)
def test_nothing_else_is_saved(client: TestClient, runs: Path, change: dict[str, Any], said: str) -> None:
    body = json.dumps({**LAYOUT, **change})
    answer = client.put(ADDRESS, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and said in answer.json()["error"]
    assert not (runs / "first" / "page.json").exists()


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"{", "application/json", "is no JSON"),
        (b"\xff", "application/json", "is no JSON"),
        (b"[" * 100_000, "application/json", "is no JSON"),
        (b"{}", "text/plain", "application/json"),
        (b" " * (layouts.MOST_BYTES + 1), "application/json", "at most"),
    ],
    ids=["torn", "bytes", "deep", "type", "large"],
)
def test_nonsense_is_refused(client: TestClient, body: bytes, kind: str, said: str) -> None:
    answer = client.put(ADDRESS, content=body, headers={"content-type": kind})
    assert answer.status_code == 400 and said in answer.json()["error"]


def test_a_file_that_somebody_broke_is_named(client: TestClient, runs: Path) -> None:
    (runs / "first" / "page.json").write_text("{")
    answer = client.get(ADDRESS)
    assert answer.status_code == 400 and "page.json cannot be used" in answer.json()["error"]
    assert client.put(ADDRESS, json=LAYOUT).status_code == 200


def test_a_link_is_neither_read_nor_written_through(client: TestClient, runs: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(LAYOUT))
    os.symlink(outside, runs / "first" / "page.json")
    assert client.get(ADDRESS).json()["pins"] == {}
    assert client.put(ADDRESS, json={**LAYOUT, "pins": {}}).status_code == 200
    assert json.loads(outside.read_text()) == LAYOUT


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="The layout cannot be saved"):
        layouts.write(tmp_path / "gone", layouts.empty())
