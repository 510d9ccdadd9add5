"""Where Endoscope keeps what it can make again."""

import sys
from pathlib import Path

import pytest

from endoscope.schema import folders


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "chosen"}, Path("chosen", "endoscope")),
        ("linux", {"HOME": "home"}, Path("home", ".cache", "endoscope")),
        ("darwin", {"HOME": "home"}, Path("home", "Library", "Caches", "endoscope")),
        ("win32", {"LOCALAPPDATA": "local"}, Path("local", "endoscope")),
    ],
)
def test_where_caches_are(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: Path
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert folders.user_cache() == folder
