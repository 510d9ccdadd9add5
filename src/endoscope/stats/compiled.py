"""The compiled kernels, from the cache or freshly compiled.

load ─► cache.read ─► machine_code.load ─► a function that ctypes can call   (warm: neither numba nor LLVM)
          └─ nothing there ─► kernels.build (numba, several seconds) ─► cache.write
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from endoscope.stats import cache, machine_code
from endoscope.stats import layout as at


@dataclass(frozen=True, slots=True)
class Kernels:
    """The loaded code; `owner` has its memory."""

    measure_all: Callable[[int, int, int], None]  # job, numbers of the requests, how many
    copy_all: Callable[[int, int], None]  # table of copies, how many
    fold: Callable[[int], None]  # table: see kernels/crc.py
    owner: Any
    origin: str  # "cache", "compiled" or "compiled, not kept"


_lock = threading.Lock()
_loaded: Kernels | None = None
_asked = False


def load() -> Kernels | None:
    """The kernels, or None if they cannot be had here; the reason is then printed, once."""
    global _loaded, _asked
    if _asked:
        return _loaded
    with _lock:
        if not _asked:
            try:
                _loaded = _find_or_build()
            except Exception as problem:  # whatever is wrong with a compiler must not stop a training run
                _say(
                    f"statistics are computed with plain torch calls, which is many times slower: {_reason(problem)}\n"
                    'For compiled kernels:  pip install "endoscope[torch]"'
                )
            _asked = True
    return _loaded


def if_loaded() -> Kernels | None:
    """The kernels if somebody has loaded them; nothing is loaded or compiled for this."""
    return _loaded


def key() -> str:
    """Under which name the cache has the kernels of this machine and version."""
    return cache.source_key((*_processor(), _version("llvmlite"), _version("numba")))


def _processor() -> tuple[str, ...]:
    """What machine code depends on. Where Linux tells, the compiler is not asked: loading it takes longer."""
    try:
        described = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    except OSError:
        return _described_by_compiler()
    told = ("vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "Features")
    return (platform.machine(), *[line for line in described if line.partition(":")[0].strip() in told])


def _described_by_compiler() -> tuple[str, ...]:
    import llvmlite.binding as llvm

    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _machine() -> Any:
    """The compiler, for this very processor."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        features["prefer-256-bit"] = False  # the kernels say themselves how much they read at once
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        opt=3,
        codemodel="jitdefault",
        jit=True,
    )


def _find_or_build() -> Kernels:
    name = key()
    if kept := cache.read(name):
        return _ready(*kept, origin="cache")
    machine = _machine()
    from endoscope.stats.kernels.build import build  # numba is loaded here, and only here

    _say("compiling the kernels for statistics; once for this machine and version, about ten seconds …")
    symbol, code = build(machine)
    origin = "compiled"
    try:
        cache.write(name, symbol, code)
    except (OSError, RuntimeError) as problem:  # RuntimeError: this user has no home
        _say(f"they cannot be kept ({problem}), so the next process compiles them again; XDG_CACHE_HOME may help")
        origin = "compiled, not kept"
    return _ready(symbol, code, origin=origin)


def _ready(symbol: str, code: bytes, *, origin: str) -> Kernels:
    """Put machine code into executable memory."""
    try:
        address, owner = machine_code.load(code, symbol)
    except (machine_code.Unsupported, OSError):
        address, owner = _load_by_compiler(code, symbol)
    # numba's calling convention: where to put the result, where to put an exception, then the arguments.
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, integer, integer, integer)
    function = kind(address)
    nowhere = (ctypes.c_int64 * 2)()
    result, exception = ctypes.addressof(nowhere), ctypes.addressof(nowhere) + 8

    measure_all = functools.partial(function, result, exception)  # ctypes lets go of the GIL
    copy_all = functools.partial(function, result, exception, at.COPY)

    def fold(table: int) -> None:
        function(result, exception, at.FOLD, table, 0)

    return Kernels(measure_all, copy_all, fold, (owner, nowhere), origin)


def _load_by_compiler(code: bytes, symbol: str) -> tuple[int, Any]:
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(symbol), engine


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def _reason(problem: Exception) -> str:
    if isinstance(problem, ModuleNotFoundError):
        return f"{(problem.name or 'a library').partition('.')[0]} is not installed"
    return f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else 'no message'}"


def _say(text: str) -> None:
    for line in text.splitlines():
        sys.stderr.write(f"endoscope: {line}\n")
    sys.stderr.flush()
