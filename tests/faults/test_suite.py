"""The labelled runs are what they claim to be, and a few of them are diagnosed; benchmarks/findings.py takes all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import endoscope
from tests.faults import reading
from tests.faults.label import Case, Fault, Shown
from tests.faults.suite import CASES, CLASSES, half, kinds

pytest.importorskip("sklearn")

FAULTY = [one for one in CASES.values() if one.fault]
HEALTHY = [one for one in CASES.values() if not one.fault]

# One of each kind: a place in the forward pass, in the backward pass, a parameter, the loss, the data. All are of the
# half that may be tuned on: a red test must never be a reason to tune on the other one.
A_FEW = ["empty_sequence_transformer", "dying_relu_mlp", "rounding_cnn", "forgotten_parameters_mlp"]
A_FEW += ["sum_instead_of_mean_cnn", "bytes_mlp"]
A_FEW_HEALTHY = ["healthy_mlp_accumulation", "healthy_cnn_frozen_backbone", "healthy_mlp_warm_up"]


def names(cases: list[Case]) -> list[str]:
    return [one.name for one in cases]


@pytest.mark.parametrize("check", CLASSES)
def test_every_class_is_planted_in_two_architectures(check: str) -> None:
    assert len({one.architecture for one in kinds()[check]}) >= 2


def test_nothing_is_planted_that_is_no_class() -> None:
    assert set(kinds()) == {*CLASSES, "healthy"}
    assert all(set(one.fault.also) <= set(CLASSES) for one in FAULTY if one.fault)


def test_there_are_many_healthy_runs_of_every_architecture() -> None:
    assert len(HEALTHY) >= 20
    assert {one.architecture for one in HEALTHY} == {one.architecture for one in FAULTY}


def test_the_halves_are_apart_and_each_has_every_class() -> None:
    tune, report = half("tune"), half("report")
    assert not set(names(tune)) & set(names(report))
    assert sorted(names(tune) + names(report)) == sorted(CASES)
    assert {one.kind for one in tune} == {one.kind for one in report} == {*CLASSES, "healthy"}
    assert {*A_FEW, *A_FEW_HEALTHY} <= set(names(tune))


def test_every_run_says_what_it_is() -> None:
    assert not [one.name for one in CASES.values() if not one.description.endswith(".")]


@pytest.mark.parametrize(
    ("check", "node", "also", "right"),
    [
        ("dead_units", "act2", (), True),
        ("dead_units", "second.weight", (), True),  # a parameter of the module that was named
        ("dead_units", "first", ("act2",), True),  # one entry for several nodes
        ("dead_units", "", (), True),  # about the run as a whole
        ("dead_units", "act1", (), False),
        ("dead_units", "act20", (), False),
        ("saturated", "act2", (), False),
        ("zero_gradient", "second", (), True),  # another right word for it
    ],
)
def test_a_finding_must_name_the_check_and_the_place(check: str, node: str, also: tuple[str, ...], right: bool) -> None:
    fault = Fault("dead_units", Shown("", lambda recording: 0.0), ("act2", "second"), ("zero_gradient",))
    assert fault.is_named_by(SimpleNamespace(check=check, node=node, also=also)) is right


@pytest.mark.parametrize("name", A_FEW)
def test_a_planted_fault_is_seen_and_named_early(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = case.record(tmp_path)
    assert case.fault is not None
    assert case.fault.shown.holds(case.fault.shown.figure(endoscope.open(path)))
    findings = endoscope.diagnose(path)
    assert any(map(case.fault.is_named_by, findings[:3])), [str(one) for one in findings]


@pytest.mark.parametrize("name", A_FEW_HEALTHY)
def test_healthy_training_is_left_in_peace(name: str, tmp_path: Path) -> None:
    findings = endoscope.diagnose(CASES[name].record(tmp_path))
    assert not [str(one) for one in findings if one.severity != "info"]


@pytest.mark.slow
@pytest.mark.parametrize("case", FAULTY, ids=names(FAULTY))
def test_every_planted_fault_is_in_the_recorded_numbers(case: Case, tmp_path: Path) -> None:
    recording = endoscope.open(case.record(tmp_path))
    assert case.fault is not None
    value = case.fault.shown.figure(recording)
    assert case.fault.shown.holds(value), f"{case.fault.shown.what}: {value:g}, not {case.fault.shown.limit()}"
    assert set(case.fault.nodes) <= set(recording.nodes)


@pytest.mark.slow
@pytest.mark.parametrize("case", HEALTHY, ids=names(HEALTHY))
def test_every_healthy_run_learns(case: Case, tmp_path: Path) -> None:
    recording = endoscope.open(case.record(tmp_path))
    numbers = [values for name in recording.metrics if "loss" in name for values in [reading.metric(recording, name)]]
    assert numbers and all(np.isfinite(values).all() for values in numbers)
    if case.architecture != "gan":  # there, one network's gain is the other's loss
        assert reading.improvement(recording) < 0.8
