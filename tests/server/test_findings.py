"""Findings over HTTP: nobody waits for them, they follow a training, and what is silenced is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import endoscope
from endoscope.findings import silence
from endoscope.findings.silence import Silenced
from endoscope.server import checking
from endoscope.server.checking import Checking
from endoscope.server.custom_views.views import Views
from endoscope.server.findings_process import Checked
from endoscope.server.library import Library
from endoscope.server.live import Live
from endoscope.server.routes import findings as routes
from endoscope.store.writer import TrialWriter
from tests.findings.planted import FAULTS
from tests.store.made_up import step_record

PATIENCE_SECS = 60.0


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with dead units, recorded."""
    return FAULTS["dead_units"][0](tmp_path_factory.mktemp("faulty"))


@pytest.fixture
def here(faulty: Path, serve: Callable[..., TestClient]) -> tuple[TestClient, str, Path]:
    (faulty / silence.FILE).unlink(missing_ok=True)
    return serve(faulty.parent), f"/api/trials/{faulty.name}/findings", faulty


def finished(client: TestClient, address: str) -> dict[str, Any]:
    """Ask until all is known."""
    until = time.monotonic() + PATIENCE_SECS
    while time.monotonic() < until:
        answer: dict[str, Any] = client.get(address).json()
        if answer["checked"] and not answer["checking"]:
            return answer
        time.sleep(0.05)
    raise AssertionError("no findings came")


def test_the_first_question_does_not_wait_and_a_later_one_knows(here: tuple[TestClient, str, Path]) -> None:
    client, address, trial = here
    first = client.get(address).json()
    assert not first["checked"] and first["checking"] and first["findings"] == []
    answer = finished(client, address)
    expected = endoscope.diagnose(trial)
    assert [one["check"] for one in answer["findings"]] == [one.check for one in expected]
    assert answer["checks"] > 40 and answer["problem"] is None
    assert answer["steps"] == len(endoscope.open(trial).steps) and answer["lastStep"] == 11
    lead = answer["findings"][0]
    assert (lead["id"], lead["node"], lead["severity"]) == ("dead_units@1", "1", "error")
    assert (lead["firstStep"], lead["lastStep"]) == (expected[0].first_step, expected[0].last_step)
    assert lead["value"] == expected[0].value and lead["causes"] and lead["remedies"]
    assert [one["title"] for one in answer["findings"]] == [one.title for one in expected]
    assert (lead["strength"], lead["steps"]) == (expected[0].strength, expected[0].steps)
    usual = [one.usual and list(one.usual) for one in expected]
    assert [one["usual"] for one in answer["findings"]] == usual
    assert lead["link"].startswith("#v=1&") and lead["source"].endswith(expected[0].source)
    ids = [one["id"] for one in answer["findings"]]
    assert len(set(ids)) == len(ids) and {one["follows"] for one in answer["findings"]} <= {"", *ids}


def test_silencing_is_kept_beside_the_recording_and_can_be_taken_back(here: tuple[TestClient, str, Path]) -> None:
    client, address, trial = here
    before = finished(client, address)["findings"]
    answer = client.put(address, json={"check": "dead_units", "node": "1", "silenced": True}).json()
    assert silence.read(trial) == [Silenced("dead_units", "1")]
    assert "dead_units@1" not in [one["id"] for one in answer["findings"]]
    assert [one["id"] for one in answer["silenced"][0]["findings"]] == ["dead_units@1"]
    assert "dead_units" not in [one.check for one in endoscope.diagnose(trial)]
    answer = client.put(address, json={"check": "plateau", "node": None, "silenced": True}).json()
    assert [(one["check"], one["node"]) for one in answer["silenced"]] == [("dead_units", "1"), ("plateau", None)]
    for check, node in [("dead_units", "1"), ("plateau", None), ("plateau", None)]:
        answer = client.put(address, json={"check": check, "node": node, "silenced": False}).json()
    assert answer["silenced"] == [] and answer["findings"] == before and silence.read(trial) == []


