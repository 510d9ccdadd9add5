"""Every link from a page of ours to a file of ours leads somewhere."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.house.pages import prose
from tests.house.tree import ROOT, project_files, relative

LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
# Other sites, mail addresses, a place on the same page.
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//|#)", re.IGNORECASE)

PAGES = [path for path in project_files() if path.suffix == ".md"]


def broken_links(page: Path) -> list[str]:
    local = [link for link in LINK.findall(prose(page)) if not ELSEWHERE.match(link)]
    return [link for link in local if not (page.parent / unquote(link.partition("#")[0])).exists()]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_local_links_resolve(page: Path) -> None:
    assert not broken_links(page)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    links = "[here](page.md#top) [web](https://example.org) [gone](gone.md) [top](#top)"
    page.write_text(links, encoding="utf-8")
    assert broken_links(page) == ["gone.md"]


def linked(page: Path) -> set[Path]:
    """Files of ours that a page leads to."""
    found = [link.partition("#")[0] for link in LINK.findall(prose(page)) if not ELSEWHERE.match(link)]
    return {(page.parent / unquote(link)).resolve() for link in found}


def test_every_page_is_two_clicks_away_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    first = {page for page in linked(index) if page.suffix == ".md" and page.exists()}
    second = set().union(*map(linked, first))
    pages = {page for page in PAGES if relative(page).startswith("docs/") or page.parent == ROOT}
    assert len(pages) > 30
    assert not {relative(page) for page in pages - first - second - {index}}
