"""`endoscope report`: one file that needs nothing else, in which everything from a recording is harmless text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from endoscope.cli import main
from endoscope.findings import silence
from endoscope.report.build import report
from endoscope.schema.recording import GapRecord, Key, StepRecord
from endoscope.store.writer import TrialWriter
from tests.findings.recorded_arrays import measured
from tests.findings.runs import curve
from tests.house.tree import run_python

EVIL = "</style><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x00\u2028"
EMPTY = frozenset(("meta", "br", "hr", "img", "input", "link"))


def write(root: Path, name: str = "trial", *, evil: str = "", steps: int = 12) -> Path:
    """A small network whose ReLU is dead; with `evil` in every text that a recording has."""
    writer = TrialWriter.create(root, name, config={"lr": 0.1, f"note{evil}": f"hello{evil}", "deep": {"er": [1, 2]}})
    modules = [
        {"address": "", "type": f"Net{evil}", "children": ["act"], "parameters": 32, "trainable": 32, "own": []},
        {"address": f"act{evil}", "type": "ReLU", "children": [], "parameters": 0, "trainable": 0, "own": []},
    ]
    writer.write_modules({"modules": modules})
    writer.write_note(0, 1.0, f"a note{evil}")
    names = ["x", f"hidden{evil}", f"act{evil}", f"loss{evil}"]
    kinds = ["input", "computed", "computed", "loss"]
    functions = ["input", "linear", "relu", "cross_entropy"]
    graph_nodes = [
        {"node": node, "role": "", "pass": 1, "kind": kind, "module": "", "source": f"model.py:3{evil}",
         "type": function, "modules": [], "shape": [16, 8]}
        for node, kind, function in zip(names, kinds, functions, strict=True)
    ]  # fmt: skip
    graph = {"hash": "g", "nodes": graph_nodes, "edges": [[0, 1, ["0"]], [1, 2, ["0"]], [2, 3, ["0"]]]}
    rng = np.random.default_rng(0)
    for number in range(steps):
        hidden = rng.standard_normal((16, 8)) - 30
        arrays = [rng.standard_normal((16, 8)), hidden, np.maximum(hidden, 0), np.array([[2.0 - 0.01 * number]])]
        keys = [
            Key(node, kind=kind, shape=array.shape, batch_dim=0, source=f"model.py:3{evil}")
            for node, kind, array in zip(names, kinds, arrays, strict=True)
        ]
        writer.write_step(
            StepRecord(
                number=10 * number, type=f"train{evil}", time=10.0 + number, why=f"every(10){evil}",
                recording_seconds=0.01, graph_hash="g", graph=graph,
                keys=np.array([writer.key_id(key) for key in keys]), measured=measured(arrays),
                metrics={f"accuracy{evil}": number / steps},
                gaps=[GapRecord(f"act{evil}", "value", f"too large{evil}")] if number == 2 else [],
            )
        )  # fmt: skip
    writer.close()
    return writer.path


class Reader(HTMLParser):
    """Collects the elements of a page, and whether every one that opens is closed in turn."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(page: str) -> Reader:
    found = Reader()
    found.feed(page)
    found.close()
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return report(write(tmp_path_factory.mktemp("runs")))


def test_it_has_findings_curves_graph_pictures_and_facts(page: str) -> None:
    found = read(page)
    words = " ".join(found.words)
    assert "dead_units" in words and "May come from" in words and "What to try" in words and "model.py:3" in words
    classes = [attributes.get("class") or "" for _, attributes in found.tags]
    assert sum("chart" in name.split() for name in classes) >= 3  # the finding's curve, its pictures, the metric
    assert sum(tag == "image" for tag, _ in found.tags) == 2  # histogram and units
    assert any("severity-error" in name and "box" in name.split() for name in classes)  # marked in the graph
    for fact in ("deep.er", "hello", "too large", "a note", "every(10)", "numpy"):
        assert fact in words


def test_marks_in_the_graph_lead_to_findings(page: str) -> None:
    found = read(page)
    anchors = {attributes["id"] for _, attributes in found.tags if "id" in attributes}
    links = [attributes["href"] or "" for tag, attributes in found.tags if tag == "a"]
    assert links and all(link.startswith("#") and link[1:] in anchors for link in links)


