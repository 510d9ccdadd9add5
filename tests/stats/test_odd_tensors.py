"""Tensors of every kind are measured or named as gaps; nothing raises."""

import math
import threading

import numpy as np
import pytest
import torch

from endoscope.schema.stats import NUMBERS
from endoscope.stats import Request, kernels, measure
from endoscope.stats.measuring import SAMPLE_CAP
from tests.stats import compare, twin


class Labelled(torch.Tensor):
    """A subclass that keeps its numbers in ordinary memory."""


class Wrapper(torch.Tensor):
    """A subclass that has no memory of its own."""

    @staticmethod
    def __new__(cls) -> "Wrapper":
        return torch.Tensor._make_wrapper_subclass(cls, (3, 4))

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return function(*(torch.zeros(3, 4) if isinstance(arg, Wrapper) else arg for arg in args), **(kwargs or {}))


def dense(tensor: torch.Tensor) -> list[float]:
    return twin.numbers_of(tensor)


MEASURED = {
    "0-d": lambda: (torch.tensor(3.5), [3.5]),
    "0-d integer": lambda: (torch.tensor(7), [7.0]),
    "empty": lambda: (torch.zeros(0, 4), []),
    "requires grad": lambda: (torch.tensor([1.0, 2.0], requires_grad=True), [1.0, 2.0]),
    "not a leaf": lambda: (torch.tensor([1.0, 2.0], requires_grad=True) * 2, [2.0, 4.0]),
    "parameter": lambda: (torch.nn.Parameter(torch.ones(2)), [1.0, 1.0]),
    "subclass": lambda: (torch.tensor([1.0, -2.0]).as_subclass(Labelled), [1.0, -2.0]),
    "coo": lambda: (torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(), [0.0, 2.0, 3.0, 0.0]),
    "coo, not coalesced": lambda: (
        torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.tensor([2.0, 3.0]), (3,), check_invariants=True),
        [0.0, 5.0, 0.0],
    ),
    "csr": lambda: (torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr(), [0.0, 2.0, 3.0, 0.0]),
    "quantised": lambda: (torch.quantize_per_tensor(torch.tensor([0.5, 1.0]), 0.5, 0, torch.qint8), [0.5, 1.0]),
    "negated view": lambda: (torch.tensor([1 + 2j, 3 - 4j]).conj().imag, [-2.0, 4.0]),
    "conjugated view": lambda: (torch.tensor([3 + 4j]).conj(), [5.0]),
    "zero without memory": lambda: (torch._efficientzerotensor((3,)), [0.0, 0.0, 0.0]),
    "mkldnn": lambda: (torch.tensor([1.0, 2.0]).to_mkldnn(), [1.0, 2.0]),
    "in inference mode": lambda: (inference(), [1.0, 2.0]),
    "infinite complex": lambda: (torch.tensor([complex(math.inf, math.nan), complex(0, 1)]), [math.inf, 1.0]),
    "copy on write": lambda: (torch._lazy_clone(torch.tensor([1.0, 2.0])), [1.0, 2.0]),
    "batch dimension out of range": lambda: (torch.ones(2), [1.0, 1.0]),
}


def inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.tensor([1.0, 2.0])


def without_memory(tensor: torch.Tensor) -> torch.Tensor:
    tensor.untyped_storage().resize_(0)
    return tensor


@pytest.mark.parametrize("kind", MEASURED)
@pytest.mark.parametrize("batch_dim", [None, 0, 5, -7])
def test_measured(kind: str, batch_dim: int | None) -> None:
    tensor, numbers = MEASURED[kind]()
    measured = measure([Request(tensor, batch_dim)])
    assert measured.gaps == []
    compare.assert_same(compare.row(measured, 0), twin.whole(numbers), precision=compare.SINGLE)


GAPS = {
    "meta": (lambda: torch.zeros(3, 4, device="meta"), 12, "meta device"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), 5, "nested"),
    "wrapper": (Wrapper, 12, "Wrapper, which computes its numbers in its own way"),
    "huge and sparse": (
        lambda: torch.sparse_coo_tensor(
            torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0), (2**29,), check_invariants=True
        ),
        2**29,
        "sparse and would have 536870912 elements",
    ),
    "memory given back": (lambda: without_memory(torch.ones(4)), 4, "memory was freed"),
    "memory of a view given back": (lambda: without_memory(torch.ones(9)[3:]), 6, "memory was freed"),
    "packed floats": (lambda: torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2), 4, "could not read"),
}


