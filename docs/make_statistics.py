"""Writes the table of reference/statistics.md from what is registered:  python docs/make_statistics.py"""

from __future__ import annotations

from pathlib import Path

from endoscope.schema.stats import BUILT_IN

PAGE = Path(__file__).parent / "reference" / "statistics.md"
BEGIN = "<!-- statistics: python docs/make_statistics.py -->\n"
END = "<!-- end -->\n"


def table() -> str:
    rows = ["| statistic | what it is | on the page | of samples | of units |", "|---|---|---|---|---|"]
    for one in BUILT_IN:
        of_parts = " | ".join("yes" if there else "" for there in (one.of_samples, one.of_units))
        rows.append(f"| `{one.name}` | {one.about} | {one.label} | {of_parts} |")
    return "\n".join(rows) + "\n"


def written(text: str) -> str:
    """The page, with today's table in it."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{behind}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
