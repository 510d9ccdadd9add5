"""Docs are code: whatever a user can type has a heading."""

import re

import endoscope
from endoscope.cli import commands
from tests.house.pages import headings
from tests.house.tree import ROOT


def code_in_headings(folder: str) -> list[str]:
    """The `code` parts of all headings below a folder: "endoscope.trace(target)", "endoscope demo"."""
    titles = [title for page in sorted((ROOT / folder).rglob("*.md")) for title in headings(page)]
    return [code for title in titles for code in re.findall(r"`([^`]+)`", title)]


def test_every_public_name_has_a_heading_in_the_reference() -> None:
    typed = [code.removeprefix("endoscope.") for code in code_in_headings("docs/reference")]
    documented = {re.split(r"\W", code)[0] for code in typed}
    public = {name for name in endoscope.__all__ if not name.startswith("__")}
    assert not public - documented, "public names without a heading in docs/reference"


def test_every_command_has_a_heading() -> None:
    missing = {f"endoscope {name}" for name in commands.COMMANDS} - set(code_in_headings("docs"))
    assert not missing, "commands without a heading in docs"


def test_the_changelog_knows_this_version_or_has_unreleased_changes() -> None:
    titles = headings(ROOT / "CHANGELOG.md")
    assert any(title.startswith(("Unreleased", endoscope.__version__)) for title in titles)
