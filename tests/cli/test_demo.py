"""`endoscope demo` shows a trace and a proof."""

import pytest

from endoscope.cli import main


def test_demo_traces_prints_and_proves(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEMO_SERVE", "0")
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    for label in ("linear_1", "linear_2:2", "softmax_1"):
        assert label in shown
