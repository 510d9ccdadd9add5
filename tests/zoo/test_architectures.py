"""`endoscope.validate` holds on published architectures, built small and with random weights."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers", minversion="5.0")

import torch

import endoscope
from tests.zoo.architectures import ALL, ARCHITECTURES, KNOWN_LIMITS

SHOWN_FAILURES = 5


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_validate_holds(name: str, request: pytest.FixtureRequest) -> None:
    if name in KNOWN_LIMITS:
        request.applymarker(pytest.mark.xfail(reason=KNOWN_LIMITS[name]))
    model, inputs = ARCHITECTURES[name].build()
    report = endoscope.validate(model, inputs)
    assert report, explain(report)


def explain(report: Any) -> str:
    shown = [str(failure) for failure in report.failures[:SHOWN_FAILURES]]
    return "\n".join([f"{len(report.failures)} failures, {report.checked} checked", *shown])


def test_names_are_unique_and_limits_name_existing_rows() -> None:
    assert len(ARCHITECTURES) == len(ALL)
    assert KNOWN_LIMITS.keys() <= ARCHITECTURES.keys()


def test_there_are_enough_architectures() -> None:
    assert len(ARCHITECTURES) - len(KNOWN_LIMITS) >= 65


@pytest.mark.parametrize("family", sorted({architecture.family for architecture in ALL}))
def test_build_gives_the_same_model_and_inputs_each_time(family: str) -> None:
    architecture = next(one for one in ALL if one.family == family)
    torch.manual_seed(1)
    first_model, first_inputs = architecture.build()
    torch.manual_seed(2)
    second_model, second_inputs = architecture.build()
    torch.testing.assert_close(first_inputs, second_inputs, rtol=0, atol=0)
    torch.testing.assert_close(first_model.state_dict(), second_model.state_dict(), rtol=0, atol=0)


def test_build_leaves_the_random_stream_alone() -> None:
    before = torch.get_rng_state()
    ARCHITECTURES["bert"].build()
    assert torch.equal(before, torch.get_rng_state())