@pytest.mark.parametrize("kind", GAPS)
def test_named_as_gaps(kind: str) -> None:
    make, count, words = GAPS[kind]
    measured = measure([Request(torch.ones(2), 0), Request(make(), 0), Request(torch.ones(3), 0)])
    assert [number for number, _ in measured.gaps] == [1]
    assert words in measured.gaps[0][1]
    assert measured.whole["count"].tolist() == [2, count, 3]
    assert all(np.isnan(measured.whole[name][1]) for name in NUMBERS)
    assert measured.whole["mean"][[0, 2]].tolist() == [1.0, 1.0]
    assert measured.sample_request.tolist() == [0, 0, 2, 2, 2]


def test_under_a_transform_of_torch_func() -> None:
    seen = []

    def measured(x: torch.Tensor) -> torch.Tensor:
        seen.append(measure([Request(x, 0)]))
        return x * 2

    torch.vmap(measured)(torch.randn(4, 3))
    assert [number for number, _ in seen[0].gaps] == [0]


def test_something_that_is_no_tensor() -> None:
    measured = measure([Request("a string", 0), Request(torch.ones(1), 0)])  # type: ignore[arg-type]
    assert [number for number, _ in measured.gaps] == [0]
    assert measured.whole["count"].tolist() == [0, 1]


def test_more_samples_than_are_kept() -> None:
    measured = measure([Request(torch.ones(SAMPLE_CAP + 1, 2), 0)])
    assert measured.gaps == [] and len(measured.sample_request) == 0
    assert measured.notes == [(0, f"it has {SAMPLE_CAP + 1} samples, which were not measured one by one: "
                                  f"the limit is {SAMPLE_CAP}")]  # fmt: skip
    assert measured.whole["count"].tolist() == [2 * (SAMPLE_CAP + 1)]
    assert measured.unit_shape == [(2,)]


def test_nothing() -> None:
    measured = measure([])
    assert measured.whole["mean"].tolist() == [] and measured.hist_offsets.tolist() == [0]
    assert measured.unit_offsets.tolist() == [0] and measured.sample_index.tolist() == []


def test_a_gradient_that_is_an_expanded_scalar() -> None:
    seen = []
    x = torch.zeros(50, 70, requires_grad=True)
    y = x * 1
    y.register_hook(seen.append)
    y.sum().div(3500).backward()
    assert seen[0].stride() == (0, 0)
    measured = measure([Request(seen[0], 0)])
    assert measured.whole["mean"] == measured.whole["max"] == pytest.approx(1 / 3500)
    assert measured.whole["std"] == 0 and set(measured.units["std"].tolist()) == {0.0}


def test_a_processor_that_takes_subnormal_numbers_for_zeros() -> None:
    numbers = torch.tensor([1e-39, -1e-40, 1e-45, 0.0, 1.0]).repeat(50)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot")
    try:
        flushed = measure([Request(numbers, None)], threads=1)
    finally:
        torch.set_flush_denormal(False)
    assert flushed.whole["zeros"] == 200 and sum(compare.histogram_of(flushed, 0)) == 250
    after = measure([Request(numbers, None)])  # nothing was left behind
    assert after.whole["zeros"] == 50
    assert compare.histogram_of(after, 0) == twin.histogram(numbers.tolist())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_tensor_that_is_written_while_it_is_measured(dtype: torch.dtype) -> None:
    """The numbers are then anybody's guess, but it does no harm, and the next tensor is right."""
    tensor, stop = torch.randn(300, 3000, dtype=dtype), threading.Event()
    tiny = torch.randn(300, 3000, dtype=dtype).mul_(10).exp_()

    def write() -> None:
        while not stop.is_set():
            tensor.normal_()
            tensor.fill_(math.nan)
            tensor.zero_()
            tensor.copy_(tiny)

    ours, writer = kernels.load(), threading.Thread(target=write)
    assert ours is not None
    writer.start()
    try:
        for _ in range(60):
            measure([Request(tensor, 0), Request(tensor[:4, :900], None)], threads=1)
            assert not any(memory[: ours.counter_bytes].any() for memory in ours.idle)
    finally:
        stop.set()
        writer.join()
    tensor.fill_(1.0)
    measured = measure([Request(tensor, 0)], threads=1)
    assert compare.histogram_of(measured, 0)[193] == measured.hist_values.sum() == tensor.numel()


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_large_numbers_of_both_signs_leave_a_small_mean(dtype: torch.dtype) -> None:
    tensor = torch.tensor([2**62, 1, 2, 3, 4, 5, -(2**62), 6, 7], dtype=dtype)
    assert measure([Request(tensor, None)]).whole["mean"] == pytest.approx(28 / 9, rel=1e-15)
