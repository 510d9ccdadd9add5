"""Messages of steps that resemble the one before: the same bytes as if nothing were remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.schema.recording import TABLES, StepRecord
from endoscope.store import moulds, repeating, rows
from endoscope.store.messages import Body, batch_message
from endoscope.store.repeating import StepMessages
from tests.store.made_up import Measured, measured


def record_of(number: int, count: int = 3, **others: Any) -> StepRecord:
    fields: dict[str, Any] = {
        "number": number, "type": "train", "time": float(number), "why": "every step", "recording_seconds": 0.5,
        "graph_hash": "abc", "keys": np.arange(count, dtype=np.int32), "measured": measured(count, seed=number),
        "raw_samples": [0, 2], "config": {"lr": 0.1},
    }  # fmt: skip
    return StepRecord(**(fields | others))


def made_anew(record: StepRecord, ordinal: int, raw_file: str) -> dict[str, bytes]:
    """The slow twin."""
    columns = {table: rows.of_measured(table, record, ordinal) for table in ("stats", "samples", "units")}
    messages = {table: batch_message(table, found) for table, found in columns.items() if len(found["key"])}
    return messages | {"steps": batch_message("steps", rows.of_step(record, ordinal, raw_file))}


def check(messages: StepMessages, record: StepRecord, ordinal: int, raw_file: str = "") -> None:
    assert messages.of(record, ordinal, raw_file) == made_anew(record, ordinal, raw_file)


@pytest.fixture
def seen() -> StepMessages:
    """Has met three equal steps, and so has all moulds."""
    messages = StepMessages()
    for number in range(3):
        check(messages, record_of(number), number)
    return messages


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Nothing may be made anew any more."""

    def fail(*_: Any) -> None:
        raise AssertionError("made anew")

    def forbid() -> None:
        for name in ("batch_message", "Mould"):
            monkeypatch.setattr(repeating, name, fail)

    return forbid


def test_what_repeats_is_not_made_again(seen: StepMessages, forbid: Callable[[], None]) -> None:
    records = [record_of(number) for number in range(3, 9)]
    expected = [made_anew(record, record.number, "") for record in records]
    forbid()
    assert [seen.of(record, record.number, "") for record in records] == expected


def _keys(record: StepRecord) -> None:
    record.keys = record.keys[::-1].copy()


def _owners(record: StepRecord) -> None:
    record.measured.sample_request = np.array([0, 0, 0, 1, 1, 1, 1, 1], np.int32)


def _indices(record: StepRecord) -> None:
    record.measured.sample_index = record.measured.sample_index[::-1].copy()


def _mixed_samples(record: StepRecord) -> None:
    record.measured.sample_request = np.tile(np.arange(2, dtype=np.int32), 4)


def _unit_offsets(record: StepRecord) -> None:
    record.measured.unit_offsets = np.array([0, 2, 6, 6], np.int32)


def _unit_shapes(record: StepRecord) -> None:
    record.measured.unit_shape = [(3, 1), (1, 3), ()]


def _no_samples(record: StepRecord) -> None:
    record.measured.sample_request = record.measured.sample_index = np.empty(0, np.int32)
    record.measured.samples = {name: values[:0] for name, values in record.measured.samples.items()}


def _floats(record: StepRecord) -> None:
    record.measured.whole = {name: values.astype(np.float64) for name, values in record.measured.whole.items()}


def _other_order_of_bytes(record: StepRecord) -> None:
    record.measured.samples["std"] = record.measured.samples["std"].astype(">f4")


def _gaps(record: StepRecord) -> None:
    record.measured.units = {name: np.repeat(values, 2)[::2] for name, values in record.measured.units.items()}


def _lists(record: StepRecord) -> None:
    record.measured.whole = {name: values.tolist() for name, values in record.measured.whole.items()}


def _other_tensors(record: StepRecord) -> None:
    record.keys, record.measured = np.arange(5, dtype=np.int32), measured(5, seed=1)


