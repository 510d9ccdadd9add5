"""Where things are in this checkout, shared by the house tests."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PACKAGE = SRC / "endoscope"

_NOT_OURS = {"__pycache__", "node_modules", "build", "dist", "site", "runs"}


def sources() -> list[Path]:
    """Every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def project_files() -> list[Path]:
    """Every file that is, or is about to be, under version control."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):  # an unpacked source archive has no git
        return _walk(ROOT)
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    return sorted(path for path in paths if path.is_file())


def relative(path: Path) -> str:
    """The path as a person would write it in this project."""
    return path.relative_to(ROOT).as_posix()


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that finds the package in this checkout; never raises."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SRC)!r})\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)


def _walk(folder: Path) -> list[Path]:
    paths = []
    for path in sorted(folder.iterdir()):
        if path.name in _NOT_OURS or (path.name.startswith(".") and path.is_dir() and path.name != ".ci"):
            continue
        paths += _walk(path) if path.is_dir() else [path]
    return paths
