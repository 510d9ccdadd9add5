"""Copies of tensors that are about to be overwritten."""

from __future__ import annotations

import torch

from endoscope.stats import copy_tensors


def _odd_and_ordinary() -> list[torch.Tensor]:
    numbers = torch.Generator().manual_seed(3)
    large = torch.randn(64, 64, generator=numbers)
    return [
        large,
        large.double(),
        large.to(torch.bfloat16),
        torch.nn.Parameter(torch.randn(33, 64, generator=numbers)),
        torch.randn(1000, generator=numbers),  # no whole number of lines
        torch.randn(5, generator=numbers),
        torch.randn((), generator=numbers),
        torch.empty(0),
        torch.randn(64, 64, generator=numbers).t(),
        torch.randn(8, 3, 32, 32, generator=numbers).to(memory_format=torch.channels_last),
        torch.randn(100_000, generator=numbers)[16:],
        torch.full((64, 64), torch.nan),
        torch.full((64, 64), -0.0),
        torch.randn(40, 40, dtype=torch.complex64, generator=numbers).conj(),
        torch.randint(0, 9, (64, 64), generator=numbers),
        torch.ones(64, 64, dtype=torch.bool),
    ]


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype is b.dtype and a.shape == b.shape and a.detach().tolist().__repr__() == b.tolist().__repr__()


def test_copies_are_equal_bit_by_bit() -> None:
    sources = _odd_and_ordinary()
    targets = [torch.full_like(source, 7, requires_grad=False) for source in sources]
    copy_tensors(sources, targets)
    assert all(_same_bits(source, target) for source, target in zip(sources, targets, strict=True))


def test_nothing_beside_the_target_is_written() -> None:
    room = torch.full((4096 + 64,), 5.0)
    target = room[32 : 32 + 4096]
    copy_tensors([torch.zeros(4096)], [target])
    assert not target.any()
    assert (room[:32] == 5).all()
    assert (room[32 + 4096 :] == 5).all()


def test_a_target_that_begins_anywhere() -> None:
    room = torch.full((4096 + 64,), 5.0)
    copy_tensors([torch.arange(4096.0)], [room[3 : 3 + 4096]])
    assert torch.equal(room[3 : 3 + 4096], torch.arange(4096.0))


def test_autograd_is_not_told() -> None:
    source = torch.nn.Parameter(torch.randn(64, 64))
    (source * 2).sum().backward()
    target, version = torch.empty(64, 64), source._version
    copy_tensors([source], [target])
    assert not target.requires_grad
    assert source._version == version


def test_memory_that_was_given_back_is_not_read() -> None:
    gone = torch.randn(64, 64)
    gone.untyped_storage().resize_(0)
    target = torch.ones(64, 64)
    small, small_target = torch.randn(3), torch.empty(3)
    assert copy_tensors([small, gone], [small_target, target]) == [1]
    assert (target == 1).all()
    assert torch.equal(small, small_target)
