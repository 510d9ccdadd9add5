r"""Text that is no valid Unicode is stored escaped, and never makes anything fail that reads it.

Half of a surrogate pair comes from JSON, from names of files and from broken decoders. No file of UTF-8 can hold it.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from endoscope.errors import BadArgument
from endoscope.query.recording import Recording
from endoscope.schema.recording import GapRecord, Key
from endoscope.server import app
from endoscope.server.custom_views.views import Views
from endoscope.server.library import Library
from endoscope.store.sealed import dump, seal, unseal
from endoscope.store.writer import TrialWriter
from tests.store.made_up import measured, step_record

HALF = "half \ud800 and \udfff"
ESCAPED = r"half \ud800 and \udfff"


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    writer = TrialWriter.create(tmp_path / "runs", "trial", config={HALF: [HALF]})
    key = writer.key_id(Key(HALF, role=HALF, of=f"gradient:{HALF}", module=HALF, source=HALF, shape=(4, 3)))
    writer.write_modules({"modules": [{"address": HALF}]})
    writer.write_step(
        step_record(writer, 0, type_=HALF, keys=[key], measured=measured(1), raw=[], why=HALF, categories=[HALF],
                    metrics={HALF: 1.0}, config={"a": HALF}, extra={HALF: 1}, gaps=[GapRecord(HALF, HALF, HALF)],
                    graph={"nodes": [{"node": HALF}], "edges": []})
    )  # fmt: skip
    writer.write_note(0, 0.0, HALF)
    writer.update_config({"later": HALF})
    writer.close()
    return writer.path


def test_everything_is_escaped(trial: Path) -> None:
    recording = Recording(trial)
    assert recording.config == {ESCAPED: [ESCAPED], "later": ESCAPED}
    assert recording.modules == {"modules": [{"address": ESCAPED}]}
    step = recording.steps[0]
    assert (step.type, step.why, step.categories, step.config, step.extra) == (
        ESCAPED, ESCAPED, (ESCAPED,), {"a": ESCAPED}, {ESCAPED: 1})  # fmt: skip
    assert recording.nodes[0] == ESCAPED and recording.losses == [ESCAPED] and list(recording.metrics) == [ESCAPED]
    assert recording.tensors_of(ESCAPED)[0].source == ESCAPED
    assert recording.notes[0].text == ESCAPED and recording.gaps[0] == (0, ESCAPED, ESCAPED, ESCAPED, step.time)
    assert recording.graph(0)["nodes"] == [{"node": ESCAPED}]
    assert len(recording.series(ESCAPED, "mean", of="gradient")) == 1
    assert recording.verify()
    for path in trial.rglob("*.json*"):
        assert json.dumps(json.loads(path.read_text().splitlines()[0]) if path.suffix == ".jsonl" else path.read_text())


def test_the_page(trial: Path) -> None:
    client = TestClient(app.create(Library(trial.parent), Views(None), None), base_url="http://127.0.0.1:6280")
    for address in ("", "/graphs/abc", "/tensors", "/notes", "/gaps", "/modules", "/metrics", "/steps/0"):
        answer = client.get(f"/api/trials/trial{address}")
        assert answer.status_code == 200, (address, answer.text)
    assert client.get("/api/start").status_code == client.get("/api/catalog").status_code == 200


@pytest.mark.skipif(os.name == "nt", reason="names of files are text there")
def test_a_folder_whose_name_is_no_text(trial: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(trial.parent) + b"/\xff"))
    trial.rename(odd)
    client = TestClient(app.create(Library(odd.parent), Views(None), None), base_url="http://127.0.0.1:6280")
    assert client.get("/api/catalog").status_code == 200


def test_the_name_of_a_trial_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match=r"it is not valid Unicode\. Try 'baseline-1'"):
        TrialWriter.create(tmp_path, "a\ud800")


@pytest.mark.parametrize("text", ["plain", "ä€😀", "\\ud800", "\\\\ud800 \\", '"\\ud83d', "😀\\"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert json.loads(dump({text: text})) == {text: text} == unseal(seal({text: text}))


def test_what_others_have_stored_unescaped() -> None:
    assert unseal(seal({"a": 1}).replace(b'"a"', b'"b"')) is None
    text = b'{"a":"\\ud800"'
    assert unseal(text + b',"crc":"%08x"}' % zlib.crc32(text)) == {"a": "\\ud800"}
