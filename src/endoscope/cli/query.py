"""`endoscope query`: SQL over a trial or a folder of trials."""

import argparse

SUMMARY = "query a recording with SQL"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where, what, and in which form."""
    parser.add_argument("path", metavar="DIR", help="a trial, or a folder of trials")
    parser.add_argument("sql", help='for example: "select node, max(norm) from stats group by node"')
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a list of objects")
    form.add_argument("--csv", action="store_true", help="print comma-separated values")


def run(options: argparse.Namespace) -> int:
    """Print the rows."""
    import endoscope
    from endoscope.cli.table import format_table

    answer = endoscope.open(options.path).sql(options.sql)
    if options.json:
        print(_json(answer.to_dicts()))
    elif options.csv:
        _print_csv(answer.columns, answer.rows)
    else:
        print(format_table(answer.columns, answer.rows))
    return 0


def _json(rows: list[dict[str, object]]) -> str:
    import json

    # One row per line: easy to read, and easy to cut.
    return "[\n" + ",\n".join(json.dumps(_plain(row), default=str) for row in rows) + "\n]"


def _plain(value: object) -> object:
    """JSON knows no NaN and no infinities; null and text can be read by every program."""
    import math

    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _print_csv(columns: list[str], rows: list[tuple[object, ...]]) -> None:
    import csv
    import sys

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
