"""The written style: few exceptions, each with its reason, and a sheet that holds all that Endoscope says."""

import json
import subprocess
import sys

import endoscope
from tests.house.tree import ROOT

PROSE = ROOT / "docs" / "prose"


def test_there_are_few_exceptions_and_each_has_a_reason() -> None:
    style = json.loads((PROSE / "style.json").read_text(encoding="utf-8"))
    exceptions = [*style["checks"].items(), *style["words"].items()]
    assert 0 < len(exceptions) <= 20
    assert all(len(reason) > 5 for _, reason in exceptions)


def test_check_runs_it() -> None:
    done = subprocess.run(["make", "-n", "check"], cwd=ROOT, capture_output=True, text=True)
    assert "docs/prose/check.sh" in done.stdout, done.stderr


def test_the_sheet_has_messages_options_checks_and_docstrings() -> None:
    command = [sys.executable, PROSE / "sheet.py"]
    sheet = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for said in (
        "no model was watched",  # of a run
        "run a training script unchanged, record it, and show it",  # of the command line
        "The learning rate is too large, or too small.",  # of a check
        "There is no metric …. Nearest: ….",  # an error, with blanks
        "## Run.watch",
        "## validate",
    ):
        assert said in sheet
    assert all(f"## {name}" in sheet for name in ("Run", "trace", "diagnose", "show"))
    assert endoscope.Run.watch.__doc__ is not None and endoscope.Run.watch.__doc__.splitlines()[0] in sheet
