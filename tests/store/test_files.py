"""Bytes reach a file completely, however few of them the system takes at a time."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endoscope.store import files


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(buffers=st.lists(st.binary(max_size=20), max_size=6), most=st.integers(1, 30))
def test_a_system_that_takes_a_part(tmp_path: Path, buffers: list[bytes], most: int) -> None:
    def some(descriptor: int, waiting: Sequence[files.Bytes]) -> int:
        return os.write(descriptor, b"".join(waiting)[:most])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "_write_some", some)
        (tmp_path / "file").unlink(missing_ok=True)
        file = files.AppendFile(tmp_path / "file")
        span = file.append(buffers)
        file.close()
    assert (tmp_path / "file").read_bytes() == b"".join(buffers)
    assert span == files.Span(0, len(b"".join(buffers)), files.checksum(buffers))


def test_many_buffers(tmp_path: Path) -> None:
    buffers = [b"", *[b"%d," % number for number in range(1300)], b""]
    file = files.AppendFile(tmp_path / "file")
    file.append(buffers)
    file.close()
    assert (tmp_path / "file").read_bytes() == b"".join(buffers)
