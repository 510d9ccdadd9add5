"""The pages about the code speak of the code that is there."""

import re
from pathlib import Path

import pytest

from tests.house.pages import prose
from tests.house.test_layers import MAY_IMPORT, USES_PUBLIC_NAMES
from tests.house.tree import PACKAGE, ROOT, SRC, relative

ARCHITECTURE = ROOT / "ARCHITECTURE.md"
CAPTURE = PACKAGE / "capture"
_LAYER = re.compile(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|([^|]*)\|$", re.MULTILINE)


def layers() -> dict[str, tuple[str, bool]]:
    """The table of layers: name -> what it may import, and whether it is there."""
    return {name: (allowed, not note.strip()) for name, allowed, note in _LAYER.findall(prose(ARCHITECTURE))}


def test_the_table_of_layers_is_the_one_that_is_enforced() -> None:
    told = {name: set(re.findall(r"`(\w+)`", allowed)) for name, (allowed, _) in layers().items()}
    assert {name: told[name] for name in told if name not in USES_PUBLIC_NAMES} == MAY_IMPORT
    assert set(told) == set(MAY_IMPORT) | USES_PUBLIC_NAMES


def test_layers_are_there_unless_the_table_says_otherwise() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {name for name, (_, exists) in layers().items() if exists} == there - {"__init__"}


@pytest.mark.parametrize(
    ("page", "bases"), [(ARCHITECTURE, (PACKAGE, ROOT)), (CAPTURE / "README.md", (CAPTURE, PACKAGE))]
)
def test_files_that_a_page_names_exist(page: Path, bases: tuple[Path, ...]) -> None:
    named = set(re.findall(r"[\w/]+\.py\b", page.read_text(encoding="utf-8")))
    assert named
    missing = {name for name in named if not any(_is_below(base, name) for base in bases)}
    assert not missing, f"{relative(page)} names files that are not there"


def _is_below(base: Path, name: str) -> bool:
    """In the folder itself, or, of a README, in one of its sub-folders."""
    return (base / name).exists() or (base == CAPTURE and any(CAPTURE.glob(f"*/{name}")))


def test_every_file_of_the_hard_folder_is_explained() -> None:
    text = (CAPTURE / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in CAPTURE.rglob("*.py") if path.name != "__init__.py"}
    assert not {name for name in files if name not in text}, "files that capture/README.md does not mention"


def test_the_journey_passes_through_every_file_of_the_proof() -> None:
    text = prose(ARCHITECTURE)
    files = {path.relative_to(SRC / "endoscope").as_posix() for path in (PACKAGE / "replay").glob("*.py")}
    assert not {name for name in files if "__init__" not in name and name not in text}
