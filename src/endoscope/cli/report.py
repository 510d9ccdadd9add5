"""`endoscope report`: recordings and what was found in them as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "write findings, curves and the graph into one HTML file"


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is reported, and into which file."""
    parser.add_argument("path", metavar="DIR", nargs="?", default="runs", help="a trial, or a folder (default: runs)")
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="default: report.html")
    parser.add_argument("--trial", metavar="T", help="only this trial of the folder")
    parser.add_argument("--rank", metavar="N", type=int, help="only what this rank has recorded")


def run(options: argparse.Namespace) -> int:
    """Write the file; whoever opens an older one of that name meanwhile sees the older one."""
    import os

    from endoscope.cli.table import human_bytes
    from endoscope.errors import BadArgument
    from endoscope.report.build import report

    file = Path(options.output)
    if file.is_dir():
        raise BadArgument(f"{file} is a folder. Type the name of a file: -o {file / 'report.html'}")
    if not file.parent.is_dir():
        raise BadArgument(f"There is no folder {file.parent} for {file.name}. Make it, or type another: -o report.html")
    page = report(Path(options.path), options.trial, options.rank).encode("utf-8", errors="replace")
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.write_bytes(page)
    os.replace(unfinished, file)
    print(f"{file} ({human_bytes(len(page))})")
    return 0