def _nothing_measured(record: StepRecord) -> None:
    record.keys, record.measured = (), None


CHANGES = [
    _keys, _owners, _indices, _mixed_samples, _unit_offsets, _unit_shapes, _no_samples, _floats, _other_order_of_bytes,
    _gaps, _lists, _other_tensors,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_differs_is_noticed(seen: StepMessages, change: Callable[[StepRecord], None]) -> None:
    for number in range(3, 7):  # once, and when it has become what is usual
        record = record_of(number)
        change(record)
        check(seen, record, number)
    for number in range(7, 10):
        check(seen, record_of(number), number)


def test_a_step_without_numbers(seen: StepMessages) -> None:
    record = record_of(3)
    _nothing_measured(record)
    assert list(seen.of(record, 3, "")) == ["steps"]
    check(seen, record_of(4), 4)


@pytest.mark.parametrize(
    "others",
    [
        {"type": "test"}, {"why": ""}, {"graph_hash": "äbc"}, {"raw_samples": []}, {"categories": ["a", "ß"]},
        {"passes": 2}, {"config": {}}, {"config": {"lr": 0.2}}, {"extra": {"no_gradient": ["a"]}},
    ],
)  # fmt: skip
def test_other_texts_are_noticed(seen: StepMessages, others: dict[str, Any]) -> None:
    for number in range(3, 6):
        check(seen, record_of(number, **others), number)
    check(seen, record_of(6), 6)


def test_names_of_raw_files_change_and_become_longer(seen: StepMessages) -> None:
    for ordinal in (8, 9, 10, 11, 100, 101):
        check(seen, record_of(ordinal), ordinal, f"raw/{ordinal}.safetensors")


def test_what_a_user_changes_in_place_is_noticed(seen: StepMessages) -> None:
    config = {"lr": 0.1}
    for number in range(3, 8):
        config["lr"] *= 0.5
        check(seen, record_of(number, config=config), number)


@pytest.mark.parametrize("names", [["loss"], ["loss", "accuracy"], ["loss", "äöü"], ["loss"] * 5])
def test_metrics(names: list[str]) -> None:
    messages = StepMessages()
    for found in (["loss", "accuracy"], ["loss", "accuracy"], ["loss", "accuracy"], *[names] * 4):
        for type_ in ("train", "train", "test"):
            told = [(number, 0.5 * number, name, -1.0 * number, type_) for number, name in enumerate(found)]
            assert messages.of_rows("metrics", told) == batch_message("metrics", rows.of_tuples("metrics", told))


def test_numbers_of_a_step_are_not_kept(seen: StepMessages) -> None:
    import sys

    numbers: Measured = measured(3)
    before = [sys.getrefcount(values) for values in (*numbers.whole.values(), *numbers.samples.values())]
    seen.of(record_of(3, measured=numbers), 3, "")
    assert [sys.getrefcount(values) for values in (*numbers.whole.values(), *numbers.samples.values())] == before


@given(data=st.data(), table=st.sampled_from(sorted(TABLES)), count=st.integers(1, 4))
def test_a_mould_gives_back_what_it_was_made_of(data: st.DataObject, table: str, count: int) -> None:
    """Whichever buffers of whichever table are fresh."""
    columns: dict[str, Any] = {}
    for number, (name, kind) in enumerate(TABLES[table]):
        value: Any = "text"[: number % 4] if "string" in kind else number
        columns[name] = [[value] * number if kind.startswith("list<") else value] * count
    names = moulds._buffer_names(table)
    once = [name for name in names if names.count(name) == 1]
    fresh = data.draw(st.sets(st.sampled_from(once)))
    parts = Body(table, columns).parts[::2]
    given = [part for name, part in zip(names, parts, strict=True) if name in fresh]
    assert moulds.Mould(table, columns, fresh).fill(given) == batch_message(table, columns)
