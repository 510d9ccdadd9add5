"""`endoscope differences`: what differs between two types of step, two trials or two categories of samples."""

from __future__ import annotations

import argparse
import textwrap

SUMMARY = "compare two types of step, trials or categories"
_WIDTH = 110


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is compared, and how much of it is told."""
    parser.add_argument("path", metavar="DIR", help="a trial; for --trial the folder of both")
    sides = parser.add_mutually_exclusive_group(required=True)
    sides.add_argument("--type", nargs=2, metavar=("A", "B"), help="two types of step")
    sides.add_argument("--trial", nargs=2, metavar=("A", "B"), help="two trials")
    sides.add_argument("--category", nargs=2, metavar=("A", "B"), help="two categories of samples")
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="probability that no difference is chance (default: 0.95)"
    )
    parser.add_argument("--most", type=int, default=20, help="how many are printed (default: 20)")
    parser.add_argument("--json", action="store_true", help="print all, as a list of objects")


def run(options: argparse.Namespace) -> int:
    """Print the differences, the strongest first."""
    import json

    import endoscope

    sides = {name: tuple(getattr(options, name)) for name in ("type", "trial", "category") if getattr(options, name)}
    found = endoscope.differences(options.path, **sides, confidence=options.confidence)
    if options.json:
        print(json.dumps([one.to_dict() for one in found], indent=2))
        return 0
    if not found:
        print("Nothing differs by more than chance.")
    for number, one in enumerate(found[: options.most], start=1):
        more = f" Also: {', '.join(one.also)}." if one.also else ""
        print(textwrap.fill(f"{number}. {one.sentence}{more}", _WIDTH, subsequent_indent="   "))
    if len(found) > options.most:
        print(f"… and {len(found) - options.most} more; --most {len(found)} prints all.")
    return 0
