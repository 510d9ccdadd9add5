"""`endoscope report`: recordings and what was found in them as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "make one HTML file of recordings, or of a saved trace"


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is reported, and into which file."""
    parser.add_argument(
        "path", metavar="PATH", nargs="?", default="runs", help="a trial, a folder, or a saved trace (default: runs)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="default: report.html")
    parser.add_argument("--trial", metavar="T", help="only this trial of the folder")
    parser.add_argument("--rank", metavar="N", type=int, help="only what this rank has recorded")


def run(options: argparse.Namespace) -> int:
    """Write the file; whoever opens an older one of that name meanwhile sees the older one."""
    import os

    from endoscope.cli.table import human_bytes
    from endoscope.errors import BadArgument
    from endoscope.query import places

    file = Path(options.output)
    if file.is_dir():
        raise BadArgument(f"{file} is a folder. Type the name of a file: -o {file / 'report.html'}")
    if not file.parent.is_dir():
        raise BadArgument(f"There is no folder {file.parent} for {file.name}. Make it, or type another: -o report.html")
    text = _of_trace(options) if places.is_trace(options.path) else _of_recordings(options)
    page = text.encode("utf-8", errors="replace")
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.write_bytes(page)
    os.replace(unfinished, file)
    print(f"{file} ({human_bytes(len(page))})")
    return 0


def _of_recordings(options: argparse.Namespace) -> str:
    from endoscope.report.build import report

    return report(Path(options.path), options.trial, options.rank)


def _of_trace(options: argparse.Namespace) -> str:
    import endoscope
    from endoscope.errors import BadArgument

    for name in ("trial", "rank"):
        if getattr(options, name) is not None:
            raise BadArgument(
                f"{options.path} is a trace of one forward pass, which has no {name}. Leave --{name} out."
            )
    return str(endoscope.load(options.path).to_html())
