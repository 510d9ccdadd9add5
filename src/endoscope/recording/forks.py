"""Whether this process was forked since: told by Python, because asking the system who we are takes longer."""

from __future__ import annotations

import os

count = 0  # between the first process and this one; looked at in every step, and therefore no function


def _after_fork() -> None:
    global count
    count += 1


if hasattr(os, "register_at_fork"):  # there are systems that do not fork
    os.register_at_fork(after_in_child=_after_fork)
