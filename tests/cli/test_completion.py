"""`endoscope completion`: what the shells offer, asked of the shells themselves where they are there."""

import shutil
import subprocess

import pytest

from endoscope.cli import commands, main
from endoscope.cli.completion import SHELLS

ASK_BASH = """
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _endoscope; echo "${COMPREPLY[@]}"; }
ask endoscope ""
ask endoscope ch
ask endoscope check --fol
cd "$folder" && ask endoscope show ru
"""


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_every_option_is_in_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    assert all(name in text for name in commands.COMMANDS)
    assert all(option in text for option in ("follow", "silence", "no-show", "views"))
    assert not any(word in text for word in ("COMMANDS", "CASES", "{command}"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").mkdir()  # type: ignore[operator]
    code = f"folder={tmp_path}\n{script('bash', capsys)}\n{ASK_BASH}"
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True)
    everything, check, follow, runs = done.stdout.splitlines()
    assert everything.split() == list(commands.COMMANDS)
    assert (check, follow, runs) == ("check", "--follow", "runs")
    assert not done.stderr


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    code = f"autoload -Uz compinit; compinit -u -D\n{script('zsh', capsys)}\nwhich _endoscope > /dev/null && echo there"
    done = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("there\n", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(capsys: pytest.CaptureFixture[str]) -> None:
    code = f"{script('fish', capsys)}\ncomplete -C 'endoscope ch'\ncomplete -C 'endoscope check --fol'"
    done = subprocess.run(["fish", "--no-config", "-c", code], capture_output=True, text=True)
    words = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert words == ["check", "--follow"]
