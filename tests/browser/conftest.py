"""A recording, a server and Chromium, as a user has them: nothing in between is replaced."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

import endoscope
from tests.browser import six_trials
from tests.browser.recordings import record

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
SIZE = {"width": 1440, "height": 900}
ADDRESS = re.compile(r"http://\S+")
PATIENCE_MS = 20_000  # of a busy machine; a page that is well answers in a fraction of a second

Visit = Callable[..., Page]
Serve = Callable[..., "Served"]


class Served(NamedTuple):
    """A running `endoscope show`."""

    address: str
    process: subprocess.Popen[str]


@pytest.fixture(scope="package")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trials with everything that a page can show."""
    folder = tmp_path_factory.mktemp("recordings") / "runs"
    record(folder, steps=90, every=5)
    return folder


@pytest.fixture(scope="package")
def six_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six trials, four of them with a planted fault."""
    folder = tmp_path_factory.mktemp("six") / "runs"
    six_trials.record(folder)
    return folder


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Ends with this folder: as long as playwright runs, nobody else can have an event loop."""
    program = which("chromium") or which("chromium-browser") or which("google-chrome")
    if program is None:
        # In CI nothing is skipped: `make test` installs Chromium, and if it could not, these tests fail.
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Chromium is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


def start(*words: str | Path) -> subprocess.Popen[str]:
    """`endoscope show` with these words behind it, of the package that is being tested."""
    assert endoscope.__file__ is not None
    environment = {**os.environ, "PYTHONPATH": str(Path(endoscope.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "endoscope", "show", *map(str, words)]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(*words: str | Path) -> tuple[int, str]:
    """What a command that cannot work returns, and all that it says."""
    process = start(*words)
    out, err = process.communicate(timeout=60)
    return process.returncode, out + err


def _serve(path: Path, *options: str | Path) -> Served:
    process = start(path, "--port", "0", *options)
    assert process.stdout is not None and process.stderr is not None
    found = ADDRESS.search(process.stdout.readline())
    if found is None:
        process.terminate()
        raise AssertionError(f"the server did not start: {process.stderr.read()}")
    return Served(found[0], process)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=30)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server for a folder; it ends with the test."""
    processes: list[subprocess.Popen[str]] = []

    def begin(path: Path, *options: str | Path) -> Served:
        served = _serve(path, *options)
        processes.append(served.process)
        return served

    yield begin
    for process in processes:
        _stop(process)


@pytest.fixture(scope="package")
def address(runs: Path) -> Iterator[str]:
    """Where the recording is served to all tests that change nothing."""
    served = _serve(runs)
    yield served.address
    _stop(served.process)


@pytest.fixture
def complaints() -> list[str]:
    """What a page did that no page may do; a test that expects something takes it out."""
    return []


@pytest.fixture
def visit(browser: Browser, complaints: list[str]) -> Iterator[Visit]:
    """Open an address in a window of its own and wait until all is drawn; errors and foreign requests fail the test."""
    windows = []

    def go(address: str, *, view: str | None = "graph", **options: Any) -> Page:
        """An address that names no view opens the one that most tests are about; None: what the page itself opens."""
        if view is not None and "#" not in address:
            address += f"#v=1&tab={view}"
        window = browser.new_context(**{"viewport": SIZE, "reduced_motion": "reduce", **options})
        remember_token(window, address)
        window.set_default_timeout(PATIENCE_MS)
        windows.append(window)
        window.on("page", lambda page: _watch(page, address, complaints))
        page = window.new_page()
        page.goto(address)
        settle(page)
        return page

    yield go
    for window in windows:
        window.close()
    assert complaints == []


_TOKENS: dict[str, str] = {}  # of the servers that were started, by their origin


def remember_token(window: BrowserContext, address: str) -> None:
    """A copied link has no token; whoever opens it here was told the address, and has been here before."""
    origin = "/".join(address.split("/")[:3])
    if "?token=" in address:
        _TOKENS[origin] = address.partition("?token=")[2].partition("#")[0]
    token = _TOKENS.get(origin, "")
    window.add_init_script(f"""if (location.origin === '{origin}' && window === window.top) {{
      sessionStorage.setItem('endoscope-token', '{token}');
      localStorage.setItem('endoscope-guide', 'seen');
    }}""")


def _watch(page: Page, address: str, complaints: list[str]) -> None:
    origin = "/".join(address.split("/")[:3])

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            where = message.location.get("url", "")
            complaints.append(f"console: {message.text} {where}")

    def asked(request: Request) -> None:
        if not request.url.startswith((f"{origin}/", "blob:", "data:")):
            complaints.append(f"foreign request: {request.url}")

    page.on("console", heard)
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", asked)


SETTLED = """() => Promise.race([
    window.__endoscope.settled(),
    new Promise((_, fail) => setTimeout(() => fail(new Error("the page does not settle")), 60000)),
])"""


def settle(page: Page) -> None:
    """Wait for the last pixel of the last change."""
    page.wait_for_function("window.__endoscope")
    page.evaluate(SETTLED)


@pytest.fixture
def page(visit: Visit, address: str) -> Page:
    """The recording, as the page opens."""
    return visit(address)
