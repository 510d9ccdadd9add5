"""`trace.show()`: a page until it is closed; what cannot be shown is said."""

from __future__ import annotations

import json
import urllib.request

import pytest
import torch
from torch import nn

import endoscope
from endoscope.errors import BadArgument
from tests.server.traces import nets


def test_show_prints_its_address_and_serves_until_it_is_closed(capsys: pytest.CaptureFixture[str]) -> None:
    viewer = nets.loop().show(port=0)
    try:
        assert capsys.readouterr().out == f"Endoscope shows the trace of Loop at  {viewer.address}\n"
        headers = {"Authorization": f"Bearer {viewer.token}"}
        asked = urllib.request.Request(f"http://127.0.0.1:{viewer.port}/api/trace", headers=headers)
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer)["name"] == "Loop"
    finally:
        viewer.close()
    with pytest.raises(OSError):
        urllib.request.urlopen(asked)


def test_the_public_function_takes_a_trace_and_refuses_other_objects() -> None:
    viewer = endoscope.show(nets.loop(), port=0)
    viewer.close()
    with pytest.raises(BadArgument, match="int cannot be shown"):
        endoscope.show(3)  # type: ignore[arg-type]


def test_views_need_a_recording() -> None:
    with pytest.raises(BadArgument, match="a trace has none"):
        endoscope.show(nets.loop(), views=__file__)


def test_a_trace_that_still_runs_cannot_be_shown() -> None:
    model = nn.Linear(2, 2)
    with endoscope.tracing(model) as trace:
        model(torch.ones(1, 2))
        with pytest.raises(BadArgument, match="after the block"):
            trace.show()


def test_looking_at_a_trace_changes_nothing() -> None:
    trace = nets.loop()
    before = [op.value.clone() for op in trace.ops]
    viewer = trace.show(port=0)
    viewer.close()
    assert all(torch.equal(op.value, kept) for op, kept in zip(trace.ops, before, strict=True))
