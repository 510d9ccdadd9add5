"""`python -m endoscope` does what the `endoscope` command does."""

import sys

from endoscope.cli import main

sys.exit(main())
