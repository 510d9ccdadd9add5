"""Custom views: what a function returns is shown, what goes wrong in it is told."""

from __future__ import annotations

import base64
import io
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import endoscope
from endoscope.errors import BadArgument
from endoscope.server.custom_views import figures
from endoscope.server.custom_views.views import Views

Serve = Callable[..., TestClient]

FILE = '''
import numpy as np
from helper_beside import WORD

def text(selection, recording):
    """What is selected.

    More of it.
    """
    return f"{WORD} {selection.node} {selection.step} {recording.name} {selection.all['extra']}"

def spread(selection, recording):
    return str(recording.statistics(selection.node, selection.step, **selection.which)["std"])

def html(selection, recording):
    return "<b>bold</b><script>document.title = 1</script>"

def raises(selection, recording):
    numbers = [1, 2]
    return numbers[selection.step]

def leaves(selection, recording):
    raise SystemExit(3)

def nothing(selection, recording):
    pass

def helper(x):
    return x

def _private(selection, recording):
    return ""
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "views"
    folder.mkdir()
    (folder / "helper_beside.py").write_text("WORD = 'seen'")
    (folder / "my_views.py").write_text(FILE)
    return folder / "my_views.py"


@pytest.fixture
def client(runs: Path, serve: Serve, file: Path) -> TestClient:
    return serve(runs, views=file)


def run(client: TestClient, name: str, **selection: Any) -> dict[str, Any]:
    answer = client.get(f"/api/views/{name}", params={"selection": json.dumps(selection)})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_views_are_functions_of_selection_and_recording(client: TestClient, file: Path) -> None:
    found = client.get("/api/views").json()
    assert found["file"] == str(file) and found["problem"] is None
    names = [view["name"] for view in found["views"]]
    assert names == ["text", "spread", "html", "raises", "leaves", "nothing"]
    assert found["views"][0]["title"] == "What is selected"


def test_a_view_gets_the_selection_and_the_recording(client: TestClient, runs: Path) -> None:
    found = run(client, "text", trials=["second"], node="layer.0", step=3, extra=[1])
    assert (found["kind"], found["text"]) == ("text", "seen layer.0 3 second [1]")
    assert run(client, "text", extra=0)["text"].split()[3] == "second"  # the newest trial
    chosen = {"trials": ["first"], "node": "encoder", "step": 2, "type": "rare", "of": "gradient:aux"}
    expected = endoscope.open(runs / "first").statistics("encoder", 2, type="rare", of="gradient:aux")["std"]
    assert float(run(client, "spread", **chosen)["text"]) == expected


def test_html_is_shown_in_a_frame_that_can_do_nothing(client: TestClient) -> None:
    found = run(client, "html")
    assert found["kind"] == "frame"
    frame = client.get(found["url"])
    assert "<b>bold</b>" in frame.text
    policy = frame.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'") and "connect-src" not in policy
    assert "allow-same-origin" not in policy and "'self'" not in policy.replace("frame-ancestors 'self'", "")
    assert client.get("/frames/nix").status_code == 404


def test_an_error_is_a_traceback_of_the_users_file(client: TestClient, file: Path) -> None:
    found = run(client, "raises", step=7)
    assert found["kind"] == "error"
    lines = found["text"].splitlines()
    assert lines[0].startswith("Traceback") and lines[-1] == "IndexError: list index out of range"
    assert f'File "{file}"' in lines[1] and "return numbers[selection.step]" in found["text"]
    assert "endoscope/server" not in found["text"]
    assert "SystemExit: 3" in run(client, "leaves")["text"]
    assert run(client, "nothing")["text"].startswith("The view returned nothing. It may return a Plotly")


def test_the_file_is_read_again_when_it_changes(client: TestClient, file: Path) -> None:
    def change(text: str) -> None:
        file.write_text(text)
        os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000))

    assert run(client, "nothing")["kind"] == "error"
    change("def fresh(selection, recording):\n    return 'new'")
    assert [view["name"] for view in client.get("/api/views").json()["views"]] == ["fresh"]
    assert run(client, "fresh")["text"] == "new"
    answer = client.get("/api/views/text")
    assert answer.status_code == 404 and "There are: fresh." in answer.json()["error"]
    change("def broken(:")
    problem = client.get("/api/views").json()["problem"]
    assert "SyntaxError" in problem and "def broken(:" in problem
    assert run(client, "fresh")["kind"] == "error"
    change("x = 1")
    assert "has no views" in client.get("/api/views").json()["problem"]
    file.unlink()
    assert "is no longer there" in client.get("/api/views").json()["problem"]


def test_without_views(runs: Path, serve: Serve) -> None:
    assert serve(runs).get("/api/views").json() == {"file": None, "views": [], "problem": None}


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match=r"There is no file .*nix\.py with views"):
        Views(tmp_path / "nix.py")


@pytest.mark.parametrize("text", ["[1]", "{", "1", "[" * 5000])
def test_a_selection_is_an_object(client: TestClient, text: str) -> None:
    answer = client.get("/api/views/text", params={"selection": text})
    assert answer.status_code == 400 and "A selection is a JSON object" in answer.json()["error"]


def picture(shown: figures.Shown, kind: str) -> bytes:
    head, _, data = shown.image.partition(",")
    assert head == f"data:image/{kind};base64"
    return base64.b64decode(data)


def test_matplotlib() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 2])
    assert picture(figures.convert(figure), "png").startswith(b"\x89PNG")
    assert picture(figures.convert(axes), "png").startswith(b"\x89PNG")


def test_plotly_needs_nothing_from_elsewhere() -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    html = figures.convert(graph_objects.Figure(graph_objects.Scatter(y=[1, 2]))).html
    assert "Plotly.newPlot" in html and len(html) > 1_000_000  # the library is in it
    assert 'src="http' not in html


def test_altair() -> None:
    altair = pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    data = altair.Data(values=[{"x": 1, "y": 2}])
    svg = picture(figures.convert(altair.Chart(data).mark_point().encode(x="x:Q", y="y:Q")), "svg+xml")
    assert svg.startswith(b"<svg")


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 1), (2, 3, 3), (2, 3, 4)])
def test_pixels_become_a_png_with_the_same_numbers(shape: tuple[int, ...]) -> None:
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    data = picture(figures.convert(pixels), "png")
    start = data.index(b"IDAT") + 4
    length = int.from_bytes(data[start - 8 : start - 4], "big")
    rows = np.frombuffer(zlib.decompress(data[start : start + length]), np.uint8).reshape(shape[0], -1)
    assert np.array_equal(rows[:, 1:], pixels.reshape(shape[0], -1))
    image = pytest.importorskip("PIL.Image")
    opened = image.open(io.BytesIO(data))
    assert np.array_equal(np.asarray(opened).reshape(shape), pixels)
    assert figures.convert(opened).image.startswith("data:image/png")


def test_other_results() -> None:
    assert figures.convert("a < b > c").text == "a < b > c"
    assert figures.convert("<svg></svg>").html == "<svg></svg>"
    assert figures.convert({"a": 1}).text == "{'a': 1}"
    assert figures.convert(np.array([[0.0, 1.0, np.nan]])).image
    assert picture(figures.convert(b"GIF89a"), "gif") == b"GIF89a"

    class Table:
        def _repr_html_(self) -> str:
            return "<table></table>"

    assert figures.convert(Table()).html == "<table></table>"
    for wrong in (b"nothing", np.zeros((2, 2), np.int64), np.zeros((1, 2, 3, 4), np.uint8), np.zeros((0, 3), np.uint8)):
        with pytest.raises(BadArgument, match="The view returned"):
            figures.convert(wrong)
