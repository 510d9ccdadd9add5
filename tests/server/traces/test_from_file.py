"""A trace that was saved and loaded is shown like the one that it was."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import torch
from starlette.testclient import TestClient

import endoscope
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument
from endoscope.server.traces.app import create
from tests.server.conftest import HOME
from tests.server.traces import nets

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import endoscope
viewer = endoscope.show(sys.argv[1], port=0)
import urllib.request, urllib.parse
def ask(address):
    headers = {"Authorization": f"Bearer {viewer.token}"}
    asked = urllib.request.Request(f"http://127.0.0.1:{viewer.port}/api/{address}", headers=headers)
    with urllib.request.urlopen(asked) as answer:
        return answer.read()
for address in sys.argv[2:]:
    print(address, len(ask(address)) > 0)
viewer.close()
"""


@pytest.fixture
def both(tmp_path: Path) -> tuple[Trace, Trace]:
    trace = nets.loop(gradients=True)
    trace.result.sum().backward()
    trace.save(tmp_path / "x.trace")
    return trace, endoscope.load(tmp_path / "x.trace")


def test_every_answer_is_the_same(both: tuple[Trace, Trace]) -> None:
    one, other = (TestClient(create(trace), base_url=HOME) for trace in both)
    labels = one.get("/api/trace/graph").json()["label"]
    addresses = ["catalog", "trace", "trace/graph", "trace/graph?rolled=1", "trace/picture", "trace/picture?rolled=1"]
    addresses += [f"trace/heat?statistic={name}" for name in ("seconds", "bytes", "flops", "mean", "std", "nans")]
    addresses += ["trace/heat?statistic=mean&of=gradient", "trace/select?pattern=type:tanh"]
    addresses += [f"trace/path?from=input_1_0&to={labels[-1]}"]
    for label in labels:
        words = ("op", "code", "value", "tensor")
        addresses += [f"trace/{word}?label={label}" for word in words] + [f"trace/value?label={label}&of=gradient"]
    for address in addresses:
        first, second = (client.get(f"/api/{address}") for client in (one, other))
        assert (first.status_code, first.content) == (second.status_code, second.content), address


def test_a_file_is_told_from_a_folder(tmp_path: Path) -> None:
    nets.loop().save(tmp_path / "x.trace")
    viewer = endoscope.show(tmp_path / "x.trace", port=0)
    viewer.close()
    (tmp_path / "notes.txt").write_text("no trace")
    with pytest.raises(endoscope.errors.NotARecording):
        endoscope.show(tmp_path / "notes.txt", port=0)
    (tmp_path / "broken.trace").write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(endoscope.errors.EndoscopeError, match=r"broken\.trace"):
        endoscope.show(tmp_path / "broken.trace", port=0)


def test_it_is_shown_without_torch(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2).to(torch.bfloat16)
    trace = endoscope.trace(model, torch.ones(1, 2, dtype=torch.bfloat16))
    trace.save(tmp_path / "x.trace")
    label = trace["linear_1"].label
    addresses = ["start", f"trace/op?label={label}", f"trace/value?label={label}", f"trace/tensor?label={label}"]
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "x.trace"), *addresses]
    found = subprocess.run(command, text=True, capture_output=True, check=False)
    assert found.stdout.splitlines() == [f"{address} True" for address in addresses], found.stderr


def test_the_command_shows_a_file(tmp_path: Path) -> None:
    nets.loop().save(tmp_path / "x.trace")
    command = [sys.executable, "-m", "endoscope", "show", str(tmp_path / "x.trace"), "--port", "0"]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        said = re.search(r"(http://[^/]+)/\?token=(\S+)", process.stdout.readline())
        assert said is not None
        headers = {"Authorization": f"Bearer {said[2]}"}
        asked = urllib.request.Request(f"{said[1]}/api/catalog", headers=headers)
        with urllib.request.urlopen(asked) as answer:
            assert b'"trace":"Loop"' in answer.read()
    finally:
        process.terminate()
        process.communicate()


def test_a_trace_has_no_step(tmp_path: Path) -> None:
    from endoscope.cli.commands import parse

    nets.loop().save(tmp_path / "x.trace")
    options = parse(["show", str(tmp_path / "x.trace"), "--step", "3"])
    with pytest.raises(BadArgument, match="Leave --step out"):
        options.run(options)
