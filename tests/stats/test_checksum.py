"""The fast checksum is that of zlib, whatever the length and wherever the memory begins."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from endoscope.stats import checksum, compiled, crc32, warm

RANDOM = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _kernels() -> None:
    if warm() == "plain torch":
        pytest.fail("there are no kernels")


@pytest.mark.parametrize("length", [0, 1, checksum.WORTH - 1, checksum.WORTH, checksum.WORTH + 1, 100_003, 1_000_064])
@pytest.mark.parametrize("before", [0, 1, 0xDEADBEEF, 0xFFFFFFFF])
def test_equals_that_of_zlib(length: int, before: int) -> None:
    data = RANDOM.bytes(length)
    assert crc32(data, before) == zlib.crc32(data, before)


@pytest.mark.parametrize("start", range(1, 20, 3))
def test_memory_may_begin_anywhere(start: int) -> None:
    data = memoryview(RANDOM.bytes(70_000))[start:]
    assert crc32(data) == zlib.crc32(data)


def test_numbers_as_bytes() -> None:
    numbers = RANDOM.normal(size=(300, 200)).astype(np.float32)
    assert crc32(numbers.data.cast("B")) == zlib.crc32(numbers.tobytes())


def test_messages_in_parts() -> None:
    data, crc = RANDOM.bytes(500_000), 0
    for start, end in ((0, 40_000), (40_000, 40_001), (40_001, 300_007), (300_007, 500_000)):
        crc = crc32(data[start:end], crc)
    assert crc == zlib.crc32(data)


def test_one_bit_more_or_less_is_seen() -> None:
    data = bytearray(100_000)
    empty = crc32(memoryview(data))
    seen = set()
    for place in (0, 15, 16, 63, 64, 50_000, 99_999):
        data[place] ^= 1
        seen.add(crc32(memoryview(data)))
        data[place] ^= 1
    assert len(seen) == 7
    assert empty not in seen


def test_without_kernels_it_is_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_loaded", None)
    data = RANDOM.bytes(100_000)
    assert crc32(data) == zlib.crc32(data)


def test_a_processor_that_cannot_leaves_it_to_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes
    from dataclasses import replace

    def nothing_folded(table: int) -> None:
        ctypes.c_int64.from_address(table + 8).value = 0

    kernels = compiled.load()
    assert kernels is not None
    monkeypatch.setattr(compiled, "_loaded", replace(kernels, fold=nothing_folded))
    data = RANDOM.bytes(100_000)
    assert crc32(data, 7) == zlib.crc32(data, 7)
