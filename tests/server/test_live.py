"""News while a training runs."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

from endoscope.server import library, live
from endoscope.server.custom_views.views import Views
from endoscope.server.library import Library
from endoscope.server.live import Live
from endoscope.store.writer import TrialWriter
from tests.store.made_up import step_record, write_trial


def opened(path: Path, trial: str) -> Library:
    """With one trial that somebody looks at: the others are news of the table of all."""
    library = Library(path)
    library.get(trial)
    return library


def test_a_trial_that_grows_is_news(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "one")
    writer.write_step(step_record(writer, 0))
    watching = Live(opened(tmp_path, "one"), Views())
    assert [name for name, _ in watching.news()] == ["trial"]
    assert watching.news() == []
    writer.write_step(step_record(writer, 4))
    news = {"trial": "one", "steps": 2, "metrics": 2, "lastStep": 4, "closed": False}
    assert watching.news() == [("trial", news)]
    writer.write_metrics(9, "train", 1.0, {"loss": 1.0})
    writer.commit()
    assert watching.news() == [("trial", {**news, "metrics": 3})]
    writer.close()
    assert watching.news() == [("trial", {**news, "metrics": 3, "closed": True})]
    assert watching.news() == []


def test_new_and_removed_trials_are_news(tmp_path: Path) -> None:
    write_trial(tmp_path, "a", range(2))
    library = opened(tmp_path, "a")
    watching = Live(library, Views())
    watching.news()
    write_trial(tmp_path, "b", range(3))
    assert watching.news() == [("catalog", {"trials": ["a", "b"]})]
    library.get("b")
    assert dict(watching.news())["trial"]["steps"] == 3
    shutil.rmtree(tmp_path / "a")
    assert watching.news() == [("catalog", {"trials": ["b"]})]
    shutil.rmtree(tmp_path)
    assert watching.news() == []


def test_a_changed_file_of_views_is_news(tmp_path: Path) -> None:
    write_trial(tmp_path / "runs", "a", range(1))
    file = tmp_path / "v.py"
    file.write_text("")
    watching = Live(Library(tmp_path / "runs"), Views(file))
    watching.news()
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000))
    assert watching.news() == [("views", {"file": str(file)})]


def parsed(text: str) -> tuple[str, Any]:
    first, second = text.strip().splitlines()
    return first.removeprefix("event: "), json.loads(second.removeprefix("data: "))


def test_everybody_who_listens_is_told_until_the_server_ends(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(live, "POLL_SECS", 0.01)
    writer = TrialWriter.create(tmp_path, "one")
    writer.write_step(step_record(writer, 0))

    async def listen() -> list[list[int]]:
        watching = Live(opened(tmp_path, "one"), Views())
        listeners = [watching.listen(), watching.listen()]
        for listener in listeners:
            assert (await anext(listener)).startswith(":")
        seen: list[list[int]] = [[], []]
        for number in (1, 2):
            for told, listener in zip(seen, listeners, strict=True):
                told.append(parsed(await anext(listener))[1]["steps"])
            writer.write_step(step_record(writer, number))
        watching.stop()
        rest = [[text async for text in listener] for listener in listeners]
        assert all(len(texts) <= 1 for texts in rest)
        assert not watching._listeners
        return seen

    assert asyncio.run(asyncio.wait_for(listen(), 20)) == [[1, 2], [1, 2]]
    writer.close()


def test_a_page_that_begins_when_nobody_has_listened_sees_what_is_there_now(
    tmp_path: Path, monkeypatch: Any, serve: Any
) -> None:
    writer = TrialWriter.create(tmp_path, "a")
    writer.write_step(step_record(writer, 0))
    client = serve(tmp_path)
    monkeypatch.setattr(library, "_STALE_SECS", 0.0)
    writer.write_step(step_record(writer, 5))
    write_trial(tmp_path, "b", range(3))
    listed = client.get("/api/catalog").json()["trials"]
    assert [(trial["name"], trial["lastStep"]) for trial in listed] == [("a", 5), ("b", 2)]
    write_trial(tmp_path, "c", range(4))
    assert b"trials/c/steps/3" in client.get("/api/start").content
