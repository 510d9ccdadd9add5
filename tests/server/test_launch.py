"""The server as a user starts it: from Python, and as a command in a process of its own."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import endoscope
from endoscope.cli import main
from endoscope.errors import BadArgument, NotARecording
from endoscope.server import launch
from endoscope.server.library import Library
from endoscope.store.writer import TrialWriter
from tests.house.tree import SRC, run_python
from tests.store.made_up import step_record, write_trial


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_show_serves_until_it_is_closed(runs: Path) -> None:
    viewer = endoscope.show(runs, port=0)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]+", viewer.address) and viewer.address in repr(viewer)
    with urllib.request.urlopen(asked(viewer), timeout=10) as answer:
        assert len(json.load(answer)["trials"]) == 2
    viewer.close()
    assert "closed" in repr(viewer)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(viewer.address, timeout=5)


def asked(viewer: launch.Viewer) -> urllib.request.Request:
    address = f"http://127.0.0.1:{viewer.port}/api/catalog"
    return urllib.request.Request(address, headers={"Authorization": f"Bearer {viewer.token}"})


def asked_at(address: str, path: str) -> urllib.request.Request:
    home, _, token = address.partition("?token=")
    return urllib.request.Request(home + path, headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_token_is_needed(runs: Path, host: str) -> None:
    viewer = endoscope.show(runs, port=0, host=host)
    try:
        assert len(viewer.token) > 20 and viewer.address.endswith(f"?token={viewer.token}")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(asked(viewer).full_url, timeout=10)
        assert urllib.request.urlopen(asked(viewer), timeout=10).status == 200
    finally:
        viewer.close()


def test_a_port_in_use_is_a_sentence(runs: Path, taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(runs), "--port", str(taken)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"endoscope: Port {taken} is in use by another program") and "Leave --port out" in said


def test_without_a_port_the_next_free_one_is_taken(runs: Path, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "FIRST_PORT", taken)
    viewer = endoscope.show(runs)
    assert viewer.port != taken
    viewer.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": 70000}, "There is no port 70000"),
        ({"host": "192.0.2.1"}, "Leave --host out"),
        ({"views": "x.py"}, "--views"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(runs: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(BadArgument, match=said):
        endoscope.show(runs, **({"port": 0} | options))  # type: ignore[arg-type]


def test_nothing_to_show_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "holiday.txt").write_text("sun")
    assert main(["show", str(tmp_path)]) == 1
    assert "is no recording" in capsys.readouterr().err
    with pytest.raises(NotARecording, match="There is nothing at"):
        endoscope.show(tmp_path / "nix")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_folder_without_a_trial_is_waited_for(tmp_path: Path, is_there: bool) -> None:
    folder = tmp_path / "runs"
    if is_there:
        folder.mkdir()
    library = Library(folder, waits=True)
    assert library.names == [] and library.refresh() == []
    write_trial(folder, "first", range(3))
    library.refresh()
    assert library.names == ["first"] and len(library.get("first").steps) == 3


def test_one_trial_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    library = Library(tmp_path / "runs" / "first", waits=True)
    assert library.names == []
    write_trial(tmp_path / "runs", "first", range(3))
    library.refresh()
    assert library.names == ["first"] and len(library.get("first").steps) == 3


def test_the_browser_is_opened_on_request(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    endoscope.show(runs, port=0).close()
    assert opened == []
    viewer = endoscope.show(runs, port=0, browser=True)
    viewer.close()
    assert opened == [viewer.address]


def test_the_viewer_needs_no_torch_and_no_pandas(runs: Path) -> None:
    asks = ["catalog", "trials/first", "trials/first/steps/0", "trials/first/series?node=encoder&statistics=mean",
            "trials/first/heat", "trials/first/histograms?node=encoder", "trials/first/metrics?names=loss",
            "trials/first/samples?node=encoder&step=0", "trials/first/tensor?node=encoder&step=0"]  # fmt: skip
    code = f"""
sys.modules["torch"] = None  # importing it would raise
import urllib.request, endoscope
viewer = endoscope.show({str(runs)!r}, port=0)
for address in {asks!r}:
    urllib.request.urlopen(viewer.address + "api/" + address).read()
viewer.close()
print(sorted(name for name in ("pandas", "duckdb", "matplotlib") if name in sys.modules))
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


def test_the_command_serves_and_follows_a_training(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "live")
    writer.write_step(step_record(writer, 0))
    command = [sys.executable, "-m", "endoscope", "show", str(tmp_path), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=_hear_ctrl_c,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        assert address.startswith("http://127.0.0.1:")
        lines: queue.Queue[str] = queue.Queue()
        events = urllib.request.urlopen(asked_at(address, "api/events"), timeout=30)
        assert events.headers["content-type"].startswith("text/event-stream")
        threading.Thread(target=_forward, args=(events, lines), daemon=True).start()
        assert _next(lines)["steps"] == 1
        writer.write_step(step_record(writer, 1))
        assert _next(lines) == {"trial": "live", "steps": 2, "metrics": 2, "lastStep": 1, "closed": False}
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0, "an open page must not keep the server from ending"
        assert "Traceback" not in process.stdout.read()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        writer.close()


def _hear_ctrl_c() -> None:
    """Without job control a shell lets what it starts in the background ignore Ctrl+C: tests, and their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _forward(events: object, lines: queue.Queue[str]) -> None:
    try:
        for line in events:  # type: ignore[attr-defined]
            lines.put(line.decode())
    except OSError:
        pass
    finally:
        events.close()  # type: ignore[attr-defined]


def _next(lines: queue.Queue[str]) -> dict[str, object]:
    while True:
        line = lines.get(timeout=20)
        if line.startswith("data: "):
            return dict(json.loads(line.removeprefix("data: ")))


def test_ctrl_c_before_the_data_is_there(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is printed early, so somebody may change their mind early."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("endoscope.server.library.Library.__init__", interrupted)
    threads = threading.active_count()
    assert main(["show", str(runs), "--port", "0"]) == 0
    assert "endoscope-viewer" not in {thread.name for thread in threading.enumerate()}
    assert threading.active_count() <= threads + 1  # reading ahead may still be under way
