"""Prints a sheet of all that Endoscope says: messages, options, and docstrings of public names, as Markdown.

    python docs/prose/sheet.py > sheet.md

A message is a text of at least four words in `src/endoscope` that is no docstring; blanks that a program fills are …
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import endoscope

PACKAGE = Path(endoscope.__file__).parent
#: What is no English: lists of names, SQL, HTML and CSS, addresses, source that is built.
_NO_PROSE = re.compile(
    r"^(\w+ ){15,}\w+$|<\w+|</|\bselect \S+ from\b|\bgroup by\b|^\W*$|[{};]\s*$|: \d+px", re.IGNORECASE
)
_LEAST_WORDS = 4
#: A text without any of these is a list of names.
_GLUE = re.compile(r"\b(the|a|an|is|are|was|were|of|to|in|and|or|not|no|that|which|if|for)\b")


def messages(path: Path) -> Iterator[str]:
    """All texts of a file that are sentences, in order."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    inside |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        text = " ".join(text.split())
        if len(re.findall(r"[a-z]{2,}", text)) >= _LEAST_WORDS and _GLUE.search(text) and not _NO_PROSE.search(text):
            yield text


def docstrings() -> Iterator[tuple[str, str]]:
    for name in sorted(endoscope.__all__):
        found = getattr(endoscope, name)
        if inspect.ismodule(found) or isinstance(found, str):
            continue
        yield name, inspect.getdoc(found) or ""
        for inner, value in vars(found).items() if inspect.isclass(found) else ():
            if not inner.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                yield f"{name}.{inner}", inspect.getdoc(value) or ""


def sheet() -> Iterator[str]:
    yield "# Messages\n"
    for path in sorted(PACKAGE.rglob("*.py")):
        found = list(dict.fromkeys(messages(path)))
        if found:
            yield f"## {path.relative_to(PACKAGE).as_posix()}\n"
            yield from (f"- {text}" for text in found)
            yield ""
    yield "# Docstrings of public names\n"
    yield from (f"## {name}\n\n{text}\n" for name, text in docstrings() if text)


if __name__ == "__main__":
    sys.stdout.write("\n".join(sheet()) + "\n")
