"""The page's files are there before its data; what asks for data waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from endoscope.server import app, early
from endoscope.server.access import Access
from endoscope.server.early import Early
from endoscope.server.library import Library
from tests.house.tree import run_python
from tests.server.conftest import HOME


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text("<p>built</p>")
    monkeypatch.setattr(early, "STATIC", tmp_path / "static")


def scope_of(path: str) -> dict[str, object]:
    headers = [(b"host", b"127.0.0.1:6280")]
    return {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": headers, "root_path": "", "scheme": "http", "server": ("127.0.0.1", 6280)}  # fmt: skip


async def receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def test_files_are_served_before_the_data(built: None) -> None:
    client = TestClient(Early(Access()), base_url=HOME)
    answer = client.get("/")
    assert answer.text == "<p>built</p>"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert client.get("/../early.py").status_code == 404
    assert TestClient(Early(Access()), base_url="http://evil.example").get("/").status_code == 403


def test_files_need_no_token(built: None) -> None:
    client = TestClient(Early(Access("0.0.0.0", "secret")), base_url=HOME)
    assert client.get("/").text == "<p>built</p>"


def test_data_is_waited_for(built: None, runs: Path) -> None:
    waiting = Early(Access())
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def ask() -> None:
        asked = asyncio.create_task(waiting(scope_of("/api/catalog"), receive, send))
        await asyncio.sleep(0.05)
        assert not sent and not asked.done()
        waiting.begin(app.create(Library(runs)))
        await asked

    asyncio.run(ask())
    assert sent[0]["status"] == 200 and b'"trials"' in sent[1]["body"]
    assert TestClient(waiting, base_url=HOME).get("/api/catalog").status_code == 200


def test_who_waits_in_vain_is_let_go(built: None) -> None:
    failed = Early(Access())
    failed.fail(ValueError("no"))
    with pytest.raises(RuntimeError, match="Nothing can be shown: no"):
        TestClient(failed, base_url=HOME).get("/api/catalog")


def test_the_address_is_known_before_anything_slow_is_imported() -> None:
    code = "import endoscope.server.launch; print([n for n in ('numpy', 'pyarrow', 'uvicorn') if n in sys.modules])"
    assert run_python(code).stdout.strip() == "[]"
    code = "import endoscope.server.serving; print([n for n in ('numpy', 'pyarrow') if n in sys.modules])"
    assert run_python(code).stdout.strip() == "[]"
