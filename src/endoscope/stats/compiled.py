"""The compiled kernels, from the cache or freshly compiled.

load ─► cache.read ─► machine code ─► llvmlite ─► a function that ctypes can call   (warm: no numba)
          └─ nothing there ─► kernels.build (numba, several seconds) ─► cache.write
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, NamedTuple

from endoscope.stats import cache


@dataclass(frozen=True, slots=True)
class Kernels:
    """The loaded code; `engine` owns its memory."""

    measure_all: Callable[[int, int, int], None]
    engine: Any
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


class _Target(NamedTuple):
    """What machine code is made for."""

    llvm: Any
    machine: Any
    key: str  # under which the cache has it


def _target() -> _Target:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    triple = llvm.get_process_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=name, features=features, opt=3, codemodel="jitdefault", jit=True
    )
    key = cache.source_key((triple, name, features, _version("llvmlite"), _version("numba")))
    return _Target(llvm, machine, key)


def _find_or_build() -> Kernels:
    target = _target()
    if kept := cache.read(target.key):
        return _ready(target, *kept, origin="cache")
    from endoscope.stats.kernels.build import build  # numba is loaded here, and only here

    _say("compiling the kernels for statistics; once for this machine and version, about ten seconds …")
    symbol, code = build(target.machine)
    origin = "compiled"
    try:
        cache.write(target.key, symbol, code)
    except (OSError, RuntimeError) as problem:  # RuntimeError: this user has no home
        _say(f"they cannot be kept ({problem}), so the next process compiles them again; XDG_CACHE_HOME may help")
        origin = "compiled, not kept"
    return _ready(target, symbol, code, origin=origin)


def _ready(target: _Target, symbol: str, code: bytes, *, origin: str) -> Kernels:
    """Put machine code into executable memory."""
    engine = target.llvm.create_mcjit_compiler(target.llvm.parse_assembly(""), target.machine)
    engine.add_object_file(target.llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    # numba's calling convention: where to put the result, where to put an exception, then the arguments.
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, integer, integer, integer)
    function = kind(engine.get_function_address(symbol))
    nowhere = (ctypes.c_int64 * 2)()
    result, exception = ctypes.addressof(nowhere), ctypes.addressof(nowhere) + 8

    def measure_all(job: int, order: int, count: int) -> None:
        function(result, exception, job, order, count)  # ctypes lets go of the GIL

    measure_all.keep = nowhere  # type: ignore[attr-defined]
    return Kernels(measure_all, engine, origin)


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
