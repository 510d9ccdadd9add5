"""Every example is short, and runs."""

import runpy
from pathlib import Path

import pytest

from tests.house.tree import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short_and_says_what_it_shows(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert text.startswith('"""')


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write files, never into the checkout
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
