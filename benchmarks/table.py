"""A plain text table, columns aligned, readable in a terminal and in a log."""


def print_table(rows: list[list[str]]) -> None:
    """Print the first row as the head, a rule, and the other rows below."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in [rows[0], ["-" * width for width in widths], *rows[1:]]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()
