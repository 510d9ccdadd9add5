"""Where a run speaks: lines on stderr, a status line that stays in its place, a card in a notebook."""

import io
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import endoscope
from endoscope.recording import status, telling
from endoscope.recording.voice import Card, Lines, make_voice


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_at_a_terminal_the_status_stays_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    voice = Lines()
    for sentence in ("a long one", "short"):
        voice.status(sentence)
    voice.end(["the end", "    and more"])
    said = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert said.startswith("\rEndoscope: a long one\rEndoscope: short     \r")
    assert said.endswith("\rEndoscope: the end\n    and more\n")


def test_in_a_file_there_is_no_line_each_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    Lines().status("step 1")
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook shows: the module that Jupyter has is not installed here."""
    boxes: list[str] = []
    module, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    inner.HTML = lambda text: text  # type: ignore[attr-defined]

    def display(box: str, display_id: bool) -> Any:
        boxes.append(box)
        return types.SimpleNamespace(update=boxes.append)

    inner.display = display  # type: ignore[attr-defined]
    module.display = inner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    return boxes


def test_a_notebook_shows_one_card_that_changes(
    shown: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(make_voice(), Card)
    with endoscope.Run(tmp_path / "<b>", trial="nb") as run:
        run.metric("loss", 1.0)
    assert len(shown) == 2 and capsys.readouterr().err == ""
    assert "recording into" in shown[0] and "&lt;b&gt;" in shown[0] and "<b>/" not in shown[0]
    assert "no model was watched" in shown[1] and "endoscope check" in shown[1]


def test_a_plain_ipython_shell_is_no_notebook(shown: list[str]) -> None:
    sys.modules["IPython"].get_ipython = lambda: types.SimpleNamespace()  # type: ignore[attr-defined]
    assert isinstance(make_voice(), Lines)


def test_the_status_tells_steps_cost_size_and_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    both = threading.Event()

    def say(_: Lines, sentence: str) -> None:
        said.append(sentence)
        if sentence.startswith("3 steps") and "error" in sentence:
            both.set()

    monkeypatch.setattr(status, "EVERY_SECS", 0.01)
    monkeypatch.setattr(status, "_CHECK_EVERY_SECS", 0.0)
    monkeypatch.setattr(status, "_findings", lambda path: telling.counted_findings(["error", "warning", "warning"]))
    monkeypatch.setattr(Lines, "status", say)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, when=1, status=True) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
        run.flush()
        assert both.wait(60)
    told = [one for one in said if "error" in one][-1]
    assert told.startswith("3 steps, 3 recorded, ") and told.endswith("B, 1 error, 2 warnings")


def test_findings_so_far_come_from_a_process_of_their_own(tmp_path: Path) -> None:
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e30)
    with endoscope.Run(tmp_path, when=1) as run:
        run.watch(model, optimizer)
        for _ in range(4):
            model(torch.randn(2, 4)).square().sum().backward()
            optimizer.step()
        run.flush()
        assert "error" in status._findings(run.path)
