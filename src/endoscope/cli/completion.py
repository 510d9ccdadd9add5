"""`endoscope completion`: lets the shell complete commands, options and trials."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

SUMMARY = "print a script that makes bash, zsh or fish complete commands"

Commands = Mapping[str, Any]  # name -> its module

_BASH = """\
# bash: add this line to ~/.bashrc
#     eval "$(endoscope completion bash)"
_endoscope() {
    local current="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="COMMANDS"
    else
        case "$command" in
CASES
        esac
    fi
    case "$current" in
        -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
        *) COMPREPLY=($([ "$COMP_CWORD" -eq 1 ] && compgen -W "$words" -- "$current" || compgen -f -- "$current")) ;;
    esac
}
complete -o filenames -F _endoscope endoscope
"""
_BASH_CASE = '            {command}) words="{options}" ;;'

_ZSH = """\
#compdef endoscope
# zsh: add this line to ~/.zshrc, behind compinit
#     eval "$(endoscope completion zsh)"
_endoscope() {
    local -a commands
    commands=(
COMMANDS
    )
    if (( CURRENT == 2 )); then
        _describe 'command' commands
        return
    fi
    case "$words[2]" in
CASES
    esac
}
compdef _endoscope endoscope
"""
_ZSH_COMMAND = "        '{command}:{summary}'"
_ZSH_CASE = "        {command}) _arguments {options} '*:file:_files' ;;"

_FISH = """\
# fish: type this once
#     endoscope completion fish > ~/.config/fish/completions/endoscope.fish
COMMANDS
CASES
"""
_FISH_COMMAND = "complete -c endoscope -n __fish_use_subcommand -f -a {command} -d '{summary}'"
_FISH_CASE = "complete -c endoscope -n '__fish_seen_subcommand_from {command}' -l {option} -d '{help}'"


def add_options(parser: argparse.ArgumentParser) -> None:
    """For which shell."""
    parser.add_argument("shell", choices=sorted(SHELLS), help="the shell that you use")


def run(options: argparse.Namespace) -> int:
    """Print the script; its first lines say where it belongs."""
    print(SHELLS[options.shell](options.commands), end="")
    return 0


def _bash(known: Commands) -> str:
    cases = [_BASH_CASE.format(command=name, options=" ".join(options)) for name, options in _options(known).items()]
    return _BASH.replace("COMMANDS", " ".join(_options(known))).replace("CASES", "\n".join(cases))


def _zsh(known: Commands) -> str:
    commands = [_ZSH_COMMAND.format(command=name, summary=_quoted(text)) for name, text in _summaries(known).items()]
    cases = []
    for name, options in _options(known).items():
        told = " ".join(f"'{option}[{_quoted(text)}]'" for option, text in options.items())
        cases.append(_ZSH_CASE.format(command=name, options=told))
    return _ZSH.replace("COMMANDS", "\n".join(commands)).replace("CASES", "\n".join(cases))


def _fish(known: Commands) -> str:
    commands = [_FISH_COMMAND.format(command=name, summary=_quoted(text)) for name, text in _summaries(known).items()]
    cases = [
        _FISH_CASE.format(command=name, option=option.lstrip("-"), help=_quoted(text))
        for name, options in _options(known).items()
        for option, text in options.items()
    ]
    return _FISH.replace("COMMANDS", "\n".join(commands)).replace("CASES", "\n".join(cases))


def _summaries(known: Commands) -> dict[str, str]:
    return {name: module.SUMMARY for name, module in known.items()}


def _options(known: Commands) -> dict[str, dict[str, str]]:
    """Command -> long option -> its help."""
    found = {}
    for name, module in known.items():
        parser = argparse.ArgumentParser()
        module.add_options(parser)
        actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        found[name] = {
            option: (action.help or "") for action in actions for option in action.option_strings if option[:2] == "--"
        }
    return found


def _quoted(text: str) -> str:
    """Harmless between single quotes, and between the brackets of zsh."""
    return text.replace("'", "").replace("[", "(").replace("]", ")").replace(":", ";")


SHELLS = {"bash": _bash, "fish": _fish, "zsh": _zsh}
