"""Recording never stops training: a failure of ours becomes a warning, said once, and a gap in the recording."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

from endoscope.errors import EndoscopeError, RecordingWarning


class Shield:
    """`with shield("tag 'x'"):` swallows ordinary exceptions, unless the run is strict."""

    def __init__(self, strict: bool, gap: Callable[[str, str], None]) -> None:
        self.strict = strict
        self._gap = gap
        self._said: set[str] = set()

    def __call__(self, where: str) -> _Guard:
        return _Guard(self, where)

    def failed(self, where: str, error: BaseException) -> None:
        """For failures that were caught already: raise them again if the run is strict."""
        if self.strict:
            raise error
        self.report(where, error)

    def report(self, where: str, error: BaseException) -> None:
        reason = str(error) if isinstance(error, EndoscopeError) else f"{type(error).__name__}: {error}"
        try:
            self._gap(where, reason)
        except Exception as second:  # the recording itself may be what is broken
            reason += f" (and this gap could not be written: {second})"
        self.say(where, f"Endoscope: {where}: {reason} Training goes on.")

    def note(self, sentence: str) -> None:
        """Something to know about the recording that is no failure."""
        self._gap("", sentence)

    def say(self, topic: str, message: str) -> None:
        """Warn once per topic. A user who turns warnings into errors gets a line on stderr instead."""
        if topic in self._said:
            return
        self._said.add(topic)
        try:
            warnings.warn(message, RecordingWarning, stacklevel=4)
        except Warning:
            sys.stderr.write(message + "\n")


class _Guard:
    __slots__ = ("_shield", "_where")

    def __init__(self, shield: Shield, where: str) -> None:
        self._shield = shield
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> bool:
        if error is None or not isinstance(error, Exception) or self._shield.strict:
            return False
        self._shield.report(self._where, error)
        return True
