"""Where Endoscope keeps what it can make again."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Where the platform keeps caches of this user."""
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "endoscope"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "endoscope"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "endoscope"
    return Path.home() / ".cache" / "endoscope"
