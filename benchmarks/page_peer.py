"""Comgra's page beside ours: the same network recorded with it, its own server, the same browser and the same clock.

Comgra does not say when its page is settled. So a click is timed from the event until the frame is painted that shows
the last change of the document before nothing has changed and nothing was asked for half a second.
Everything of it that would be fetched from other machines (style sheets) is refused, so nobody waits for a network.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route

STEPS = {"demo": 6, "transformer": 1}  # a step of the transformer takes minutes
ROUNDS = {"demo": 4, "transformer": 2}  # a click in it several seconds
MEMORY_BYTES = {"demo": 1e9, "transformer": 8e9}  # that recording and showing it take
_SCRIPT = Path(__file__).with_name("peer_comgra_page.py")
_RECORD_SECS, _START_SECS, _SETTLE_MS = 1800.0, 120.0, 240_000

#: `comgra`, its command. Newer versions of Dash, which it is built on, have another name for one of its methods.
_SERVER = """
import dash
from scripts.server import main
if not hasattr(dash.Dash, "run_server"):
    dash.Dash.run_server = dash.Dash.run
main()
"""

#: Runs before the page's own code: notes when the document changed last, and what is on its way from the server.
_WATCH = """() => {
  const watch = (window.__watch = { last: performance.now(), painted: 0, open: 0 });
  const { port1, port2 } = new MessageChannel();  // a message sent from a frame arrives after it was painted
  port1.onmessage = () => (watch.painted = performance.now());
  const touch = () => {
    watch.last = performance.now();
    requestAnimationFrame(() => port2.postMessage(null));
  };
  new MutationObserver(touch).observe(document, { subtree: true, childList: true, attributes: true,
                                                  characterData: true });
  const fetch = window.fetch;
  window.fetch = (...asked) => {
    watch.open++;
    return fetch(...asked).finally(() => { watch.open--; touch(); });
  };
  const quiet = () => watch.open === 0 && watch.painted >= watch.last && performance.now() - watch.painted > 500;
  watch.settled = async (most) => {
    const began = performance.now();
    while (!quiet() && performance.now() - began < most) await new Promise((done) => setTimeout(done, 10));
    return watch.painted;
  };
  watch.timed = async (action, n, most) => {
    await watch.settled(most);
    const began = performance.now();
    if (action(n) === null) return null;
    await new Promise((done) => setTimeout(done, 60));  // its framework asks in a later task
    const last = await watch.settled(most);
    return last > began ? last - began : null;
  };
}"""

#: Names are those of our own actions.
_ACTIONS = {
    "select a node": """
        const nodes = [...document.querySelectorAll(".node")].filter((node) => node.offsetParent !== null);
        if (nodes.length) nodes[(7 * n + 3) % nodes.length].click(); else return null;""",
    "step before": "document.getElementById('decrement-training-step-button').click();",
    "value, gradient, update": """
        const choices = [...document.querySelectorAll("#type-of-recording-radio-buttons input")];
        const next = choices.filter((choice) => !choice.checked)[0];
        if (next) next.click(); else return null;""",
    "sample": "document.getElementById('increment-batch-index-button').click();",
}


def recorded(python: str, name: str, folder: Path) -> Path:
    """What Comgra recorded of a network; made if it is not there yet. Raises OSError if it cannot be."""
    target = folder / f"comgra-{name}"
    if not (target / "done").exists():
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if memory < MEMORY_BYTES[name]:
            raise OSError(f"it needs {MEMORY_BYTES[name] / 1e9:.0f} GB of memory")
        target.mkdir(parents=True, exist_ok=True)
        print(f"recording with Comgra: {name} ...", file=sys.stderr, flush=True)
        command = [python, str(_SCRIPT), name, str(target), str(STEPS[name])]
        try:
            done = subprocess.run(
                command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                timeout=_RECORD_SECS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise OSError(f"recording it took more than {_RECORD_SECS / 60:.0f} minutes") from error
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise OSError(f"Comgra could not record {name}: {said[-1]}")
        (target / "done").touch()
    return target / "group"


def measure(browser: Browser, python: str, path: Path, name: str, size: Any) -> tuple[float, dict[str, list[float]]]:
    """(seconds until its page is usable, milliseconds of clicks by what was done)."""
    window = browser.new_context(viewport=size)
    window.add_init_script(f"({_WATCH})()")
    page = window.new_page()
    page.set_default_timeout(_SETTLE_MS)
    page.route("**/*", _only_from_here)
    clicks: dict[str, list[float]] = {}
    try:
        with _serving(python, path) as (address, started):
            page.goto(address, timeout=_SETTLE_MS)
            page.wait_for_function("() => document.querySelectorAll('.node').length > 0", timeout=_SETTLE_MS)
            usable = page.evaluate(f"async () => performance.timeOrigin + (await __watch.settled({_SETTLE_MS}))")
            for number in range(ROUNDS[name]):
                for action, body in _ACTIONS.items():
                    taken = _timed(page, body, number)
                    if taken is not None:
                        clicks.setdefault(action, []).append(taken)
    finally:
        window.close()
    return usable / 1000 - started, clicks


def _timed(page: Page, body: str, number: int) -> float | None:
    taken: float | None = page.evaluate(f"(n) => __watch.timed((n) => {{ {body} }}, n, {_SETTLE_MS})", number)
    return taken


def _only_from_here(route: Route) -> None:
    if route.request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
        route.continue_()
    else:
        route.abort()


@contextmanager
def _serving(python: str, path: Path) -> Iterator[tuple[str, float]]:
    """(address, moment at which it was started, in unix seconds)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.time()
    # Its server is a process that starts another one: both end as a group.
    process = subprocess.Popen(
        [python, "-c", _SERVER, "--path", str(path), "--port", str(port)],
        env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        _wait_for(port, started)
        yield f"http://127.0.0.1:{port}/", started
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(port: int, started: float) -> None:
    while time.time() - started < _START_SECS:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise OSError(f"Comgra's server did not answer within {_START_SECS:.0f} s")


def _environment() -> dict[str, str]:
    """Without our own packages on its path."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
