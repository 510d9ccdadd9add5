"""Docs are code: every Python block of every page runs, and prints what the page says.

The blocks of one page share their names, from top to bottom, as if typed into one session. A `text` block
directly behind a `python` block is what that block prints. Times are not compared, and a line that holds
only … stands for any number of lines.
"""

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.house.tree import project_files, relative

_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*?$", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"\b\d+\.\d+(?:E[+-]\d+)?s\b")


class Example(NamedTuple):
    """One Python block of a page."""

    line: int  # of its first line of code
    code: str
    printed: str | None  # what the page says that it prints


def examples(page: Path) -> list[Example]:
    """All Python blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    found = []
    for number, block in enumerate(blocks):
        if block[1] == "python":
            line = text.count("\n", 0, block.start()) + 2
            found.append(Example(line, block[2], _printed(block, blocks[number + 1 : number + 2])))
    return found


def _printed(block: re.Match[str], following: list[re.Match[str]]) -> str | None:
    for other in following:
        if other[1] == "text" and not block.string[block.end() : other.start()].strip():
            return other[2]
    return None


def run(example: Example, names: dict[str, Any], file: str) -> str:
    """Execute one block; returns what it printed. Line numbers in tracebacks are those of the block.

    Its source is where a notebook puts that of a cell, so that it can be found.
    """
    output = io.StringIO()
    linecache.cache[file] = (len(example.code), None, example.code.splitlines(keepends=True), file)
    with contextlib.redirect_stdout(output):
        exec(compile(example.code, file, "exec"), names)
    return output.getvalue()


def agrees(said: str, printed: str) -> bool:
    """Whether the printed text is what the page says, up to times and lines left out."""
    pieces = [re.escape(piece) for piece in re.split(r"(?m)^\s*…\n", _without_times(said))]
    return re.fullmatch(r"(?:.*\n)*".join(pieces), _without_times(printed)) is not None


def _without_times(text: str) -> str:
    lines = [line.rstrip() for line in _TIME.sub("#s", text).strip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines)


PAGES = [path for path in project_files() if path.suffix == ".md" and examples(path)]


def test_there_are_examples() -> None:
    assert {"README.md", "docs/index.md", "docs/reference/trace.md"} <= {relative(page) for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write files, never into the checkout
    names: dict[str, Any] = {"__name__": "__main__"}
    for example in examples(page):
        printed = run(example, names, "example.py")
        if example.printed is not None:
            where = f"{relative(page)}:{example.line}"
            assert agrees(example.printed, printed), f"{where} prints something else:\n{printed}"


@pytest.mark.parametrize(
    ("said", "printed", "verdict"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "b\n", False),
        ("took 0.020s\n", "took 1.5E-04s\n", True),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\nd\n", "a\nb\n", False),
        ("a  \n", "a\n", True),
        ("x[0] (1)\n", "x[0] (1)\n", True),
    ],
)
def test_what_agrees(said: str, printed: str, verdict: bool) -> None:
    assert agrees(said, printed) is verdict


def test_blocks_are_found_with_what_they_print(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    blocks = "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\na = 2\n```\nand\n```text\n3\n```\n"
    page.write_text("# Page\n\n" + blocks, encoding="utf-8")
    assert examples(page) == [Example(4, "print(1)\n", "1\n"), Example(12, "a = 2\n", None)]
