"""A process can be killed after any byte: readers see the steps that were committed, and nothing of the next one."""

import shutil
from pathlib import Path

import pytest

from endoscope.errors import DamageWarning
from endoscope.query.recording import Recording
from endoscope.store.writer import TrialWriter
from tests.store.made_up import check_steps, step_record


@pytest.fixture(scope="module")
def two_moments(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A trial after its second and after its third step."""
    root = tmp_path_factory.mktemp("moments")
    writer = TrialWriter.create(root, "trial")
    for number in range(2):
        writer.write_step(step_record(writer, number))
    before, after = root / "before", root / "after"
    shutil.copytree(writer.path, before)
    writer.write_step(step_record(writer, 2))
    shutil.copytree(writer.path, after)
    return before, after


def grown_files(before: Path, after: Path) -> list[Path]:
    """Relative paths of files that the third step added bytes to, the journal last."""
    found = []
    for path in after.rglob("*"):
        old = before / path.relative_to(after)
        if path.is_file() and (not old.exists() or old.stat().st_size < path.stat().st_size):
            found.append(path.relative_to(after))
    return sorted(found, key=lambda path: path.name == "journal.jsonl")


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_a_commit_that_was_cut_off_at_any_byte_was_not_made(two_moments: tuple[Path, Path], tmp_path: Path) -> None:
    """The files in the order in which they are written, each byte by byte, the others before it complete."""
    before, after = two_moments
    trial = tmp_path / "trial"
    shutil.copytree(before, trial)
    recording = Recording(trial)
    for name in grown_files(before, after):
        whole, start = (after / name).read_bytes(), size_of(before / name)
        for cut in range(start, len(whole), 1 if name.name == "journal.jsonl" else 17):
            (trial / name).write_bytes(whole[:cut])
            recording.refresh()
            assert [step.number for step in recording.steps] == [0, 1]
        check_steps(Recording(trial), [0, 1])
        (trial / name).write_bytes(whole)
    recording.refresh()  # the last byte of the journal's line has arrived
    assert [step.number for step in recording.steps] == [0, 1, 2]
    check_steps(Recording(trial), [0, 1, 2])
    assert Recording(trial).verify()


def test_a_line_that_is_visible_before_its_data_is_held_back(two_moments: tuple[Path, Path], tmp_path: Path) -> None:
    """Network file systems may show the journal first. Every file, cut at many places, then completed."""
    before, after = two_moments
    for name in grown_files(before, after)[:-1]:
        whole, start = (after / name).read_bytes(), size_of(before / name)
        trial = tmp_path / name.name
        shutil.copytree(after, trial)
        for cut in sorted({start, start + 1, (start + len(whole)) // 2, len(whole) - 1}):
            (trial / name).write_bytes(whole[:cut])
            recording = Recording(trial)
            assert [step.number for step in recording.steps] == [0, 1], (name, cut)
            assert recording.problems == []
            (trial / name).write_bytes(whole)
            recording.refresh()
            check_steps(recording, [0, 1, 2])


def test_data_that_never_arrives_is_damage(
    two_moments: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while nobody waits any more: the rest of the step is shown, what is missing is named."""
    _, after = two_moments
    monkeypatch.setattr("endoscope.store.commits.contents.SETTLED_AFTER_SECS", -1.0)
    trial = tmp_path / "trial"
    shutil.copytree(after, trial)
    stats = trial / "rank-0" / "stats-0001.arrow"
    stats.write_bytes(stats.read_bytes()[:-1])
    recording = Recording(trial)
    with pytest.warns(DamageWarning, match=r"stats-0001.arrow is damaged: ends at byte \d+, but \d+ bytes"):
        recording.preload()
    assert [step.number for step in recording.steps] == [0, 1, 2]
    assert recording.series("layer.0", "mean").steps.tolist() == [0, 1]
    assert recording.tensor("layer.0", 2).shape == (2, 3) and len(recording.samples("layer.0", 2)["mean"]) == 4
    assert [(gap.step, "stats-0001.arrow" in gap.reason) for gap in recording.gaps] == [(2, True)]
