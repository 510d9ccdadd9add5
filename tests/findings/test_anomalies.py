"""Own anomalies over recordings: rules, functions, lines in endoscope.toml; against a slow look at every number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import endoscope
from endoscope.analysis.user_rules import anomalies
from endoscope.errors import BadArgument, LookupFailed
from endoscope.findings import silence
from tests.findings.runs import blobs, classifier, train


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At steps 5 and 6 one sample is ten times too large."""

    def batches(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, labels = blobs(step)
        if step in (5, 6):
            inputs[3] *= 10
        return inputs, labels

    torch.manual_seed(0)
    return train(tmp_path_factory.mktemp("anomalies"), classifier(), batches=batches, steps=12)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    anomalies.clear()
    yield
    anomalies.clear()


def found_by(path: Path, *rules: object) -> list[endoscope.findings.finding.Finding]:  # type: ignore[name-defined]
    return endoscope.diagnose(path, checks=[], anomalies=[anomalies.make(f"rule {n}", r) for n, r in enumerate(rules)])


def test_a_rule_becomes_a_finding(path: Path) -> None:
    endoscope.anomaly("big X", "input: abs_max > 10", severity="error")
    found = [one for one in endoscope.diagnose(path) if one.check == "big X"]
    assert len(found) == 1
    one = found[0]
    assert (one.severity, one.node, one.first_step, one.last_step, one.threshold) == ("error", "input", 5, 6, 10.0)
    recording = endoscope.open(path)
    assert one.value == pytest.approx(max(recording.statistics("input", step)["abs_max"] for step in (5, 6)))
    assert one.source.rpartition(":")[0].endswith("runs.py")
    assert "step=5" in one.link and "node=input" in one.link
    assert "2 of 12 recorded steps" in one.detail


def test_samples_are_named(path: Path) -> None:
    one = found_by(path, "input: sample.abs_max > 10")[0]
    assert (one.first_step, one.last_step, one.samples) == (5, 6, (3,))


@pytest.mark.parametrize(
    ("rule", "node", "of", "statistic", "sign"),
    [
        ("0: std > {}", "0", "value", "std", ">"),
        ("0.weight: norm > {}", "0.weight", "value", "norm", ">"),
        ("0.weight of=update: abs_mean > {}", "0.weight", "update", "abs_mean", ">"),
        ("1 of=gradient: norm < {}", "1", "gradient", "norm", "<"),
        ("1: q95 > {}", "1", "value", "q95", ">"),
        ("1: {} < zeros", "1", "value", "zeros", ">"),
    ],
)
def test_rules_against_reading_each_number(
    path: Path, rule: str, node: str, of: str, statistic: str, sign: str
) -> None:
    series = endoscope.open(path).series(node, statistic, of=of)
    limit = float(np.median(series.values)) + 1e-6
    true = series.values > limit if sign == ">" else series.values < limit
    assert 0 < true.sum() < len(true), "the case tells nothing"
    one = found_by(path, rule.format(limit))[0]
    steps = series.steps[true]
    assert (one.node, one.first_step, one.last_step) == (node, steps[0], steps[-1])
    extreme = series.values[true].max() if sign == ">" else series.values[true].min()
    assert one.value == pytest.approx(extreme, rel=1e-6) and one.threshold == pytest.approx(limit)


def test_per_sample_rules_against_reading_each_number(path: Path) -> None:
    recording = endoscope.open(path)
    limit = 3.0
    slow = []
    for step in recording.steps:
        samples, whole = recording.samples("0", step.number), recording.statistics("0", step.number)
        for sample, norm in zip(samples["sample"], samples["norm"], strict=True):
            if norm > limit * whole["std"] and norm > 1:
                slow.append((step.number, int(sample)))
    one = found_by(path, f"0: sample.norm > {limit} * std and sample.norm > 1")[0]
    assert slow and one.first_step == slow[0][0] and one.last_step == slow[-1][0]
    assert one.samples == tuple(sample for step, sample in slow if step == slow[0][0])
    assert f"in {len(slow)} samples" in one.detail


def test_functions(path: Path) -> None:
    looks = []

    def big(look: anomalies.Look) -> bool:
        looks.append((look.node, look.of, look.step, look.kind, look.type))
        return look.statistics["abs_max"] > 10

    def big_samples(look: anomalies.Look) -> np.ndarray:
        return look.samples["abs_max"] > 10

    whole = endoscope.anomaly("whole", big, nodes="input")
    samples = endoscope.anomaly("samples", big_samples, nodes="kind:input")
    by_name = {one.check: one for one in endoscope.diagnose(path, anomalies=[whole, samples])}
    assert (by_name["whole"].first_step, by_name["whole"].last_step, by_name["whole"].samples) == (5, 6, ())
    assert (by_name["samples"].first_step, by_name["samples"].samples) == (5, (3,))
    assert looks == [("input", "value", step, "input", "") for step in range(12)]


def test_a_function_that_raises_does_not_hide_others(path: Path) -> None:
    def broken(look: anomalies.Look) -> bool:
        return look.statistics["no such"] > 1

    endoscope.anomaly("broken", broken)
    endoscope.anomaly("fine", "input: abs_max > 10")
    by_name = {one.check: one for one in endoscope.diagnose(path)}
    assert by_name["broken"].severity == "info" and "there is no statistic 'no such'" in by_name["broken"].detail
    assert by_name["fine"].first_step == 5


def test_a_function_that_returns_too_much(path: Path) -> None:
    one = found_by(path, lambda look: np.ones((2, 2), dtype=bool))[0]
    assert one.severity == "info" and "array of shape (2, 2)" in one.detail


def test_a_rule_about_nothing_says_what_there_is(path: Path) -> None:
    one = found_by(path, "inputt: abs_max > 10")[0]
    assert one.severity == "info" and "means nothing that was recorded. Nearest nodes: 'input'" in one.detail


def test_the_registry(path: Path) -> None:
    first = endoscope.anomaly("big X", "input: abs_max > 10")
    second = endoscope.anomaly("big X", "input: abs_max > 1e9")  # takes its place
    assert not [one for one in endoscope.diagnose(path) if one.check == "big X"]
    first.forget()  # is not known any more: nothing happens
    assert anomalies.registered() == [second]
    with endoscope.anomaly("for a while", "input: abs_max > 10"):
        assert "for a while" in {one.check for one in endoscope.diagnose(path)}
    assert "for a while" not in {one.check for one in endoscope.diagnose(path)}
    assert {one.check for one in endoscope.diagnose(path, checks=[], anomalies=[first])} == {"big X"}
    assert endoscope.diagnose(path, checks=[], anomalies=[]) == []


def test_bad_registrations() -> None:
    with pytest.raises(BadArgument, match="has a name to report it by, not ''"):
        endoscope.anomaly("", "a: max > 1")
    with pytest.raises(BadArgument, match="none of 'info', 'warning', 'error'"):
        endoscope.anomaly("x", "a: max > 1", severity="fatal")
    with pytest.raises(BadArgument, match="is for functions"):
        endoscope.anomaly("x", "a: max > 1", nodes="b")
    assert anomalies.registered() == []


def test_names_of_checks_are_taken(path: Path) -> None:
    endoscope.anomaly("dead_units", "input: abs_max > 10")
    with pytest.raises(BadArgument, match="'dead_units' is the name of a check"):
        endoscope.diagnose(path)


def test_chosen_by_name(path: Path) -> None:
    endoscope.anomaly("big X", "input: abs_max > 10")
    assert {one.check for one in endoscope.diagnose(path, checks=["big X"])} == {"big X"}
    with pytest.raises(LookupFailed, match="There is no check 'big Y'"):
        endoscope.diagnose(path, checks=["big Y"])
    with pytest.raises(BadArgument, match="it takes what endoscope"):
        endoscope.diagnose(path, anomalies=["input: max > 1"])  # type: ignore[list-item]


def test_lines_in_a_file(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "endoscope.toml"
    file.write_text(
        '[anomalies]\n"big X" = "input: abs_max > 10"\n'
        'worse = {rule = "input: sample.abs_max > 10", severity = "error"}\n'
    )
    by_name = {one.check: one for one in endoscope.diagnose(path)}
    assert by_name["big X"].severity == "warning" and by_name["worse"].severity == "error"
    assert by_name["worse"].samples == (3,)
    file.write_text('[anomalies]\n"big X" = "input: abs_mox > 10"\n')
    with pytest.raises(
        BadArgument, match=r"endoscope.toml: 'big X': The rule cannot be read: .*did you mean 'abs_max'"
    ):
        endoscope.diagnose(path)
    for wrong in ('"big X" = 5', '"big X" = {rules = "input: max > 1"}'):
        file.write_text(f"[anomalies]\n{wrong}\n")
        with pytest.raises(BadArgument, match="is a rule, as in"):
            endoscope.diagnose(path)


def test_they_can_be_silenced(path: Path) -> None:
    endoscope.anomaly("big X", "input: abs_max > 10")
    try:
        silence.add(path, "big X", "input")
        assert "big X" not in {one.check for one in endoscope.diagnose(path)}
    finally:
        (path / "findings.json").unlink()
