"""How many files of ours a recorded step passes on the training thread, if it is not traced.

python benchmarks/files_passed.py [--models NAMES] [--list]

Counted are the files of which a function is called from the beginning of the loop's body to its end, by the profile
function of the interpreter. It is the 20th captured step: traced are the 1st, 2nd, 4th, 8th, 16th and so on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import measure

measure.one_thread()

from table import print_table  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
from ways_to_record import open_run, watch  # noqa: E402
from zoo import Net, select  # noqa: E402

import endoscope  # noqa: E402

CAPTURED = 20
FILES_AT_MOST = 25
PACKAGE = Path(endoscope.__file__).parent
USUAL = "MLP, BatchNorm, TransformerEncoder, GAN, ViT"


class Passed:
    """The calls of our functions in a block, in the thread that enters it: (file, function) -> calls."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> Passed:
        sys.setprofile(self._saw)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.setprofile(None)

    def _saw(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith(str(PACKAGE)):
                self.calls[code.co_filename, code.co_qualname] += 1

    def files(self) -> list[tuple[str, int, int]]:
        """File, functions that were called, and calls."""
        functions = Counter(file for file, _ in self.calls)
        calls: Counter[str] = Counter()
        for (file, _), count in self.calls.items():
            calls[file] += count
        return [(file, functions[file], calls[file]) for file in sorted(functions)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Files of endoscope that a recorded step passes.")
    parser.add_argument("--models", default=USUAL, help=f"comma-separated words; usually: {USUAL}")
    parser.add_argument("--list", action="store_true", help="the files of each net, not only of the one with the most")
    options = parser.parse_args()
    passed = {net.name: _passed(net) for net in select(options.models)}
    most = max(passed, key=lambda name: len(passed[name].files()))
    for name in passed if options.list else [most]:
        _print_files(name, passed[name])
    rows = [[name, str(len(found.files())), str(len(found.calls))] for name, found in passed.items()]
    print_table([["net", "files", "functions"], *rows])
    count = len(passed[most].files())
    print(f"At most {count} files, target ≤ {FILES_AT_MOST} {'MISSED' if count > FILES_AT_MOST else 'ok'}")


def _passed(net: Net) -> Passed:
    """Of the step that is the 20th captured one; every update is a captured step."""
    training = net.make()
    with tempfile.TemporaryDirectory() as folder, open_run(folder, "passed", when=1, keep=0) as run:
        watch(run, training)
        for _ in range(CAPTURED // training.updates - 1):
            training.step()
        run.flush()
        with Passed() as passed:
            training.step()
        run.flush()
    return passed


def _print_files(name: str, passed: Passed) -> None:
    rows = [
        [str(Path(file).relative_to(PACKAGE)), str(_lines(file)), str(functions), str(calls)]
        for file, functions, calls in passed.files()
    ]
    total = [f"{len(rows)} files", *(str(sum(int(row[column]) for row in rows)) for column in (1, 2, 3))]
    print(f"\n{name}, step {CAPTURED} of the captured ones\n")
    print_table([["file", "lines", "functions", "calls"], *rows, total])


def _lines(file: str) -> int:
    return len(Path(file).read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    main()
