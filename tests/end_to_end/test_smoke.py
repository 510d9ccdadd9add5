"""The smoke test of wheels runs from the sources, too, so it cannot fall behind; and once more without torch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from endoscope.server.page_files import STATIC
from tests.house.tree import SRC

SMOKE = Path(__file__).with_name("smoke.py")
WITHOUT_TORCH = """
import runpy, sys
sys.modules["torch"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.skipif(not (STATIC / "index.html").is_file(), reason="the page has not been built: make page")
@pytest.mark.skipif(shutil.which("endoscope", path=str(Path(sys.executable).parent)) is None, reason="not installed")
def test_the_smoke_test_of_wheels(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    for how in ([], ["-c", WITHOUT_TORCH]):
        done = subprocess.run(
            [sys.executable, *how, SMOKE, tmp_path], capture_output=True, text=True, env=environment, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("read, checked, served: all is well\n")
        assert ("recorded, traced, validated" in done.stdout) == (not how)
