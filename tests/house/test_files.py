"""Nothing in the files of the project belongs to one machine."""

import re
from pathlib import Path

import pytest

from tests.house.tree import project_files, relative

# Written in pieces, so that this file does not contain what it forbids.
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:work|root|tmp|home|users|opt)" + "/", re.IGNORECASE)
REGISTRY = re.compile("py" + r"pi\.org|python" + r"hosted\.org|download\.py" + r"torch|registry\.n" + "pmjs")


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    """Every place in a text file of the project where the pattern occurs, as `file:line: text`."""
    return [
        f"{relative(path)}:{number}: {line.strip()}"
        for path in project_files()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if pattern.search(line)
    ]


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""  # pictures and other binaries


def test_no_paths_of_one_machine() -> None:
    assert not lines_with(MACHINE_PATH)


def test_no_addresses_of_package_registries() -> None:
    assert not lines_with(REGISTRY)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("open('/{}/x.txt')", True),
        ("see /{}/ada/runs", True),
        ("a/{}/b", False),
        ("https://a.org/{}/b", False),
    ],
)
@pytest.mark.parametrize("folder", ["tmp", "root", "home", "work"])
def test_machine_paths_are_told_from_other_slashes(text: str, found: bool, folder: str) -> None:
    assert bool(MACHINE_PATH.search(text.format(folder))) is found
