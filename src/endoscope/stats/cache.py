"""One file of machine code per machine and version, shared by all processes of a user.

The file is written under another name and then renamed, so a reader sees all of it or nothing. Processes
that start at the same time may each write it: they write the same. A file that does not hold what its
checksum says is ignored, and replaced by the next writer.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from endoscope.schema import folders

_MAGIC = b"endoscope kernels 1"


def source_key(facts: tuple[str, ...]) -> str:
    """A name for what the compiled code depends on: these facts and the text of the kernels."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    constants = (here / "layout.py", here.parent / "schema" / "stats.py")
    for path in (*constants, *sorted((here / "kernels").glob("*.py"))):
        digest.update(path.read_bytes())
    digest.update("\0".join(facts).encode())
    return digest.hexdigest()[:32]


def read(key: str) -> tuple[str, bytes] | None:
    """The symbol and the machine code that were kept under a key, if they are there and whole."""
    try:
        magic, checksum, symbol, code = _path(key).read_bytes().split(b"\n", 3)
    except (OSError, ValueError, RuntimeError):
        return None
    if magic != _MAGIC or checksum != _checksum(symbol, code):
        return None
    return symbol.decode(), code


def write(key: str, symbol: str, code: bytes) -> Path:
    """Keep machine code under a key; an OSError says that it cannot be kept."""
    path = _path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = b"\n".join([_MAGIC, _checksum(symbol.encode(), code), symbol.encode(), code])
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _path(key: str) -> Path:
    return folders.user_cache() / f"kernels-{key}.bin"


def _checksum(symbol: bytes, code: bytes) -> bytes:
    return hashlib.sha256(symbol + b"\0" + code).hexdigest().encode()
