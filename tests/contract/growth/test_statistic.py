"""A statistic of somebody's own, from its function to the page: one file, and nothing else is changed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from starlette.testclient import TestClient

import endoscope
from endoscope import errors, stats
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.registry import forget, register
from endoscope.report.build import report
from endoscope.schema.stats import WHOLE, Statistic
from endoscope.server.app import create
from endoscope.server.library import Library
from tests.contract.growth.plug_in import TRAIN, install, run, train

PLUG_IN = '''
import math

import endoscope


def slowly(numbers):
    mean = math.fsum(numbers) / len(numbers)
    around = [x - mean for x in numbers]
    variance = math.fsum(x**2 for x in around) / len(around)
    return math.fsum(x**4 for x in around) / len(around) / variance**2 if variance else math.nan


@endoscope.statistic("tailedness", label="heavy tails", scale="diverging", twin=slowly)
def tailedness(numbers):
    """3 for a normal distribution."""
    around = numbers.double() - numbers.double().mean()
    return (around**4).mean() / (around**2).mean() ** 2
'''


@pytest.fixture
def tailedness() -> Iterator[Statistic]:
    names: dict[str, Statistic] = {}
    exec(PLUG_IN, names)
    yield names["tailedness"]
    names["tailedness"].forget()
    assert "tailedness" not in WHOLE


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with the statistic, made by a process that has the plug-in; this one has not."""
    folder = tmp_path_factory.mktemp("tailedness")
    site = install(folder, PLUG_IN)
    done = run(site, "-W", "error", "-c", TRAIN, str(folder / "runs"))
    assert done.returncode == 0, done.stderr
    return folder / "runs"


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(40, 30), torch.tensor([1.0, math.nan, 2.0, math.inf, 5.0, -math.inf]), torch.arange(7),
        torch.randn(4, 5, dtype=torch.float64).t(), torch.randn(20).bfloat16(), torch.randn(9, dtype=torch.complex64),
        torch.randn(6, 6).to_sparse(),
    ],
)  # fmt: skip
def test_it_is_its_slow_twin(tensor: torch.Tensor, tailedness: Statistic) -> None:
    found = stats.measure([stats.Request(tensor, None)])
    numbers = tensor.to_dense().detach()
    plain = (numbers.abs() if numbers.is_complex() else numbers).double().flatten().tolist()
    assert tailedness.twin is not None
    expected = tailedness.twin([x for x in plain if math.isfinite(x)])
    assert found.whole["tailedness"].tolist() == [pytest.approx(expected, rel=1e-5)]


@pytest.mark.usefixtures("tailedness")
def test_where_there_are_no_numbers_it_is_not_asked() -> None:
    odd = [torch.empty(0, 3), torch.full((2,), math.nan), torch.ones(3, device="meta"), torch.ones(4)]
    found = stats.measure([stats.Request(tensor, None) for tensor in odd])
    assert [math.isnan(value) for value in found.whole["tailedness"]] == [True] * 4
    assert [number for number, _ in found.gaps] == [2] and not found.notes


@pytest.mark.usefixtures("tailedness")
def test_differences_and_tensors_with_two_names() -> None:
    one, other = torch.randn(50), torch.randn(50)
    both = [stats.Request(one, None, minus=other), stats.Request(one - other, None), stats.Request(one, None)]
    values = stats.measure([*both, stats.Request(one, None, same_as=2)]).whole["tailedness"].tolist()
    assert values[0] == pytest.approx(values[1]) and values[2] == values[3] != values[0]


def test_a_function_that_fails_is_a_gap_and_training_goes_on(tmp_path: Path) -> None:
    @endoscope.statistic("broken")
    def broken(numbers: torch.Tensor) -> torch.Tensor:
        return numbers[:2] if len(numbers) > 16 else numbers.nothing  # type: ignore[attr-defined, no-any-return]

    try:
        recording = endoscope.open(train(tmp_path, steps=2))
    finally:
        broken.forget()
    reasons = {gap.reason for gap in recording.gaps}
    assert any("statistic broken: ValueError: it returned a tensor of shape (2,)" in reason for reason in reasons)
    assert any("statistic broken: AttributeError" in reason for reason in reasons)
    assert len(recording.series("1", "std")) == 2 and all(map(math.isnan, recording.series("1", "broken").values))


def test_a_process_without_it_reads_it(recorded: Path) -> None:
    recording = endoscope.open(recorded / "first")
    series = recording.series("1", "tailedness")
    assert series.steps.tolist() == list(range(6)) and all(1 < value < 10 for value in series.values)
    at_once = recording.sql("select step, tailedness from stats where node = '1' and of = 'value' order by step")
    assert at_once.rows == list(zip(range(6), series.values.tolist(), strict=True))
    assert recording.statistics("1", 3)["tailedness"] == series.values[3]
    assert "tailedness" in recording.to_arrow().column_names
    assert (recording.tables.statistics[-1].name, recording.tables.statistics[-1].label) == (
        "tailedness",
        "heavy tails",
    )
    with pytest.raises(errors.LookupFailed, match=r"'tailednes' of a whole tensor\. Did you mean 'tailedness'"):
        recording.series("1", "tailednes")


