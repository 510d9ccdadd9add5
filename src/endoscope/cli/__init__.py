"""The `endoscope` command: one file per sub-command, listed in `commands.COMMANDS`.

main ─► commands.parse (says what is wrong, if anything) ─► <command>.run(options) ─► exit code
"""

import sys
from collections.abc import Sequence

from endoscope.cli import commands
from endoscope.errors import EndoscopeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a mistake of the user is one message, not a traceback."""
    options = commands.parse(sys.argv[1:] if arguments is None else list(arguments))
    try:
        return int(options.run(options))
    except EndoscopeError as error:
        print(f"endoscope: {error}", file=sys.stderr)
        return 1
