"""The answer: columns of the right types and lengths, whole or joined, from one thread or several."""

import os
import threading

import numpy as np
import pytest
import torch

from endoscope.schema.stats import COUNTS, SAMPLE, UNIT, WHOLE
from endoscope.stats import Measured, Request, joined, measure, measure_part
from tests.stats import compare
from tests.stats.plain_torch import measure_with_torch


def requests() -> list[Request]:
    torch.manual_seed(0)
    return [
        Request(torch.randn(4, 6), 0),
        Request(torch.randn(10), None),
        Request(torch.zeros(3, 2, device="meta"), 0),
        Request(torch.randn(2, 3, 4), 1, samples=False),
        Request(torch.randn(5, 7).double(), 0, units=False),
    ]


def same(a: Measured, b: Measured) -> bool:
    """Bit for bit."""
    for name in Measured.__dataclass_fields__:
        x, y = getattr(a, name), getattr(b, name)
        if isinstance(x, dict):
            if list(x) != list(y) or any(x[key].tobytes() != y[key].tobytes() for key in x):
                return False
        elif isinstance(x, np.ndarray):
            if x.dtype != y.dtype or x.tobytes() != y.tobytes():
                return False
        elif x != y:
            return False
    return True


@pytest.mark.parametrize("way", [measure, measure_with_torch])
def test_types_and_lengths(way) -> None:  # type: ignore[no-untyped-def]
    measured = way(requests())
    assert list(measured.whole) == list(WHOLE)
    for name, column in measured.whole.items():
        assert column.dtype == (np.int64 if name in COUNTS else np.float64) and len(column) == 5
        assert column.flags.c_contiguous
    assert list(measured.samples) == list(SAMPLE) and list(measured.units) == list(UNIT)
    assert {column.dtype for column in (*measured.samples.values(), *measured.units.values())} == {np.dtype("f4")}
    assert measured.sample_request.tolist() == [0] * 4 + [4] * 5
    assert measured.sample_index.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4]
    assert {len(column) for column in measured.samples.values()} == {9}
    assert measured.unit_shape == [(6,), (), (), (2, 4), ()]
    assert measured.unit_offsets.tolist() == [0, 6, 6, 6, 14, 14]
    assert {len(column) for column in measured.units.values()} == {14}
    assert len(measured.hist_offsets) == 6 and measured.hist_offsets[-1] == len(measured.hist_values)
    kinds = [getattr(measured, name).dtype for name in ("hist_first", "hist_values", "hist_offsets")]
    assert kinds == [np.int16, np.uint32, np.int32]


@pytest.mark.parametrize("cut", range(6))
def test_joined_is_measured_together(cut: int) -> None:
    every = requests()
    assert same(joined([measure_part(every[:cut]), measure_part(every[cut:])]), measure(every))


def test_two_threads_find_the_same_as_one() -> None:
    torch.manual_seed(0)
    many = [Request(torch.randn(64, 100 + n), 0) for n in range(100)] + requests()
    assert sum(request.tensor.numel() for request in many) > 600_000
    assert same(measure(many, threads=1), measure(many, threads=2))


def test_several_threads_may_measure_at_the_same_time() -> None:
    every, answers = requests() * 20, []
    expected = measure(every)
    threads = [threading.Thread(target=lambda: answers.append(measure(every))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6 and all(same(answer, expected) for answer in answers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_can_measure() -> None:
    every = requests()
    expected = measure(every)
    child = os.fork()
    if child == 0:
        os._exit(0 if same(measure(every, threads=2), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_memory_that_changes_between_calls_is_read_again() -> None:
    tensor = torch.zeros(5, 6)
    first = measure([Request(tensor, 0)])
    tensor.fill_(3)
    assert compare.row(first, 0)["max"] == 0 and compare.row(measure([Request(tensor, 0)]), 0)["max"] == 3
