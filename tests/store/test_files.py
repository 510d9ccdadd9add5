"""Bytes reach a file completely, however few of them the system takes at a time."""

import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endoscope.store import files


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=90), most=st.integers(1, 30))
def test_a_system_that_takes_a_part(tmp_path: Path, data: bytes, most: int) -> None:
    def some(descriptor: int, waiting: Sequence[files.Bytes]) -> int:
        return os.write(descriptor, b"".join(waiting)[:most])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "_write_some", some)
        (tmp_path / "file").unlink(missing_ok=True)
        file = files.AppendFile(tmp_path / "file")
        span = file.append(data)
        file.close()
    assert (tmp_path / "file").read_bytes() == data
    assert span == files.Span(0, len(data), zlib.crc32(data))
