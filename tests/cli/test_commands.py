"""The command line: what is said before any command runs."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import endoscope
from endoscope.cli import commands, main
from endoscope.errors import EndoscopeError
from tests.house.tree import SRC


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return int(stop.value.code or 0)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"endoscope {endoscope.__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_help_lists_every_command(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*arguments) == 0
    shown = capsys.readouterr().out
    for name, module in commands.COMMANDS.items():
        assert name in shown and module.SUMMARY in shown


def test_a_misspelt_command_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("dmeo") == 2
    assert "there is no command 'dmeo'. Did you mean: endoscope demo?" in capsys.readouterr().err


def test_an_unknown_command_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("xyzzy") == 2
    shown = capsys.readouterr().err
    assert "there is no command 'xyzzy'. The commands are: check" in shown
    assert "Did you mean" not in shown


def test_an_error_of_the_user_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: object) -> int:
        raise EndoscopeError("this cannot work, type that instead")

    monkeypatch.setattr(commands.COMMANDS["demo"], "run", fail)
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == "endoscope: this cannot work, type that instead\n"


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "endoscope", "--version"]
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.stdout == f"endoscope {endoscope.__version__}\n"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    """`endoscope check --list | head -1`: what is left unread is nobody's problem."""
    command = [sys.executable, "-m", "endoscope", "check", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said and "Broken" not in said
    assert process.returncode in (0, 141)


def test_what_cannot_be_shown_leaves_the_garbage_collector_on(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("")
    assert main(["show", str(file), "--port", "0"]) != 0
    assert gc.isenabled()
