"""The compiled kernels: their library, and what they are handed.

kernels.c ─► build.py, when the package is built ─► libkernels.so ─► load ─► Kernels.work
"""

from __future__ import annotations

import ctypes
import warnings
from array import array
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from endoscope.errors import RecordingWarning
from endoscope.schema.stats import QUANTILES, SAMPLE, SWEPT, UNIT
from endoscope.stats import build

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The constants and structures of kernels.c, which explains them. A test compares both.
NO_UNITS, COLUMNS, RUNS = range(3)
FLOAT32, BFLOAT16, FLOAT16, BYTE, INT16, UINT16, COMPLEX64, COMPLEX32 = range(8)
FLOAT64, INT32, UINT32, INT64, UINT64, COMPLEX128 = range(8, 14)
EXACT_UP_TO = 4096
ENOUGH = 32_768
_LINE = 64  # bytes that come from memory at once: a job's memory begins with one


class Columns(ctypes.Structure):
    """Which statistics are asked for. In all three structures addresses are integers, too."""

    FIELDS = ("whole", "sample", "unit", "wholes", "samples", "units", "levels", "level_count")
    _fields_ = [(name, ctypes.c_int64) for name in FIELDS]


class Source(ctypes.Structure):
    """How a tensor is read, and where its answers go."""

    FIELDS = (
        "first_sample", "first_unit", "code", "lookup", "is_integer", "samples", "sample_stride", "sample_size",
        "dims", "dim_count", "unit_kind", "units",
    )  # fmt: skip
    _fields_ = [(name, ctypes.c_int64) for name in FIELDS]


class Job(ctypes.Structure):
    """Where everything is, for one running thread."""

    FIELDS = (
        "sources", "addresses", "minus", "columns", "requests", "whole", "histograms", "histogram_ends", "samples",
        "sample_rows", "units", "unit_rows", "scratch",
    )  # fmt: skip
    _fields_ = [(name, ctypes.c_int64) for name in FIELDS]


class Kernels:
    """The functions of the library for one kind of processor."""

    def __init__(self, library: ctypes.CDLL, variant: str) -> None:
        self.variant = variant
        self._measure = _function(library, "measure", variant, None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self._statistic = _function(library, "statistic", variant, ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64)
        self._scratch_bytes = _function(library, "scratch_bytes", variant, ctypes.c_int64)()
        self.counter_bytes = _function(library, "counter_bytes", variant, ctypes.c_int64)()
        self.idle: list[NDArray[np.uint8]] = []  # memory for running jobs; the counters in it are zero again
        first = self._statistic(b"", 0)
        levels = {name: first + place for place, name in enumerate(QUANTILES)}
        self._lists = [  # kept, because the kernels know their addresses
            np.array([levels[name] if name in levels else self._number(name, False) for name in SWEPT]),
            np.array([self._number(name, False) for name in SAMPLE]),
            np.array([self._number(name, True) for name in UNIT]),
            np.array(list(QUANTILES.values())),
        ]
        addresses, lengths = [address_of(column) for column in self._lists], [len(column) for column in self._lists]
        self.columns = Columns(*addresses[:3], *lengths[:3], addresses[3], lengths[3])

    def _number(self, name: str, of_unit: bool) -> int:
        number: int = self._statistic(name.encode(), int(of_unit))
        if number < 0:
            raise LookupError(f"kernels.c has no line for {name} in {'UNIT_' if of_unit else ''}STATISTICS")
        return number

    def work(self, fields: Sequence[int], rows: array[int], keep: object = None) -> None:
        """Measure the requests in some rows; `fields` are those of a `Job`, without its memory. `keep` stays alive."""
        try:
            memory = self.idle.pop()
        except IndexError:
            memory = np.zeros(self._scratch_bytes + _LINE, np.uint8)
            memory = memory[-address_of(memory) % _LINE :]
        job = Job(*fields, address_of(memory))
        self._measure(ctypes.addressof(job), rows.buffer_info()[0], len(rows))  # ctypes lets go of the GIL
        self.idle.append(memory)


def address_of(memory: NDArray[Any]) -> int:
    address: int = memory.__array_interface__["data"][0]
    return address


def _function(library: ctypes.CDLL, name: str, variant: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, f"{name}_{variant}")
    function.restype, function.argtypes = result, arguments
    return function


def variants() -> list[str]:
    """The variants in the library that this processor can run, the best one first."""
    library = ctypes.CDLL(str(build.LIBRARY))
    there = [name for name in build.VARIANTS if hasattr(library, f"runs_here_{name}")]
    return [name for name in there if _function(library, "runs_here", name, ctypes.c_int64)()]


def loaded(variant: str) -> Kernels:
    return Kernels(ctypes.CDLL(str(build.LIBRARY)), variant)


@cache
def load() -> Kernels | None:
    """The kernels, or None if they were not built; that is then said, once."""
    try:
        if not build.up_to_date():
            raise OSError("it is older than kernels.c" if build.LIBRARY.is_file() else "it was not built")
        return loaded(variants()[0])
    except Exception as problem:  # whatever is wrong with the library must not stop a training run
        warnings.warn(
            f"statistics are computed with plain torch calls, which is many times slower: the library "
            f"{build.LIBRARY} cannot be used: {problem}. Where there is a C compiler, this builds it:\n"
            f"    python {build.__file__}",
            RecordingWarning,
            stacklevel=2,
        )
        return None