@pytest.mark.parametrize(
    ("body", "kind", "status", "said"),
    [
        (b"{", "application/json", 400, "is no JSON"),
        (b"[" * 60_000, "application/json", 400, "is no JSON"),
        (b" " * 70_000, "application/json", 400, "at most"),
        (b"{}", "text/plain", 400, "application/json"),
        (b"{}", "application/json", 400, "an object like"),
        (b'{"check": 1, "node": null, "silenced": true}', "application/json", 400, "an object like"),
        (b'{"check": "plateau", "node": null, "silenced": 1}', "application/json", 400, "an object like"),
        (b'{"check": "platau", "node": null, "silenced": true}', "application/json", 404, "Nearest: 'plateau'"),
    ],
    ids=["torn", "deep", "large", "type", "empty", "number", "not yes or no", "unknown"],
)
def test_nonsense_is_refused(
    here: tuple[TestClient, str, Path], body: bytes, kind: str, status: int, said: str
) -> None:
    client, address, trial = here
    answer = client.put(address, content=body, headers={"content-type": kind})
    assert answer.status_code == status and said in answer.json()["error"]
    assert not (trial / silence.FILE).exists()


def test_another_page_may_not_silence(here: tuple[TestClient, str, Path]) -> None:
    client, address, trial = here
    wanted = {"check": "plateau", "node": None, "silenced": True}
    answer = client.put(address, json=wanted, headers={"origin": "http://elsewhere.example"})
    assert answer.status_code == 403 and not (trial / silence.FILE).exists()


def test_a_link_is_neither_read_nor_written_through(here: tuple[TestClient, str, Path], tmp_path: Path) -> None:
    client, address, trial = here
    outside = tmp_path / "outside.json"
    outside.write_text('{"silenced": [{"check": "dead_units"}]}')
    os.symlink(outside, trial / silence.FILE)
    assert client.get(address).json()["silenced"] == []
    wanted = {"check": "plateau", "node": None, "silenced": True}
    assert client.put(address, json=wanted).status_code == 200
    assert json.loads(outside.read_text()) == {"silenced": [{"check": "dead_units"}]}


def test_a_file_that_somebody_broke_is_named(here: tuple[TestClient, str, Path]) -> None:
    client, address, trial = here
    (trial / silence.FILE).write_text("{")
    answer = client.get(address)
    assert answer.status_code >= 400 and "does not say what is silenced" in answer.json()["error"]


def test_a_trial_that_is_not_there(here: tuple[TestClient, str, Path]) -> None:
    assert here[0].get("/api/trials/nobody/findings").status_code == 404


def test_names_tell_findings_apart_whatever_their_order() -> None:
    empty = {
        "severity": "info", "title": "", "detail": "", "first_step": 0, "last_step": 0, "types": (), "samples": (),
        "value": 0.0, "threshold": None, "strength": 1.0, "usual": None, "steps": 1, "source": "",
        "causes": (), "remedies": (), "link": "", "also": (),
    }  # fmt: skip
    findings: list[dict[str, Any]] = [
        {**empty, "check": "a", "node": "n", "role": "x", "of": "value", "follows": "b at n"},
        {**empty, "check": "a", "node": "n", "role": "y", "of": "value", "follows": "c at n"},
        {**empty, "check": "b", "node": "n", "role": "", "of": "value", "follows": ""},
        {**empty, "check": "p", "node": "", "role": "", "of": "value", "follows": ""},
    ]
    for some in (findings, findings[::-1]):
        found = {one["id"]: one["follows"] for one in routes.described(some)}
        assert found == {"a@n@x@value": "b@n", "a@n@y@value": "", "b@n": "", "p": ""}


