"""Watch, never touch: measuring leaves no trace on tensors, on autograd, on random numbers, on torch."""

import random

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from endoscope.schema.stats import registered
from endoscope.stats import Request, measure, spectrum
from tests.stats.plain_torch import measure_with_torch


@pytest.fixture
def _swept_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statistic that is a function of the numbers costs calls for each tensor, whoever registered it."""
    swept = tuple(one for one in registered() if one.measure is None)
    monkeypatch.setattr("endoscope.stats.measuring.registered", lambda: swept)


WAYS = {"kernels": measure, "torch": measure_with_torch, "spectrum": lambda requests: spectrum(requests[0].tensor)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
def test_the_tensor_is_as_before(way: str, dtype: torch.dtype) -> None:
    leaf = torch.randn(20, 30).to(dtype).requires_grad_()
    tensor = leaf * 2
    copy, version, graph = tensor.detach().clone(), tensor._version, tensor.grad_fn
    WAYS[way]([Request(tensor, 0), Request(leaf, None), Request(tensor.detach().t(), 1)])
    assert torch.equal(tensor, copy) and tensor._version == version and leaf._version == 0
    assert tensor.requires_grad and leaf.requires_grad and tensor.grad_fn is graph and leaf.grad is None
    tensor.abs().sum().backward()
    assert leaf.grad is not None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_modes_and_random_numbers_are_as_before(way: str, mode: type) -> None:
    tensor = torch.randn(30, 40)
    states = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())
    default, threads = torch.get_default_dtype(), torch.get_num_threads()
    with mode():
        before = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        WAYS[way]([Request(tensor, 0)])
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == before
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (random.getstate(), repr(np.random.get_state())) == states[1:]
    assert (torch.get_default_dtype(), torch.get_num_threads()) == (default, threads)


def test_a_large_spectrum_leaves_random_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("endoscope.stats.singular.ALL_UP_TO", 10)
    tensor = torch.randn(40, 40)
    state = torch.get_rng_state()
    spectrum(tensor)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("way", WAYS)
def test_modes_of_other_people_hear_nothing(way: str) -> None:
    heard = []

    class Ear(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            heard.append(function)
            return function(*args, **(kwargs or {}))

    requests = [Request(torch.randn(5, 6), 0), Request(torch.randn(5, 6).half().t(), 1)]
    with Ear():
        WAYS[way](requests)
    assert heard == []


class Operations(TorchDispatchMode):
    """Notes every operation that reaches a device."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


@pytest.mark.usefixtures("_swept_only")
def test_the_kernels_run_no_operation_of_torch() -> None:
    with Operations() as seen:
        measure([Request(torch.nn.Parameter(torch.ones(4, 5)), None)])
    assert [name for name in seen.names if name not in ("ones", "detach", "alias")] == []


def test_torch_never_waits_for_a_single_number() -> None:
    """On another device each such wait would stop everything that is queued there."""
    requests = [Request(torch.randn(7, 900), 0), Request(torch.randn(30), None), Request(torch.randint(0, 9, (4,)), 0)]
    with Operations() as seen:
        measure_with_torch(requests)
    waits = {"_local_scalar_dense", "item", "nonzero", "is_nonzero", "masked_select", "unique", "equal", "bincount"}
    assert not waits & set(seen.names)


@pytest.mark.usefixtures("_swept_only")
def test_tensors_of_one_shape_share_all_calls() -> None:
    def calls(count: int) -> int:
        requests = [Request(torch.randn(7, 900), 0) for _ in range(count)]
        measure_with_torch(requests)
        with Operations() as seen:
            measure_with_torch(requests)
        return len(seen.names) - seen.names.count("detach")

    assert calls(1) == calls(20) < 150


def test_a_copy_on_write_tensor_is_not_copied() -> None:
    original = torch.randn(100)
    lazy = torch._lazy_clone(original)
    measure([Request(lazy, None)])
    assert torch._C._is_cow_tensor(lazy)
