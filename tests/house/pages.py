"""Reading our own Markdown pages."""

import re
from pathlib import Path

_HEADING = re.compile(r"^#{1,6}\s+(.*)$", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """The page without its code blocks, where `# comment` is no heading and `a[0](b)` no link."""
    return _CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))


def headings(page: Path) -> list[str]:
    """The text of every heading of a page."""
    return _HEADING.findall(prose(page))
