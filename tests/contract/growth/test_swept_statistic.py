"""A statistic that the kernels work out: one line in C, one entry in the list of statistics, and it is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT, SRC

BEHIND_IN_C = "    NUMBER(max, t->high)                                        \\\n"
IN_C = "    NUMBER(range, t->high - t->low) \\\n"
BEFORE_IN_PYTHON = '    _quantile(0.01, "1st percentile"),\n'
IN_PYTHON = """    Statistic(
        name="range", label="range", about="From the smallest to the largest.", twin=lambda x: max(x) - min(x),
        of=lambda rows: rows.high - rows.low, of_samples=True,
    ),
"""

TRY = """
import sys, torch
from endoscope import stats
from tests.contract.growth.plug_in import train
from tests.stats import compare, plain_torch, twin
assert stats.warm() != "plain torch"
torch.manual_seed(0)
tensor = torch.randn(6, 50)
for measure in (stats.measure, plain_torch.measure_with_torch):
    found = measure([stats.Request(tensor, 0)])
    compare.assert_same(compare.row(found, 0), twin.whole(twin.numbers_of(tensor)), precision=compare.SINGLE)
    for row, numbers in zip(compare.sample_rows(found, 0), twin.samples(tensor, 0)):
        compare.assert_same(row, twin.whole(numbers), precision=compare.SINGLE, stored_in=10.0)
import endoscope
recording = endoscope.open(train(sys.argv[1]))
print(recording.series("1", "range").values.tolist() == (
    recording.series("1", "max").values - recording.series("1", "min").values).tolist())
print(len(recording.series("1", "range", sample=3)), len(recording.sql('select "range" from samples').rows) > 0)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_two_files_are_edited(tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(SRC, source, ignore=shutil.ignore_patterns("*.so", "static", "__pycache__"))
    edit(source / "endoscope/stats/kernels.c", BEHIND_IN_C, BEHIND_IN_C + IN_C)
    edit(source / "endoscope/schema/stats.py", BEFORE_IN_PYTHON, IN_PYTHON + BEFORE_IN_PYTHON)
    subprocess.run([sys.executable, str(source / "endoscope" / "stats" / "build.py")], check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
    command = [sys.executable, "-c", TRY, str(tmp_path / "runs")]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "6", "True"]


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