def test_the_page_offers_and_shows_it(recorded: Path) -> None:
    with TestClient(create(Library(recorded)), base_url="http://127.0.0.1") as client:
        menu = client.get("/api/trials/first").json()["statistics"]
        assert menu[-1] == {
            "name": "tailedness", "label": "heavy tails", "scale": "diverging", "isCount": False, "ofSamples": False,
            "ofUnits": False,
        }  # fmt: skip
        for address in ("steps/3", "series?node=1&statistics=mean,tailedness", "heat?statistic=tailedness"):
            answer = client.get(f"/api/trials/first/{address}")
            assert answer.status_code == 200, (address, answer.text)
            assert b"tailedness" in answer.content or address.startswith("heat")


def test_the_report_draws_it_under_its_label(recorded: Path) -> None:
    def see(facts: Facts, limits: Limits) -> Iterator[Seen]:
        for tensor in facts.values.tensors:
            heavy = facts.values["tailedness"][tensor.row] > 1
            yield Seen(
                severity="warning", title="odd", detail="", value=1, threshold=0, tensor=tensor,
                **facts.steps_where(heavy),
            )  # fmt: skip

    register(Check(name="odd_tails", description="", stage=Stage.FORWARD, run=see, evidence=Evidence(("tailedness",))))
    try:
        page = report(recorded / "first")
    finally:
        forget("odd_tails")
    assert "heavy tails of" in page


@pytest.mark.usefixtures("tailedness")
def test_rules_and_triggers_know_it(recorded: Path) -> None:
    with endoscope.anomaly("tails", "1: tailedness > 1"):
        found = endoscope.diagnose(recorded / "first", checks=["tails"])
    assert [one.node for one in found] == ["1"]


def test_a_rule_in_a_file_knows_that_of_an_installed_plug_in(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "endoscope.toml").write_text('[anomalies]\ntails = "1: tailedness > 1"\n', encoding="utf-8")
    command = ("-m", "endoscope", "check", str(recorded / "first"), "--only", "tails")
    done = run(install(tmp_path, PLUG_IN), *command, folder=tmp_path)
    assert done.returncode == 1 and "tails" in done.stdout, done.stderr
    assert "there is no statistic 'tailedness'" in run(None, *command, folder=tmp_path).stderr


def test_a_function_sees_it_where_nobody_registered_it(recorded: Path) -> None:
    with endoscope.anomaly("tails", lambda look: look.statistics["tailedness"] > 1, nodes="1"):
        found = endoscope.diagnose(recorded / "first", checks=["tails"])
    assert [one.node for one in found] == ["1"]


def test_older_recordings_show_a_gap_alone_and_in_a_folder(recorded: Path, tmp_path: Path) -> None:
    old = train(recorded, "old", steps=3)
    assert "tailedness" not in [one.name for one in endoscope.open(old).tables.statistics]
    rows = endoscope.open(recorded).sql("select trial, count(tailedness) from stats group by trial order by trial").rows
    assert rows[0][0] == "first" and rows[0][1] > 0 and rows[1] == ("old", 0)
    with TestClient(create(Library(recorded)), base_url="http://127.0.0.1") as client:
        known = [one["name"] for one in client.get("/api/trials/old").json()["statistics"]]
        assert "q99" in known and "tailedness" not in known
        answer = client.get("/api/trials/old/series?node=1&statistics=tailedness")
        assert answer.status_code == 404 and "There is no statistic 'tailedness'" in answer.json()["error"]


@pytest.mark.parametrize("name", ["mean", "hist", "step", "2nd", "Tailedness", "", "lambda", "a b", None])
def test_names_that_columns_cannot_have(name: str) -> None:
    with pytest.raises(errors.BadArgument, match=r"is taken|is not valid for a statistic"):
        endoscope.statistic(name)


def test_it_cannot_come_while_a_run_writes(tmp_path: Path) -> None:
    with endoscope.Run(tmp_path, trial="first"), pytest.raises(errors.BadArgument, match="Register statistics before"):
        endoscope.statistic("late")(lambda numbers: numbers.mean())
    endoscope.statistic("late")(lambda numbers: numbers.mean()).forget()


def test_the_description_in_a_recording_may_be_damaged(tmp_path: Path) -> None:
    path = train(tmp_path, "first", steps=2)
    labels = [one.label for one in endoscope.open(path).tables.statistics]
    about = json.loads((path / "trial.json").read_text(encoding="utf-8"))
    about["statistics"] = {"std": 3, "tailedness": [1], "x": {"scale": "sideways"}}
    (path / "trial.json").write_text(json.dumps(about), encoding="utf-8")
    assert [one.label for one in endoscope.open(path).tables.statistics] == labels
