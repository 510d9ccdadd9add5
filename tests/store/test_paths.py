"""Names of trials and files."""

import threading
from pathlib import Path

import pytest

from endoscope.errors import BadArgument, StoreError
from endoscope.store import description, paths, sealed
from endoscope.store.joining import Member
from endoscope.store.writer import TrialWriter
from tests.store.made_up import step_record, write_trial


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    names = [TrialWriter.create(tmp_path, "lr 0.1").name for _ in range(3)]
    assert names == ["lr 0.1", "lr 0.1-2", "lr 0.1-3"]
    assert (tmp_path / "lr 0.1-3" / "trial.json").exists()


def test_an_existing_folder_that_is_no_trial_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.tex").write_text("x")
    assert TrialWriter.create(tmp_path, "a").name == "a-2"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["thesis.tex"]


def test_two_trials_of_one_name_at_the_same_moment(tmp_path: Path) -> None:
    claimed: list[Path] = []
    threads = [threading.Thread(target=lambda: claimed.append(paths.claim(tmp_path, "a"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.name for path in claimed) == ["a", *[f"a-{n}" for n in range(2, 9)]]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "needs a name"),
        ("  ", "needs a name"),
        (7, "needs a name"),
        ("a/b", "a slash would make it several folders"),
        ("a\\b", "a slash"),
        ("..", "starts with a dot"),
        (".hidden", "starts with a dot"),
        ("a\nb", "control character"),
        ("x" * 300, "300 bytes"),
    ],
)
def test_names_that_cannot_be_folders(name: object, reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match=reason):
        TrialWriter.create(tmp_path, name)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"No trial can be recorded in .*file: .* Choose a folder that"):
        TrialWriter.create(tmp_path / "file", "a")


def test_a_budget_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="max_bytes=0 is too small"):
        TrialWriter.create(tmp_path, "a", max_bytes=0)


def test_processes_of_a_job_join_one_trial(tmp_path: Path) -> None:
    first = TrialWriter.create(tmp_path, "a", member=Member(1, 2, "job"))
    second = TrialWriter.create(tmp_path, "a", member=Member(0, 2, "job"))
    assert second.path == first.path and paths.ranks_of(first.path) == [0, 1]
    other = TrialWriter.create(tmp_path, "a", member=Member(1, 2, "another job"))
    alone = TrialWriter.create(tmp_path, "a")
    assert [other.name, alone.name] == ["a-2", "a-3"]
    assert not list(tmp_path.glob(".*"))


def test_a_process_that_restarts_writes_another_attempt(tmp_path: Path) -> None:
    member = Member(1, 2, "job")
    for attempt in range(3):
        writer = TrialWriter.create(tmp_path, "a", member=member)
        assert writer.place.folder == paths.rank_folder(tmp_path / "a", 1, attempt)
        writer.write_step(step_record(writer, attempt))
    assert paths.attempts_of(tmp_path / "a", 1) == [0, 1, 2]
    resumed = TrialWriter.create(tmp_path, "a", member=member._replace(job="another job"), resume=True)
    assert resumed.next_step == 3 and resumed.place.folder.name == "attempt-3"


def test_only_the_first_process_writes_what_is_shared(tmp_path: Path) -> None:
    for rank in (1, 0):
        writer = TrialWriter.create(tmp_path, "a", member=Member(rank, 2, "job"), config={"of": rank})
        writer.update_config({"more": rank})
        writer.write_meshes([{"names": ["data"], "shape": [2], "ranks": [0, 1], "coordinate": [rank]}])
    assert description.read(tmp_path / "a")[0]["config"] == {"of": 0, "more": 0}
    found = sealed.unseal((tmp_path / "a" / "rank-1" / "rank.json").read_bytes())
    assert found is not None
    assert found["config"] == {"of": 1, "more": 1} and found["meshes"][0]["coordinate"] == [1]
    assert (found["rank"], found["world_size"], found["job"], found["attempt"]) == (1, 2, "job", 0)


def test_trials_are_listed_by_name_with_numbers_as_numbers(tmp_path: Path) -> None:
    for name in ("run-10", "run-9", "b", "run-9²"):
        write_trial(tmp_path, name, steps=[0])
    (tmp_path / "other").mkdir()
    (tmp_path / "file").write_text("x")
    assert [path.name for path in paths.trials_in(tmp_path)] == ["b", "run-9", "run-9²", "run-10"]


@pytest.mark.parametrize(
    ("file", "table"),
    [("stats-0001.arrow", "stats"), ("keys-12345.arrow", "keys"), ("stats-1.arrow", ""), ("raw/1-1.safetensors", "")],
)
def test_which_table_a_file_belongs_to(file: str, table: str) -> None:
    assert paths.table_of(file) == table


def test_a_relative_root_survives_a_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from endoscope.query.open import open as open_recording
    from tests.store.made_up import check_steps, step_record

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    writer = TrialWriter.create("runs", "trial")
    writer.write_step(step_record(writer, 0))
    one, folder = open_recording("runs/trial"), open_recording("runs")
    monkeypatch.chdir(tmp_path / "elsewhere")
    writer.write_step(step_record(writer, 1))
    writer.write_modules({"modules": []})
    writer.update_config({"lr": 0.1})
    writer.close()
    assert writer.path == tmp_path / "runs" / "trial" and not list(Path.cwd().iterdir())
    for found in (one, folder):
        found.refresh()
    check_steps(one, [0, 1])
    check_steps(folder["trial"], [0, 1])
    assert one.config == {"lr": 0.1} and folder["trial"].verify()
