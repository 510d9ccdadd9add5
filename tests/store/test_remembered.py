"""Checksums that were compared are not compared again, unless somebody has touched the file."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from endoscope.store import ahead, remembered
from endoscope.store.reader import RankReader
from tests.store.made_up import write_trial


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Sizes of what is compared with a checksum."""
    sizes: list[int] = []

    def noted(piece: Any) -> int:
        sizes.append(len(piece))
        return zlib.crc32(piece)

    class Zlib:
        crc32 = staticmethod(noted)

    monkeypatch.setattr(ahead, "zlib", Zlib)
    monkeypatch.setattr(remembered, "WORTH", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return sizes


def stats_of(path: Path) -> tuple[Path, list[Any]]:
    reader = RankReader(path)
    reader.refresh()
    return reader.folder, list(reader.contents.chunks["stats"])


def test_the_second_time_nothing_is_read(tmp_path: Path, compared: list[int]) -> None:
    folder, chunks = stats_of(write_trial(tmp_path, "trial", range(6)))
    for times in (1, 2):
        verified: ahead.Verified = set()
        ahead.check(folder, chunks, verified)
        assert verified == set(chunks)
        assert len(compared) == 6, times


def test_a_file_that_was_touched_is_compared_again(tmp_path: Path, compared: list[int]) -> None:
    folder, chunks = stats_of(write_trial(tmp_path, "trial", range(6)))
    ahead.check(folder, chunks, set())
    file = folder / chunks[0].file
    before = file.stat()
    data = bytearray(file.read_bytes())
    data[chunks[2].start + 40] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if nothing had happened
    for _ in range(2):  # damage is never remembered as right
        verified: ahead.Verified = set()
        ahead.check(folder, chunks, verified)
        assert verified == set(chunks) - {chunks[2]}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 3}', '{"stats-0001.arrow": [[1], "x"]}'])
def test_a_broken_note_is_no_note(tmp_path: Path, compared: list[int], text: str) -> None:
    folder, chunks = stats_of(write_trial(tmp_path, "trial", range(3)))
    ahead.check(folder, chunks, set())
    (note,) = (tmp_path / "cache" / "endoscope" / "checked").iterdir()
    note.write_text(text)
    verified: ahead.Verified = set()
    ahead.check(folder, chunks, verified)
    assert verified == set(chunks) and len(compared) == 6


def test_where_nothing_can_be_kept(tmp_path: Path, compared: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder, chunks = stats_of(write_trial(tmp_path, "trial", range(3)))
    verified: ahead.Verified = set()
    ahead.check(folder, chunks, verified)
    assert verified == set(chunks)


def test_only_the_newest_notes_are_kept(tmp_path: Path, compared: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_MOST_TRIALS", 2)
    for number in range(4):
        folder, chunks = stats_of(write_trial(tmp_path, f"trial{number}", range(2)))
        ahead.check(folder, chunks, set())
    assert len(list((tmp_path / "cache" / "endoscope" / "checked").iterdir())) == 2
