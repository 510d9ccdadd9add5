"""What a recording takes on disk."""

from __future__ import annotations

import json
import math
from pathlib import Path


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def raw_numbers(folder: Path) -> int:
    """How many numbers the safetensors files below a folder hold; each begins with the length of its head."""
    total = 0
    for path in folder.rglob("*.safetensors"):
        with path.open("rb") as file:
            head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        total += sum(math.prod(entry["shape"]) for name, entry in head.items() if name != "__metadata__")
    return total