def test_it_is_well_formed(page: str) -> None:
    found = read(page)
    assert not found.wrong and not found.open
    assert page.startswith("<!doctype html>")


def test_nothing_is_fetched_and_nothing_runs(page: str) -> None:
    found = read(page)
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in found.tags}
    for _, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "action", "data"):
            address = attributes.get(name) or "#"
            assert address.startswith(("#", "data:image/png;base64,"))
    policy = next(a["content"] or "" for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy and "script" not in policy
    assert not re.search(r"url\(\s*['\"]?(?!#)", page) and "@import" not in page


def test_whatever_a_recording_says_is_text(tmp_path: Path) -> None:
    found = read(report(write(tmp_path, evil=EVIL)))
    assert not found.wrong and not found.open
    assert not {"script", "img"} & {tag for tag, _ in found.tags}
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    assert "alert(1)" in " ".join(found.words)  # it is shown, as it is
    assert "\x00" not in " ".join(found.words)


def test_light_and_dark_and_print(page: str) -> None:
    assert "prefers-color-scheme: dark" in page and "@media print" in page


def test_several_trials_begin_with_a_table(tmp_path: Path) -> None:
    write(tmp_path, "one")
    write(tmp_path, "two")
    both = read(report(tmp_path))
    links = [
        attributes["href"] for tag, attributes in both.tags if tag == "a" and "trial" in (attributes["href"] or "")
    ]
    assert links == ["#trial-1", "#trial-2"]
    alone = read(report(tmp_path, "two"))
    assert "one" not in alone.words


def test_a_trial_without_anything(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "empty")
    writer.close()
    page = report(writer.path)
    assert "no step was recorded" in page and "run.watch(model, optimizer)" in page
    assert "othing looks wrong" not in page
    silence.add(writer.path, "no_steps")
    page = report(writer.path)
    assert "Nothing else was found. Silenced: no step was recorded." in page and "othing looks wrong" not in page


def test_a_sound_trial_says_over_how_many_steps(tmp_path: Path) -> None:
    page = report(curve(tmp_path, [1.0 / (1 + number) for number in range(12)]))
    assert "Nothing looks wrong, over 12 recorded steps." in page


def test_gaps_are_told_once_for_all_steps(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "gaps")
    for number in range(5):
        writer.write_gap(number, 1.0, GapRecord("queue", "", f"step {number} was left out: the queue was full"))
    writer.close()
    words = " ".join(read(report(writer.path)).words)
    assert words.count("step … was left out: the queue was full: queue") == 1


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "broken")
    for number, value in enumerate([1.0, float("nan"), float("inf"), 2.0]):
        writer.write_metrics(number, "", 1.0, {"loss": value, "all": float("nan")})
    writer.close()
    page = report(writer.path)
    assert "No finite value was recorded." in page
    drawn = " ".join(re.findall(r' d="([^"]*)"', page))
    assert "nan" not in drawn and "inf" not in drawn


def test_damage_is_told_and_does_not_stop_it(tmp_path: Path) -> None:
    path = write(tmp_path)
    file = next(file for file in sorted(path.rglob("*stats*")) if file.is_file())
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 255
    file.write_bytes(data)
    assert "damaged" in report(path)


# The command


def test_the_command_writes_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, file = write(tmp_path), tmp_path / "out.html"
    assert main(["report", str(path), "-o", str(file)]) == 0
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "out.html" in capsys.readouterr().out
    assert [entry.name for entry in tmp_path.glob("*unfinished*")] == []


@pytest.mark.parametrize(
    ("output", "said"), [("", "is a folder"), ("nowhere/report.html", "There is no folder"), ("x.html", "nothing at")]
)
def test_mistakes_are_explained(tmp_path: Path, output: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "missing" if output == "x.html" else write(tmp_path)
    assert main(["report", str(path), "-o", str(tmp_path / output)]) == 1
    assert said in capsys.readouterr().err


def test_no_torch_is_needed(tmp_path: Path) -> None:
    path = write(tmp_path)
    code = (
        "import sys; sys.modules['torch'] = None\n"
        f"from endoscope.cli import main; sys.exit(main(['report', {json.dumps(str(path))}, "
        f"'-o', {json.dumps(str(tmp_path / 'r.html'))}]))"
    )
    result = run_python(code)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "r.html").stat().st_size > 10_000
