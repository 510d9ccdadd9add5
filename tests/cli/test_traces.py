"""Commands and a trace in a file: what applies makes a page or a line of it, all else says what it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import endoscope
from endoscope.cli import main
from endoscope.errors import NotARecording


def decided(x: torch.Tensor) -> torch.Tensor:
    x = x * float(x.max())
    return x / 0 if x.sum() > 0 else x


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return endoscope.trace(decided, torch.tensor([1.0, 0.0, 3.0])).save(tmp_path / "x.trace")


def test_report(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = file.with_name("x.html")
    assert main(["report", str(file), "-o", str(page)]) == 0
    text = page.read_text()
    assert "<script" not in text and "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    for word in ("decided", "div_1_", "What takes longest", "NaN and infinity", "100.00%", "x.sum() &gt; 0",
                 "__float__()", "then"):  # fmt: skip
        assert word in text, word
    assert str(page) in capsys.readouterr().out
    for option in ("--rank", "--trial"):
        assert main(["report", str(file), "-o", str(page), option, "1"]) == 1
        assert "is a trace of one forward pass" in capsys.readouterr().err


def test_the_page_is_that_of_the_trace_itself(file: Path) -> None:
    loaded = endoscope.load(file)
    assert loaded.to_html(file.with_name("a.html")) == file.with_name("a.html")
    assert "div_1_" in str(loaded.to_html())
    with pytest.raises(endoscope.errors.BadArgument, match="is a folder"):
        loaded.to_html(file.parent)


def test_ls(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", str(file)]) == 0
    out = capsys.readouterr().out
    assert (
        "x.trace" in out and "decided" in out and "incomplete" in out and "not seen: " in out and "__float__()" in out
    )


@pytest.mark.parametrize("command", ["check", "export", "origin"])
def test_commands_for_recordings_say_what_it_is(command: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(file)]) in (1, 3)
    said = capsys.readouterr().err
    assert f"{file} is a trace of one forward pass" in said and "endoscope.load(" in said


def test_open_says_what_it_is(file: Path) -> None:
    with pytest.raises(NotARecording, match=r"x\.trace is a trace of one forward pass.*endoscope\.load"):
        endoscope.open(file)


def test_a_damaged_file_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    for command in ("report", "ls"):
        assert main([command, str(file)]) == 1
        assert f"{file} is not a trace, or it is damaged" in capsys.readouterr().err
