"""Object files that cannot be loaded are refused, never run."""

import platform
import struct
import sys

import pytest

from endoscope.stats import cache, compiled, machine_code, warm

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64", reason="object files of x86-64 on Linux"
)


@pytest.fixture(scope="module")
def kernels() -> tuple[str, bytes]:
    warm()
    kept = cache.read(compiled.key())
    assert kept is not None
    return kept


def test_the_kernels_are_loaded(kernels: tuple[str, bytes]) -> None:
    symbol, code = kernels
    assert machine_code.load(code, symbol).address > 0


def test_another_machine(kernels: tuple[str, bytes]) -> None:
    symbol, code = kernels
    with pytest.raises(machine_code.Unsupported, match="machine 183"):
        machine_code.load(code[:18] + struct.pack("<H", 183) + code[20:], symbol)


@pytest.mark.parametrize("size", [0, 3, 40, 63, 5000])
def test_a_file_that_is_cut_off(kernels: tuple[str, bytes], size: int) -> None:
    with pytest.raises(machine_code.Unsupported):
        machine_code.load(kernels[1][:size], kernels[0])


def test_a_function_that_is_not_there(kernels: tuple[str, bytes]) -> None:
    with pytest.raises(machine_code.Unsupported, match="no function nothing"):
        machine_code.load(kernels[1], "nothing")


def test_a_call_to_something_unknown(kernels: tuple[str, bytes]) -> None:
    symbol, code = kernels
    assert b"\0memset\0" in code
    with pytest.raises(machine_code.Unsupported, match="calls system"):
        machine_code.load(code.replace(b"\0memset\0", b"\0system\0"), symbol)


def test_a_relocation_of_another_kind(kernels: tuple[str, bytes]) -> None:
    """The type stands in the lower half of the second number of an entry."""
    symbol, code = kernels
    loader = machine_code._Loader(code)
    table = next(s for s in loader._sections if s.type == 4 and loader._sections[s.info].flags & 4)  # of code
    changed = bytearray(code)
    struct.pack_into("<I", changed, table.offset + 8, 42)
    with pytest.raises(machine_code.Unsupported, match="type 42"):
        machine_code.load(bytes(changed), symbol)
