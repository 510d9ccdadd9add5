"""Compiles kernels.c into a shared library beside it. Standard library only: the build hook runs this file by its path.

python src/endoscope/stats/build.py      nothing happens if the library is up to date
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "kernels.c"
LIBRARY = HERE / "libkernels.so"  # also where such files are usually called otherwise: only Python loads it
#: What one machine can do and another cannot, the widest registers first.
VARIANTS = {
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mbmi2", "-mprefer-vector-width=512"],
    "avx2": ["-mavx2", "-mfma", "-mbmi2"],
    "portable": [],
}
_FLAGS = [
    "-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-Wno-psabi",
    # Results do not depend on the compiler, but it need not care for errno and traps.
    "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
    "-fopenmp-simd",  # allows the sums of marked loops to be added up in any order
    "-fno-tree-slp-vectorize",  # loads of wide registers would wait for narrow stores before them
    "-fno-builtin-memset",  # gcc writes an instruction in its place that takes long to start
]  # fmt: skip


class CannotBuild(Exception):
    """There is no library; the text says why."""


def stamp() -> bytes:
    """What the library depends on; it stands in the library."""
    digest = hashlib.sha256(SOURCE.read_bytes() + Path(__file__).read_bytes())
    return b"kernels.c " + digest.hexdigest().encode()


def up_to_date() -> bool:
    """Whether there is a library that was made from exactly this source."""
    return LIBRARY.is_file() and stamp() in LIBRARY.read_bytes()


def build() -> None:
    """Compile whatever is not up to date; raises CannotBuild."""
    if up_to_date():
        return
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang"))), None)
    if compiler is None:
        raise CannotBuild("there is no C compiler: none of cc, gcc and clang is on the PATH, and CC names none")
    is_intel = platform.machine().lower() in ("x86_64", "amd64")
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".build") as folder:  # renaming works within one file system
        objects = []
        for name in VARIANTS if is_intel else ["portable"]:
            objects.append(str(Path(folder) / f"{name}.o"))
            defined = [f"-DVARIANT={name}", f'-DSTAMP="{stamp().decode()}"']
            _run([compiler, *_FLAGS, *VARIANTS[name], *defined, "-c", str(SOURCE), "-o", objects[-1]])
        library = Path(folder) / LIBRARY.name
        _run([compiler, "-shared", "-o", str(library), *objects, "-lm"])
        library.replace(LIBRARY)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as problem:
        raise CannotBuild(f"{command[0]} cannot be started: {problem}") from problem
    if done.returncode != 0:
        raise CannotBuild(f"{' '.join(command)}\n{done.stderr}")


if __name__ == "__main__":
    try:
        build()
    except CannotBuild as problem:
        sys.exit(f"The kernels for statistics were not compiled; torch is used instead, which is slower.\n{problem}")
