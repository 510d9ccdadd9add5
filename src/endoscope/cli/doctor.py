"""`endoscope doctor`: looks at everything that recording and viewing need, and says what is wrong and what to type."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SUMMARY = "say whether everything that Endoscope needs is there"
GOOD, NOTE, WRONG = "ok", "note", "WRONG"
_LEAST_TORCH = (2, 6)
_LEAST_FREE_BYTES = 1_000_000_000


class Result(NamedTuple):
    """What one look has found."""

    verdict: str
    seen: str
    remedy: str = ""  # what to type


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where recordings are, or will be."""
    parser.add_argument("root", metavar="DIR", nargs="?", default="runs", help="folder of trials (default: runs)")


def run(options: argparse.Namespace) -> int:
    """One line for each look; 1 if anything is wrong."""
    results = [(name, result) for name, look in LOOKS.items() for result in _looked(look, Path(options.root))]
    width = max(map(len, LOOKS))
    for name, result in results:
        print(f"{result.verdict:<5}  {name:<{width}}  {result.seen}")
        if result.remedy:
            print(f"{'':<5}  {'':<{width}}  → {result.remedy}")
    wrong = sum(result.verdict == WRONG for _, result in results)
    print(f"\n{wrong} of {len(results)} tests found a problem." if wrong else "\nEverything that is needed is there.")
    return 1 if wrong else 0


def _looked(look: Callable[[Path], Iterator[Result]], root: Path) -> list[Result]:
    try:
        return list(look(root))
    except Exception as error:  # what is broken must not hide the rest
        return [Result(WRONG, f"this test failed with an error: {type(error).__name__}: {error}")]


def _installation(_: Path) -> Iterator[Result]:
    import endoscope

    where = Path(endoscope.__file__).parent
    yield Result(GOOD, f"endoscope {endoscope.__version__} in {where}, Python {platform.python_version()}")
    for name in ("numpy", "pyarrow", "starlette", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            yield Result(WRONG, f"{name} is missing", "pip install --force-reinstall endoscope")


def _torch(_: Path) -> Iterator[Result]:
    if importlib.util.find_spec("torch") is None:
        remedy = 'pip install "endoscope[torch]"    (not needed on a machine that only shows recordings)'
        yield Result(NOTE, "PyTorch is not installed, so recordings can be shown, but not made", remedy)
        return
    version = importlib.metadata.version("torch")
    found = tuple(int(part) for part in version.split("+")[0].split(".")[:2])
    if found < _LEAST_TORCH:
        yield Result(WRONG, f"torch {version} is too old", 'pip install --upgrade "torch>=2.6"')
    else:
        yield Result(GOOD, f"torch {version}")


def _kernels(_: Path) -> Iterator[Result]:
    import warnings

    if importlib.util.find_spec("torch") is None:
        return  # nothing is recorded here
    from endoscope.stats import kernels

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loaded = kernels.load()
    if loaded is not None:
        yield Result(GOOD, f"statistics are computed by compiled code for {loaded.variant}")
    else:
        why = "; ".join(str(one.message) for one in said) or "there is no library for this system"
        yield Result(
            NOTE, f"statistics are computed by torch, which is slower: {why}", "install a C compiler, then endoscope"
        )


def _page(_: Path) -> Iterator[Result]:
    from endoscope.server.page_files import STATIC

    if (STATIC / "index.html").is_file():
        yield Result(GOOD, "the page is built")
    else:
        yield Result(WRONG, "the page is not part of this installation", "make page    (in the folder of the sources)")


def _browser(_: Path) -> Iterator[Result]:
    is_remote = bool(os.environ.get("SSH_CONNECTION"))
    has_display = sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if has_display and not is_remote:
        yield Result(GOOD, "a browser can be opened here")
        return
    remedy = f"ssh -L 6280:127.0.0.1:6280 {platform.node()}    (on your own machine, then open the printed address)"
    yield Result(NOTE, "there is no screen here, so the page has to be looked at from another machine", remedy)


def _port(_: Path) -> Iterator[Result]:
    from endoscope.errors import BadArgument
    from endoscope.server import launch

    try:
        launch.bind("127.0.0.1", launch.FIRST_PORT).close()
    except BadArgument as error:
        remedy = "nothing to do: `endoscope show` takes the next free one"
        yield Result(NOTE, str(error).split(". ")[0], remedy)
    else:
        yield Result(GOOD, f"port {launch.FIRST_PORT} is free")


def _root(root: Path) -> Iterator[Result]:
    """Whether trials can be written, and told apart from those that ended."""
    from endoscope.store.disk import locking

    there = next(folder for folder in [root.absolute(), *root.absolute().parents] if folder.exists())
    if not there.is_dir():
        yield Result(
            WRONG, f"{there} is a file, so no trial can be recorded in {root}", "endoscope doctor ANOTHER_FOLDER"
        )
        return
    try:
        with tempfile.TemporaryDirectory(dir=there, prefix=".endoscope-doctor-") as folder:
            can_lock = locking.is_held(Path(folder)) is not None
    except OSError as error:
        yield Result(WRONG, f"{there} cannot be written: {error.strerror or error}", 'endoscope.Run("ANOTHER_FOLDER")')
        return
    yield Result(GOOD, f"{there} can be written")
    if not can_lock:
        yield Result(NOTE, "folders cannot be locked there, so a killed training counts as running for two minutes")


def _disk(root: Path) -> Iterator[Result]:
    from endoscope.cli.table import human_bytes

    there = next(folder for folder in [root.absolute(), *root.absolute().parents] if folder.exists())
    free = shutil.disk_usage(there).free
    if free < _LEAST_FREE_BYTES:
        remedy = "endoscope rm DIR/trial    (a trial that you do not need), or Run(…, max_bytes=…)"
        yield Result(WRONG, f"only {human_bytes(free)} are free in {there}", remedy)
    else:
        yield Result(GOOD, f"{human_bytes(free)} are free")


def _extras(_: Path) -> Iterator[Result]:
    for name, extra, what in (("duckdb", "sql", "`endoscope query`"), ("pandas", "pandas", "`to_pandas()`")):
        if importlib.util.find_spec(name) is None:
            yield Result(NOTE, f"{name} is not installed, which {what} needs", f'pip install "endoscope[{extra}]"')
        else:
            yield Result(GOOD, f"{name} {importlib.metadata.version(name)}")


#: Name of a look -> what it yields, for the folder of trials.
LOOKS: dict[str, Callable[[Path], Iterator[Result]]] = {
    "installation": _installation, "torch": _torch, "kernels": _kernels, "page": _page, "browser": _browser,
    "port": _port, "folder": _root, "disk": _disk, "extras": _extras,
}  # fmt: skip