class Counting:
    """Stands for the checks: says how often it was asked, and ends when it may."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self, trial: Path) -> Checked:
        self.calls += 1
        assert self.may_end.wait(PATIENCE_SECS)
        return {"findings": [], "checks": 1, "steps": 0, "lastStep": None, "seconds": 0.0, "problem": None}


def until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_SECS
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_trial_that_grows_is_checked_again_while_somebody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "PAUSE_SECS", 0.0)
    writer = TrialWriter.create(tmp_path, "one")
    writer.write_step(step_record(writer, 0))
    compute = Counting()
    library = Library(tmp_path)
    watched = Checking(library, compute)
    live = Live(library, Views(), watched)
    told = lambda: [news["trial"] for name, news in live.news() if name == "findings"]  # noqa: E731
    assert told() == [] and compute.calls == 0  # nobody has asked
    assert watched.look("one") == (None, True)
    until(lambda: watched.look("one")[0] is not None)
    assert compute.calls == 1 and told() == ["one"] and told() == []
    watched.look("one")
    writer.write_step(step_record(writer, 4))
    live.news()
    until(lambda: told() == ["one"])
    assert compute.calls == 2
    writer.write_step(step_record(writer, 8))
    assert told() == [] and compute.calls == 2  # nobody has asked for the last result
    silence.add(tmp_path / "one", "plateau")
    assert told() == ["one"]
    live.stop()
    writer.close()


def test_checks_rest_between_two_looks_and_never_run_twice_at_once(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "one")
    writer.write_step(step_record(writer, 0))
    compute = Counting()
    compute.may_end.clear()
    library = Library(tmp_path)
    watched = Checking(library, compute)
    for _ in range(5):
        assert watched.look("one") == (None, True)
    until(lambda: compute.calls == 1)
    compute.may_end.set()
    until(lambda: not watched.look("one")[1])
    writer.write_step(step_record(writer, 4))
    library.refresh()
    assert watched.look("one")[1] is False and compute.calls == 1  # too soon
    writer.close()
    library.refresh()
    assert watched.look("one")[1] is True  # the last word on a trial does not wait
    until(lambda: compute.calls == 2)
    watched.stop()


def test_checks_that_cannot_be_run_are_a_sentence(faulty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(trial: Path) -> Checked:
        raise RuntimeError("out of luck")

    watched = Checking(Library(faulty.parent), broken)
    watched.look(faulty.name)
    until(lambda: watched.look(faulty.name)[0] is not None)
    result, is_checking = watched.look(faulty.name)
    assert result is not None and "out of luck" in (result["problem"] or "") and not is_checking
    monkeypatch.setattr(checking.sys, "executable", str(faulty / "no python"))
    inside = checking.Checker().checked(faulty)  # beside the requests, if there is no other way
    assert inside["findings"][0]["check"] == "dead_units"


def test_the_process_needs_no_torch_and_answers_in_json_whatever_else_is_printed(tmp_path: Path) -> None:
    code = "import sys, endoscope.server.findings_process as p; p.main(); print('torch' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(str(tmp_path / "nothing")), text=True, capture_output=True,
        check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    answer = json.loads(found.stdout)
    assert "nothing" in answer["problem"] and answer["findings"] == []
    assert found.stderr.split()[-1] == "False"


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="sessions do not share the processor here")
@pytest.mark.parametrize(("is_own", "nice"), [(True, "nice 19"), (False, "nice 0")])
def test_the_process_gives_way_with_its_own_session_and_never_with_that_of_others(is_own: bool, nice: str) -> None:
    code = (
        "import os; from endoscope.server.findings_process import give_way; give_way();"
        "print(os.sched_getscheduler(0) == os.SCHED_IDLE, open('/proc/self/autogroup').read())"
    )
    if not is_own:  # a child of a session that was begun for it
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    assert endoscope.__file__ is not None
    environment = {**os.environ, "PYTHONPATH": str(Path(endoscope.__file__).parents[1])}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, start_new_session=True
    )
    assert found.stdout.startswith("True") and found.stdout.strip().endswith(nice), found
