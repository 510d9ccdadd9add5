"""Who may ask, and what the browser is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from endoscope.server import app
from endoscope.server.library import Library
from endoscope.server.security import Access, is_loopback
from endoscope.store.disk.maps import Maps
from endoscope.store.writer import TrialWriter
from tests.server.conftest import HOME
from tests.store.made_up import step_record

Serve = Callable[..., TestClient]
CATALOG = "/api/catalog"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9000", "localhost:6280", "LOCALHOST", "[::1]:6280"])
def test_this_machine_may_ask(client: TestClient, host: str) -> None:
    assert client.get(CATALOG, headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:6280", "", "10.0.0.1"]
)
def test_another_name_is_refused(client: TestClient, host: str) -> None:
    for address in (CATALOG, "/", "/frames/x"):
        answer = client.get(address, headers={"host": host})
        assert answer.status_code == 403 and "Use the address that it printed" in answer.json()["error"]


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1", "file://"]
)
def test_pages_of_others_are_refused(client: TestClient, origin: str) -> None:
    assert client.get(CATALOG, headers={"origin": origin}).status_code == 403
    layout = {"version": 1, "pins": {}, "renames": {}, "groups": []}
    assert client.put("/api/trials/first/layout", json=layout, headers={"origin": origin}).status_code == 403


def test_the_own_page_may_ask(client: TestClient) -> None:
    assert client.get(CATALOG, headers={"origin": HOME, "sec-fetch-site": "same-origin"}).status_code == 200


def test_other_sites_may_link_but_not_embed(client: TestClient) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
    assert client.get("/", headers=link).status_code != 403
    for dest in ("image", "script", "iframe", "empty"):
        assert client.get(CATALOG, headers={**link, "sec-fetch-dest": dest}).status_code == 403


def test_every_answer_has_a_policy(client: TestClient) -> None:
    for address in (CATALOG, "/", "/api/nix", "/no/such/file.js"):
        headers = client.get(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
    assert client.get(CATALOG).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
    ],
)
def test_a_token_is_made_for_every_host(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    assert len(Access.of_host(host).token) > 20
    assert Access.of_host(host).token != Access.of_host(host).token


@pytest.fixture
def outside(runs: Path, serve: Serve) -> TestClient:
    return serve(runs, access=Access("0.0.0.0", "right"), home="http://10.0.0.5:6280")


@pytest.fixture
def loopback(runs: Path, serve: Serve) -> TestClient:
    return serve(runs, access=Access("127.0.0.1", "right"), home=HOME)


@pytest.mark.parametrize("where", ["outside", "loopback"])
def test_without_the_token_no_data_is_shown(where: str, request: pytest.FixtureRequest) -> None:
    client: TestClient = request.getfixturevalue(where)
    for address in (CATALOG, "/api/events", "/api/start", f"{CATALOG}?token=wrong", f"{CATALOG}?token=right"):
        answer = client.get(address)
        assert answer.status_code == 401 and "?token=" in answer.json()["error"]
    assert client.get(CATALOG, headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get(CATALOG, headers={"authorization": "Bearer right"}).status_code == 200


def test_the_files_of_the_page_need_none_as_they_are_the_same_for_everybody(outside: TestClient) -> None:
    assert outside.get("/?token=anything").status_code in (200, 503)
    assert outside.get("/assets/nix.js").status_code == 404
    assert outside.get("/frames/nobody-knows").status_code == 404
    assert "set-cookie" not in outside.get("/?token=right").headers


def test_a_foreign_name_is_refused_also_with_the_token(outside: TestClient) -> None:
    headers = {"authorization": "Bearer right", "host": "evil.example"}
    assert outside.get(CATALOG, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "path", ["/../wire.py", "/..%2fwire.py", "/%2e%2e/wire.py", "/assets/../../wire.py", "/.stamp", "//etc/passwd"]
)
def test_files_beside_the_page_are_not_served(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404, answer.text
    assert "TypedDict" not in answer.text


def test_the_page_or_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: Path) -> None:
    monkeypatch.setattr(app, "STATIC", tmp_path / "static")
    client = TestClient(app.create(Library(runs)), base_url=HOME)
    answer = client.get("/")
    assert answer.status_code == 503 and "make page" in answer.text
    (tmp_path / "static" / "assets").mkdir(parents=True)
    (tmp_path / "static" / "index.html").write_text("<p>built</p>")
    (tmp_path / "static" / "assets" / "a-1.js").write_text("1")
    (tmp_path / "outside.txt").write_text("secret")
    os.symlink(tmp_path / "outside.txt", tmp_path / "static" / "assets" / "link.txt")
    assert client.get("/").text == "<p>built</p>" and client.get("/").headers["cache-control"] == "no-cache"
    assert "immutable" in client.get("/assets/a-1.js").headers["cache-control"]
    assert client.get("/assets/link.txt").status_code == 404


def test_a_recording_cannot_name_files_outside_of_itself(tmp_path: Path) -> None:
    """What a recording says about itself is data; a path in it must not lead out of it."""
    writer = TrialWriter.create(tmp_path, "one")
    writer.write_step(step_record(writer, 0))
    writer.close()
    (tmp_path / "secret").write_bytes(b"secret")
    for file in ("../../secret", str(tmp_path / "secret"), "raw/../../../secret"):
        with pytest.raises(OSError, match="leads out of the recording"):
            Maps(writer.path / "rank-0").get(file, 0)


def test_markup_in_a_recording_stays_data(tmp_path: Path, serve: Serve) -> None:
    writer = TrialWriter.create(tmp_path, "one", config={"name": "<script>alert(1)</script>"})
    writer.write_note(0, 0.0, "<img src=x onerror=alert(1)>")
    writer.close()
    client = serve(tmp_path)
    for address in ("", "/notes"):
        assert client.get(f"/api/trials/one{address}").headers["content-type"] == "application/json"
