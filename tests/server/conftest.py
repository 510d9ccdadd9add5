"""A folder with two trials, served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from endoscope.server import app
from endoscope.server.custom_views.views import Views
from endoscope.server.library import Library
from endoscope.server.security import Access
from tests.query.small_recording import write_small_recording
from tests.store.made_up import write_trial

HOME = "http://127.0.0.1:6280"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_small_recording(tmp_path / "runs", "first")
    write_trial(tmp_path / "runs", "second", range(20))
    return tmp_path / "runs"


@pytest.fixture
def serve() -> Callable[..., TestClient]:
    def make(path: Path, views: Path | None = None, access: Access | None = None, home: str = HOME) -> TestClient:
        return TestClient(app.create(Library(path), Views(views), access), base_url=home)

    return make


@pytest.fixture
def client(runs: Path, serve: Callable[..., TestClient]) -> TestClient:
    return serve(runs)


def table(client: TestClient, address: str, **params: Any) -> pa.Table:
    """The Arrow table that an address answers with."""
    answer = client.get(address, params=params)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    return pa.ipc.open_stream(answer.content).read_all()
