"""The compiled kernels: there is a library here, each of its variants finds the same, and without it torch serves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch

from endoscope.errors import RecordingWarning
from endoscope.schema import stats as schema
from endoscope.stats import Request, build, kernels, measure, warm
from tests.house.tree import SRC
from tests.stats.plain_torch import measure_with_torch
from tests.stats.test_formulas import DTYPES, KINDS, LAYOUTS, assert_agree

TEXT = build.SOURCE.read_text(encoding="utf-8")


@pytest.fixture
def _asked_again() -> Iterator[None]:
    """Whether there is a library is found out once more, now and afterwards."""
    kernels.load.cache_clear()
    yield
    kernels.load.cache_clear()


def test_they_are_compiled_here() -> None:
    assert build.up_to_date(), f"run: python {build.__file__}"
    assert warm() == kernels.variants()[0]
    assert kernels.variants()[-1] == "portable"


@pytest.mark.parametrize("variant", build.VARIANTS)
def test_every_variant_finds_the_same(variant: str) -> None:
    if variant not in kernels.variants():
        pytest.skip("this processor cannot run it")
    torch.manual_seed(0)
    requests = [Request(kind(make()), batch) for make, batch in LAYOUTS.values() for kind in KINDS.values()]
    make, batch = LAYOUTS["tokens of a longer sequence"]
    requests += [Request((50 * make().abs()).to(dtype), batch) for dtype in DTYPES if not dtype.is_complex]
    with mock.patch.object(kernels, "load", return_value=kernels.loaded(variant)):
        found = measure(requests, threads=1)
    assert_agree(found, measure_with_torch(requests), requests)


def test_what_stands_in_c_and_in_python_is_the_same() -> None:
    defined = {name: int(value) for name, value in re.findall(r"^#define ([A-Z_]+) (-?\d+)\b", TEXT, re.MULTILINE)}
    both = [name for name in defined if hasattr(schema, name) or hasattr(kernels, name)]
    assert {"HISTOGRAM_BINS", "ZERO_BIN", "LOWEST_EXPONENT", "UNIT_CAP", "EXACT_UP_TO", "ENOUGH"} <= set(both)
    assert {name: getattr(schema, name, getattr(kernels, name, None)) for name in both} == {n: defined[n] for n in both}
    enums = [re.findall(r"\w+", names) for names in re.findall(r"^enum \{([A-Z0-9_,\s]+)\};", TEXT, re.MULTILINE)]
    shared = [names for names in enums if hasattr(kernels, names[0])]
    assert {names[0] for names in shared} == {"FLOAT32", "NO_UNITS"}
    assert all(getattr(kernels, name) == place for names in shared for place, name in enumerate(names))
    for name, structure in (("Columns", kernels.Columns), ("Source", kernels.Source), ("Job", kernels.Job)):
        body = re.sub(r"/\*.*?\*/", "", re.search(rf"typedef struct {{([^}}]*)}} {name};", TEXT)[1], flags=re.DOTALL)
        assert re.findall(r"(\w+)(?=[,;])", body) == list(structure.FIELDS), name


def test_a_statistic_without_a_line_in_c_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "SAMPLE", ("mean", "tailedness"))
    with pytest.raises(LookupError, match="no line for tailedness in STATISTICS"):
        kernels.loaded("portable")


@pytest.mark.usefixtures("_asked_again")
@pytest.mark.parametrize("what", ["missing", "no library", "older"])
def test_without_a_library_torch_serves_and_says_so_once(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libkernels.so"
    if what != "missing":
        library.write_bytes(build.stamp() if what == "no library" else b"other")
    monkeypatch.setattr(build, "LIBRARY", library)
    with pytest.warns(RecordingWarning, match="plain torch calls, which is many times slower") as said:
        found = measure([Request(torch.arange(6.0).reshape(2, 3), 0)])
    assert warm() == "plain torch"  # and nothing more is said
    assert len(said) == 1 and f"python {build.__file__}" in str(said[0].message)
    assert found.whole["mean"].tolist() == [2.5] and found.samples["max"].tolist() == [2.0, 5.0]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_it_is_built_from_the_source_and_only_when_needed(tmp_path: Path) -> None:
    for name in ("build.py", "kernels.c"):
        shutil.copy(build.HERE / name, tmp_path)
    command = [sys.executable, str(tmp_path / "build.py")]
    for _ in range(2):
        subprocess.run(command, check=True)
        first = (tmp_path / "libkernels.so").stat().st_mtime_ns
    assert sorted(path.name for path in tmp_path.iterdir()) == ["build.py", "kernels.c", "libkernels.so"]
    subprocess.run(command, check=True)
    assert (tmp_path / "libkernels.so").stat().st_mtime_ns == first
    with (tmp_path / "kernels.c").open("a") as source:
        source.write("\n")
    subprocess.run(command, check=True)
    assert (tmp_path / "libkernels.so").stat().st_mtime_ns != first


@pytest.mark.parametrize(("compiler", "words"), [("", "there is no C compiler"), ("false", "were not compiled")])
def test_where_it_cannot_be_built_the_reason_is_said(tmp_path: Path, compiler: str, words: str) -> None:
    for name in ("build.py", "kernels.c"):
        shutil.copy(build.HERE / name, tmp_path)
    path = str(tmp_path) if not compiler else os.environ["PATH"]
    command = [sys.executable, str(tmp_path / "build.py")]
    environment = {**os.environ, "CC": compiler, "PATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and words in done.stderr and not (tmp_path / "libkernels.so").exists()


def test_loading_takes_no_compiler_and_little_time() -> None:
    code = (
        "import torch, time; start = time.process_time(); from endoscope import stats; print(stats.warm());"
        "stats.measure([stats.Request(torch.ones(128, 512), 0)]); print(time.process_time() - start)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SRC), "PATH": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    variant, secs = done.stdout.split()
    assert variant == warm() and float(secs) < 0.5 and done.stderr == ""


def test_quantiles_lie_in_the_columns_of_their_names() -> None:
    found = measure([Request(torch.arange(101.0), None)])
    assert [found.whole[name][0] for name in schema.QUANTILES] == pytest.approx([1, 5, 25, 50, 75, 95, 99])
    assert found.whole["count"].dtype == np.int64
