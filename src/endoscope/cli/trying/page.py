"""The page beside a training: a process of its own, so that no click takes time from the training.

    Page(root, trial) ─► this file as a program ─► it waits for the first recorded step ─► serves, says its address
    the pipe to its stdin is closed, by `close` or by the end of whoever began it ─► it ends

Run as a program: python -m endoscope.cli.trying.page ROOT TRIAL
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import quote

_LOOK_EVERY_SECS = 0.1


class Page:
    """Somebody else's process that shows what this one records."""

    def __init__(self, root: str, trial: str) -> None:
        command = [sys.executable, "-m", "endoscope.cli.trying.page", root, trial]
        # In a session of its own, or Ctrl+C would reach it before the script has dealt with it.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=root
        )
        self._is_closing = False
        self._teller = threading.Thread(target=self._tell_address, name="endoscope-page", daemon=True)
        self._teller.start()

    def _tell_address(self) -> None:
        assert self._process.stdout is not None
        address = self._process.stdout.readline().strip()
        if address and not self._is_closing:
            sys.stderr.write(f"Endoscope: the page is at  {address}\n")
            sys.stderr.flush()

    def wait(self) -> None:
        """Until Ctrl+C. It may not be there yet, if the script was short."""
        sys.stderr.write("Endoscope: the script has ended. Press Ctrl+C to close the page.\n")
        sys.stderr.flush()
        try:
            self._process.wait()
        except KeyboardInterrupt:
            return

    def close(self) -> None:
        """End the page."""
        self._is_closing = True
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._teller.join()


def main(root: str, trial: str) -> None:
    """Serve from the first recorded step on, until stdin is closed."""
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    while not has_step(Path(root) / trial):
        if ended.wait(_LOOK_EVERY_SECS):
            return
    from endoscope.server import launch

    viewer = launch.show(root)
    address = f"{viewer.address}#v=1&tab=graph&trial={quote(trial, safe='')}"
    print(address, flush=True)
    if _has_browser():
        import webbrowser

        webbrowser.open(address)
    ended.wait()
    viewer.close()


def _wait_for_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def has_step(trial: Path) -> bool:
    """Whether the journal has a line about a step; cheaper than opening the recording again and again."""
    from endoscope.store import paths

    try:
        return b'"step"' in (paths.rank_folder(trial, 0) / paths.JOURNAL).read_bytes()
    except OSError:
        return False


def _has_browser() -> bool:
    """Browsers that run inside of a terminal would take it from the script."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    main(*sys.argv[1:])
