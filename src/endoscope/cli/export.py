"""`endoscope export`: recordings as files that other programs read."""

import argparse
from pathlib import Path

SUMMARY = "write recordings as Parquet, CSV or what a plug-in knows"


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is exported, in which form, and where to."""
    parser.add_argument("path", metavar="DIR", help="a trial, or a folder of trials")
    parser.add_argument("--to", metavar="FORMAT", default="parquet", help="parquet (default), csv, or one of a plug-in")
    parser.add_argument("--rank", metavar="N", type=int, help="only what this rank has recorded")
    parser.add_argument("-o", "--output", metavar="FOLDER", default="export", help="a new folder (default: export)")


def run(options: argparse.Namespace) -> int:
    """Write a folder for each trial."""
    from endoscope.query.exporters import export
    from endoscope.query.open import look
    from endoscope.query.recording import Recording

    found = look(options.path)
    recordings = [found] if isinstance(found, Recording) else list(found.values())
    for recording in recordings:
        folder = Path(options.output) / recording.path.name
        of = recording if options.rank is None else recording.rank(options.rank)
        files = export(of, options.to, folder)
        print(f"{folder}: {len(files)} files")
    return 0
