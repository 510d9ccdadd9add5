"""Files that go past the page cache hold exactly the bytes that were given, wherever a chunk ends."""

import errno
import os
from pathlib import Path

import pytest

from endoscope.store import direct, files

SIZES = [direct.WORTH, direct.WORTH + 1, 2 * 2**20, 2 * 2**20 - 1, 5 * 2**20 + 4095]


def _buffers(size: int) -> list[bytes | memoryview]:
    """Pieces of odd lengths, an empty one among them."""
    data = os.urandom(size)
    return [data[:1], memoryview(data)[1:77_777], b"", data[77_777:]]


@pytest.mark.parametrize("size", SIZES)
def test_the_bytes_are_those_that_were_given(tmp_path: Path, size: int) -> None:
    buffers = _buffers(size)
    span = files.write_whole(tmp_path / "raw", buffers)
    assert (tmp_path / "raw").read_bytes() == b"".join(buffers)
    assert span == files.Span(0, size, files.checksum(buffers))
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_a_file_that_is_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"x" * 9_000_000)
    files.write_whole(tmp_path / "raw", [b"y" * direct.WORTH])
    assert (tmp_path / "raw").read_bytes() == b"y" * direct.WORTH


@pytest.mark.parametrize("where", ["open", "write"])
def test_a_file_system_that_cannot_gets_an_ordinary_file(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(os, where)
    refused = []

    def refuse(*args: object) -> object:
        if (where == "write" or int(args[1]) & os.O_DIRECT) and not refused:  # type: ignore[call-overload]
            refused.append(args)
            raise OSError(errno.EINVAL, "not here")
        return real(*args)

    monkeypatch.setattr(direct.os, where, refuse)
    buffers = _buffers(3 * 2**20)
    files.write_whole(tmp_path / "raw", buffers)
    assert refused
    assert (tmp_path / "raw").read_bytes() == b"".join(buffers)


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(direct.os, "write", full)
    with pytest.raises(OSError, match="no space left"):
        files.write_whole(tmp_path / "raw", _buffers(3 * 2**20))
    assert not list(tmp_path.iterdir())
