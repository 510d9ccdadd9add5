"""Which commands exist, and what is said when somebody types another one."""

import argparse
import difflib

import endoscope
from endoscope.cli import (
    check,
    completion,
    demo,
    differences,
    doctor,
    export,
    ls,
    origin,
    query,
    report,
    rm,
    show,
    try_,
)

# Each command is a module with SUMMARY (one line), add_options(parser) and run(options) -> exit code.
# Whatever is slow to import is imported inside `run`, so that `endoscope --help` answers at once.
COMMANDS = {
    "check": check, "completion": completion, "demo": demo, "differences": differences, "doctor": doctor,
    "export": export, "ls": ls, "origin": origin, "query": query, "report": report, "rm": rm, "show": show, "try": try_,
}  # fmt: skip


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options of the command that was typed, with its function as `run`; exits if there is none."""
    parser = _build()
    # The top level has only flags without a value, so the first other word is the command.
    typed = next((word for word in arguments if not word.startswith("-")), None)
    if typed is not None and typed not in COMMANDS:
        parser.error(_unknown(typed))
    return parser.parse_args(arguments or ["--help"])


def _build() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="endoscope", description="Look inside a living PyTorch network.")
    parser.add_argument("--version", action="version", version=f"endoscope {endoscope.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.SUMMARY, description=module.SUMMARY)
        module.add_options(command)
        command.set_defaults(run=module.run, commands=COMMANDS)
    return parser


def _unknown(typed: str) -> str:
    near = difflib.get_close_matches(typed, COMMANDS, n=1)
    guess = f" Did you mean: endoscope {near[0]}?" if near else ""
    return f"there is no command {typed!r}.{guess} The commands are: {', '.join(COMMANDS)}."
