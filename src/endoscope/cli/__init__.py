"""The `endoscope` command: one file per sub-command, listed in `commands.COMMANDS`.

main ─► commands.parse (says what is wrong, if anything) ─► <command>.run(options) ─► exit code
"""

import os
import sys
from collections.abc import Sequence

from endoscope.cli import commands
from endoscope.errors import EndoscopeError

NOBODY_READS = 141  # what a shell says of a program that wrote to a closed pipe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a mistake of the user is one message, not a traceback."""
    options = commands.parse(sys.argv[1:] if arguments is None else list(arguments))
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `endoscope check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
        return NOBODY_READS
    except EndoscopeError as error:
        print(f"endoscope: {error}", file=sys.stderr)
        return 1
