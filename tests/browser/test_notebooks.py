"""A notebook is executed and saved; what it then holds is looked at in a browser that runs no script."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser

from endoscope.markup.notebook import MOST_BYTES
from endoscope.server.access import Access
from endoscope.server.inline import shown, why_not
from endoscope.server.launch import start

CELLS = [
    """
import torch, endoscope
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
x = torch.rand(16, 4)
trace = endoscope.trace(model, x)
trace
""",
    'trace["relu_1"]',
    "trace.ops",
    'endoscope.compare(trace, trace.rerun({"relu_1": endoscope.edits.zero()}))',
    "trace.validate()",
    'endoscope.load(trace.save("net.trace"))',
    """
run = endoscope.Run("runs", trial="first", when=1, status=False)
run.watch(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean() * (float("nan") if step == 3 else 1.0)
    loss.backward()
    optimizer.step()
    run.metric("loss", loss.item())
run
""",
    'run.close()\nendoscope.open("runs/first")',
    'endoscope.open("runs")',
    'endoscope.diagnose("runs/first")',
    'endoscope.diagnose("runs/first")[0]',
    "from endoscope.server.inline import embed\nembed('http://127.0.0.1:1/?token=none')",
]
#: What is to be read of each cell.
SEEN = [
    ["Sequential", "operations", "purely feedforward"],
    ["relu_1_2", "Parents", "linear_1_1"],
    ["linear_1_1", "flops"],
    ["Comparison of Sequential and Sequential", "largest difference", "relu_1_2"],
    ["every check holds"],
    ["Sequential", "operations"],
    ["first", "4 steps"],
    ["first", "recorded steps", "loss"],
    ["1 trial", "first"],
    ["error"],
    ["error", "causes and remedies"],
    ["If nothing is shown, your browser cannot reach this kernel"],
]

EXECUTE = """
import sys, nbformat, nbclient
book = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
nbformat.write(book, sys.argv[1])
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("notebook")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS])
    path = folder / "net.ipynb"
    nbformat.write(book, path)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXECUTE, str(path)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    read = nbformat.read(path, as_version=4)
    nbformat.validate(read)
    return read


def bundles(cell: Any) -> list[dict[str, str]]:
    return [output["data"] for output in cell.outputs if "data" in output]


def test_every_output_is_text_and_html_without_script(notebook: Any) -> None:
    for cell, words in zip(notebook.cells, SEEN, strict=True):
        shown_last = bundles(cell)[-1]
        html = shown_last["text/html"]
        assert shown_last["text/plain"]
        assert (
            "<script" not in html
            and "onclick" not in html
            and 'src="http' not in html.replace("http://127.0.0.1:1", "")
        )
        assert len(html.encode()) < MOST_BYTES * 1.1
        assert all(word in html for word in words), (words, html[:500])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_was_saved_is_seen_without_a_kernel(notebook: Any, browser: Browser, tmp_path: Path, scheme: Any) -> None:
    cells = [f"<section>{bundles(cell)[-1]['text/html']}</section>" for cell in notebook.cells[:-1]]
    look = "<style>:root { color-scheme: light dark; }</style>"
    (tmp_path / "saved.html").write_text(f"<!doctype html><meta charset=utf-8>{look}<body>{''.join(cells)}</body>")
    context = browser.new_context(java_script_enabled=False, color_scheme=scheme)
    page = context.new_page()
    page.goto((tmp_path / "saved.html").as_uri())
    sections = page.locator("section").all()
    for section, words in zip(sections, SEEN, strict=False):
        for word in words[:1]:
            assert section.get_by_text(word).first.is_visible(), word
    graph = sections[0].locator("details").first
    assert not graph.locator("img").is_visible()
    graph.locator("summary").click()
    box = graph.locator("img").bounding_box()
    assert box is not None and box["width"] > 50 and box["height"] > 100
    sections[0].locator("details").nth(1).locator("summary").click()
    assert sections[0].get_by_role("cell", name="linear_1_1", exact=True).first.is_visible()
    context.close()


# ---- inline ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder that another server shows, as Jupyter would."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield tmp_path, f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("framed", [True, False])
def test_the_page_is_seen_inside_of_a_notebook_and_nowhere_else(
    browser: Browser, runs: Path, elsewhere: tuple[Path, str], framed: bool
) -> None:
    folder, address = elsewhere
    viewer = start(runs, port=0, access=Access.of_host("127.0.0.1", framed=framed), views=None, browser=False)
    try:
        (folder / "book.html").write_text(f"<!doctype html><body>{shown(viewer.address, '')}</body>")
        page = browser.new_page()
        page.goto(f"{address}/book.html")
        frame = page.frame_locator("iframe")
        tabs = frame.get_by_text("Overview", exact=True)
        if framed:
            tabs.first.wait_for(timeout=20_000)
        else:
            page.wait_for_timeout(500)
            assert tabs.count() == 0
        page.close()
    finally:
        viewer.close()


def test_where_a_port_cannot_be_reached_this_is_said() -> None:
    assert why_not({"SHELL": "bash"}) == ""
    reason = why_not({"COLAB_RELEASE_TAG": "release"})
    assert "Google Colab" in reason and "trace.to_html" in reason
    assert "<iframe" not in shown("http://127.0.0.1:6280", reason)
