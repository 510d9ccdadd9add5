"""The commit log: lines carry their own checksum, torn ones are not there yet, damaged ones are named."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.store.commits.journal import (
    Commit,
    Copied,
    JournalReader,
    JournalWriter,
    from_line,
    most_bytes_of_line,
    to_line,
)
from endoscope.store.files import Span
from endoscope.store.sealed import dump, seal, unseal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


NAMES = st.text().filter(lambda name: name != "crc")


@given(document=st.dictionaries(NAMES, JSON, min_size=1), indent=st.sampled_from([None, 2]))
def test_sealed_documents_come_back(document: dict, indent: int | None) -> None:
    text = seal(document, indent)
    assert unseal(text) == document
    assert json.loads(text).keys() == document.keys() | {"crc"}


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_any_changed_bit_breaks_the_seal(at: int, bit: int) -> None:
    text = bytearray(seal({"commit": 3, "files": {"a": [0, 5, 7]}, "nested": {"crc": "x"}}))
    text[at % (len(text) - 1)] ^= 1 << bit  # the newline at the end belongs to nobody
    assert unseal(bytes(text)) is None


@given(cut=st.integers(0, 60))
def test_a_torn_line_is_no_line(cut: int) -> None:
    text = seal({"commit": 3, "kind": "step", "some": "more text than that"})
    assert unseal(text[:cut]) is None


@pytest.mark.parametrize("value", [{1: {2: 3}}, {"a": {"b": object}}, [{(1, 2): 3}]])
def test_whatever_users_put_there_becomes_json(value: object) -> None:
    json.loads(dump(value))


def test_a_structure_that_contains_itself() -> None:
    loop: dict = {}
    loop["again"] = loop
    json.loads(dump(loop))


@pytest.mark.parametrize(
    "commit",
    [
        Commit(0, "open", 1.5, format=1),
        Commit(1, "step", 2.5, files={"stats-0001.arrow": Span(0, 8, 9)}, ordinal=0, step=40),
        Commit(2, "thin", 3.5, removed=("raw/1-1.safetensors",), thinned={"raw": [1]}),
        Commit(3, "thin", 3.5, removed=("a",), thinned={"stats": [1]}, copied={"b": [Copied(0, 8, 1, 2)]}),
        Commit(4, "close", 4.5),
        Commit(5, "resume", 4.5, session=2),
        Commit(6, "rows", 4.5, files={"notes-0002.arrow": Span(0, 8, 9)}, session=2, supersedes=0),
    ],
)
def test_commits_come_back(commit: Commit) -> None:
    assert from_line(to_line(commit)) == commit


def journal_of(folder: Path, lines: int) -> JournalWriter:
    writer = JournalWriter(folder)
    for number in range(lines):
        writer.append("step", 1.0, ordinal=number, step=number)
    return writer


def test_only_new_lines_are_read(tmp_path: Path) -> None:
    writer, reader = journal_of(tmp_path, 2), JournalReader(tmp_path)
    assert [commit.number for commit in reader.read() or []] == [0, 1]
    assert reader.read() == []
    writer.append("close", 2.0)
    assert [commit.number for commit in reader.read() or []] == [2]


def test_a_torn_tail_is_read_when_it_is_complete(tmp_path: Path) -> None:
    journal_of(tmp_path, 3)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        reader = JournalReader(tmp_path)
        complete = whole[:cut].count(b"\n")
        assert [commit.number for commit in reader.read() or []] == list(range(complete))
        assert reader.damaged == []
        path.write_bytes(whole)
        assert [commit.number for commit in reader.read() or []] == list(range(complete, 3))


def test_a_damaged_line_costs_itself(tmp_path: Path) -> None:
    journal_of(tmp_path, 4)
    path = tmp_path / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for bad in range(4):
        changed = [line.replace(b"step", b"stop") if n == bad else line for n, line in enumerate(lines)]
        path.write_bytes(b"".join(changed))
        reader = JournalReader(tmp_path)
        assert [commit.number for commit in reader.read() or []] == [n for n in range(4) if n != bad]
        assert reader.damaged == [bad + 1]
        assert reader.read() == [] and reader.damaged == [bad + 1]


def test_another_journal_in_its_place_is_noticed(tmp_path: Path) -> None:
    writer, reader = journal_of(tmp_path, 3), JournalReader(tmp_path)
    reader.read()
    writer.rewrite([{"kind": "open", "time": 2.0, "format": 1}, {"kind": "step", "time": 2.0, "ordinal": 2, "step": 2}])
    writer.append("close", 3.0)
    assert reader.read() is None
    found = JournalReader(tmp_path).read() or []
    assert [(commit.number, commit.kind) for commit in found] == [(0, "open"), (1, "step"), (2, "close")]


@given(
    time=st.floats(0, 1e11),
    step=st.integers(-1, 2**63 - 1),
    files=st.dictionaries(st.text(max_size=9), st.tuples(*[st.integers(0, 2**40)] * 3).map(Span._make), max_size=3),
    session=st.integers(0, 10**6),
    supersedes=st.none() | st.integers(0, 2**63 - 1),
)
def test_a_line_is_never_longer_than_was_reckoned_with(
    time: float, step: int, files: dict[str, Span], session: int, supersedes: int | None
) -> None:
    commit = Commit(7, "step", time, files, ordinal=5, step=step, session=session, supersedes=supersedes)
    assert len(to_line(commit)) <= most_bytes_of_line(files)


def test_a_journal_is_gone_on_with_behind_its_last_whole_line(tmp_path: Path) -> None:
    journal_of(tmp_path, 3)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    reader = JournalReader(tmp_path)
    reader.read()
    for torn in (b"", b'{"commit":3,"ki', b"\0" * 5000):
        path.write_bytes(whole + torn)
        JournalWriter(tmp_path).append("close", 2.0)
        assert path.read_bytes().startswith(whole)
        assert [(commit.number, commit.kind) for commit in reader.read() or []] == [(3, "close")]
        reader = JournalReader(tmp_path)
        path.write_bytes(whole)
        reader.read()
