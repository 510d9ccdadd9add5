"""`Run(status=True)`: a line that says how far a run is, from a thread of its own, so that no step waits for it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from endoscope.recording import telling

EVERY_SECS = 1.0
_CHECK_EVERY_SECS = 30.0  # findings are computed by another process, which wants a processor for a moment


class Status:
    """Begins at once, and ends with `stop`."""

    def __init__(self, path: str, say: Callable[[str], None], so_far: Callable[[str], str]) -> None:
        self._path, self._say, self._so_far = path, say, so_far
        self._is_over = threading.Event()
        self._findings = ""
        self._checked = time.monotonic()
        threading.Thread(target=self._work, name="endoscope-status", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def _work(self) -> None:
        while not self._is_over.wait(EVERY_SECS):
            with contextlib.suppress(Exception):  # stderr may be closed; a status line is no reason for a traceback
                self._say(self._so_far(self._findings))
                if time.monotonic() - self._checked >= _CHECK_EVERY_SECS:
                    self._findings = _findings(self._path)
                    self._checked = time.monotonic()


def _findings(path: str) -> str:
    command = [sys.executable, "-m", "endoscope", "check", path, "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120).stdout)
    return telling.counted_findings([one["severity"] for one in found])
