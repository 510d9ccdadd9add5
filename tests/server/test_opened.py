"""Lists of open modules that are too long for an address."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from endoscope.errors import BadArgument
from endoscope.server.graph.opened import Opened


def test_a_list_has_one_name_and_comes_back(tmp_path: Path) -> None:
    opened = Opened()
    name = opened.keep(tmp_path, ["b", "a"])
    assert len(name) == 12 and opened.keep(tmp_path, ["a", "b"]) == name
    assert sorted(Opened().read(tmp_path, name)) == ["a", "b"]  # by another server
    assert [file.name for file in tmp_path.iterdir()] == [f"page-open-{name}.json"]


def test_where_nothing_can_be_written_it_lasts_as_long_as_the_server(tmp_path: Path) -> None:
    nowhere = tmp_path / "gone"
    opened = Opened()
    assert opened.read(nowhere, opened.keep(nowhere, ["a"])) == ["a"]
    assert not nowhere.exists()


@pytest.mark.parametrize("name", ["0123456789ab", "../../secret", "", "x"])
def test_an_unknown_name_is_a_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadArgument, match="has no list of open modules"):
        Opened().read(tmp_path, name)


@pytest.mark.parametrize("data", [{"a": 1}, [1, 2], "a"])
def test_what_is_no_list_of_texts_is_refused(tmp_path: Path, data: object) -> None:
    with pytest.raises(BadArgument, match="a list of their addresses"):
        Opened().keep(tmp_path, data)


def test_the_page_keeps_a_list(client: TestClient) -> None:
    answer = client.put("/api/trials/first/opened", json=["a.b", "a"])
    assert answer.status_code == 200 and len(answer.json()["name"]) == 12
    assert client.put("/api/trials/first/opened", json={"no": "list"}).status_code == 400
