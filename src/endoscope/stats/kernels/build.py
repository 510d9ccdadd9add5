"""From the functions in this folder to machine code for this processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba


class Built(NamedTuple):
    """Machine code, and the name of the function in it."""

    symbol: str
    code: bytes


def build(machine: Any) -> Built:
    """Compile everything; takes several seconds."""
    with _as_written():
        # Importing is compiling: every kernel names its signature.
        from endoscope.stats.kernels.entry import begin

    (compiled,) = begin.overloads.values()
    module = llvm.parse_assembly(begin.inspect_llvm(compiled.signature.args))
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return Built(compiled.fndesc.llvm_func_name, machine.emit_object(module))


@contextmanager
def _as_written() -> Iterator[None]:
    """Let numba translate without optimising: it would do that again for every caller of a function."""
    config = numba.core.config
    level = config.OPT
    config.OPT = type(level)(0)
    try:
        yield
    finally:
        config.OPT = level
