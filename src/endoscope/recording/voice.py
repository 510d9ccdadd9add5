"""How a run speaks: lines on stderr, or a card in a notebook.

begin ─► status, again and again, if it is wanted ─► end
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

_EVERY_SECS = 60.0  # between status lines that are kept, in a file or a pipe
_STYLE = "border: 1px solid #8886; border-radius: 6px; padding: 0.5em 0.8em; font: 13px/1.5 system-ui, sans-serif"


class Voice(Protocol):
    """Where the sentences of a run go."""

    is_heard: bool

    def begin(self, sentence: str) -> None: ...
    def status(self, sentence: str) -> None: ...
    def end(self, sentences: Sequence[str]) -> None: ...


def make_voice(*, is_heard: bool = True) -> Voice:
    """Of the processes of a job one speaks."""
    if not is_heard:
        return Silence()
    return Card() if _is_notebook() else Lines()


class Silence:
    """Nowhere."""

    is_heard = False

    def begin(self, sentence: str) -> None: ...
    def status(self, sentence: str) -> None: ...
    def end(self, sentences: Sequence[str]) -> None: ...


class Lines:
    """On stderr. At a terminal the status stays in one line; elsewhere it is a line each minute."""

    is_heard = True

    def __init__(self) -> None:
        self._width = 0  # of the status line that stands there
        self._told = time.monotonic()

    def begin(self, sentence: str) -> None:
        sys.stderr.write(f"Endoscope: {sentence}\n")

    def status(self, sentence: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\rEndoscope: {sentence}".ljust(self._width))
            self._width = len(sentence) + len("\rEndoscope: ")
            sys.stderr.flush()
        elif time.monotonic() - self._told >= _EVERY_SECS:
            self._told = time.monotonic()
            self.begin(sentence)

    def end(self, sentences: Sequence[str]) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
        for sentence in sentences:
            sys.stderr.write(f"{'' if sentence.startswith(' ') else 'Endoscope: '}{sentence}\n")


class Card:
    """In a notebook: one box below the cell, which changes while the run goes on."""

    is_heard = True

    def __init__(self) -> None:
        self._head = ""
        self._handle: Any = None

    def begin(self, sentence: str) -> None:
        self._head = sentence
        self._show([])

    def status(self, sentence: str) -> None:
        self._show([sentence])

    def end(self, sentences: Sequence[str]) -> None:
        self._show(sentences)

    def _show(self, sentences: Sequence[str]) -> None:
        from IPython.display import HTML, display

        box = HTML(card(self._head, sentences))
        if self._handle is None:
            self._handle = display(box, display_id=True)
        else:
            self._handle.update(box)


def card(head: str, sentences: Sequence[str]) -> str:
    """The box as HTML."""
    lines = "".join(f"<div style='white-space: pre-wrap'>{html.escape(one)}</div>" for one in sentences)
    return f"<div style='{_STYLE}'><b>Endoscope</b> {html.escape(head)}{lines}</div>"


def _is_notebook() -> bool:
    """Whether this runs in a kernel whose front end shows HTML: Jupyter, VS Code, Colab; a terminal does not."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and hasattr(found, "kernel")
