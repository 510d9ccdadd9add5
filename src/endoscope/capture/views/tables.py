"""Lists of operations, layers and modules that can also be had as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from endoscope.analysis.selecting.patterns import nearest
from endoscope.errors import LookupFailed, MissingDependencyError
from endoscope.markup.notebook import Shown, table
from endoscope.markup.tags import Markup, tag

Row = TypeVar("Row")
_MOST_SHOWN = 100  # rows, in a notebook

#: Columns of each kind of row; an attribute that is missing or has no plain form becomes text.
COLUMNS = {
    "Op": (
        "label layer type kind pass_ path shape dtype bytes seconds flops parents children modules functions source"
    ).split(),
    "Apart": "label type status max_abs relative cosine note".split(),
    "Layer": "label type passes shape bytes seconds flops modules".split(),
    "ModuleInfo": "address type passes parameters trainable bytes seconds flops training children".split(),
}


class MadeRows(Sequence[Row]):
    """Rows by number, made when they are looked at."""

    def __init__(self, make: Callable[[int], Row], numbers: Sequence[int]) -> None:
        self._make, self._numbers = make, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        return self._make(self._numbers[index])

    def __iter__(self) -> Iterator[Row]:
        return map(self._make, self._numbers)


class Table(Sequence[Row], Shown, Generic[Row]):
    """A sequence with labels: `table[3]`, `table["relu_1_2"]`, `table.to_pandas()`."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, key: int | str) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Table[Row]: ...
    def __getitem__(self, key: int | str | slice) -> Row | Table[Row]:
        if isinstance(key, slice):
            return Table([self._rows[i] for i in range(*key.indices(len(self._rows)))])
        if isinstance(key, str):
            for row in self._rows:
                if row.label == key:  # type: ignore[attr-defined]
                    return row
            labels = [row.label for row in self._rows]  # type: ignore[attr-defined]
            raise LookupFailed(f"{key!r} is not in this table. Nearest: {', '.join(nearest(key, labels))}.")
        return self._rows[key]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __add__(self, other: Sequence[Row]) -> Table[Row]:
        return Table([*self._rows, *other])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Table, list, tuple)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(str(getattr(self._rows[i], "label", i)) for i in range(min(8, len(self))))
        return f"<Table of {len(self)}: {shown}>"

    def _block(self) -> Markup:
        columns = self[:_MOST_SHOWN].columns()
        rows = list(zip(*([_short(cell) for cell in cells] for cells in columns.values()), strict=True))
        more = len(self) - len(rows)
        note = tag("p", f"{more} more: .to_pandas() has all of them.", class_="soft") if more else None
        return tag("div", table(tuple(columns), rows), note)

    def columns(self) -> dict[str, list[Any]]:
        """Column name -> plain values."""
        if not self._rows:
            return {}
        names = COLUMNS.get(type(self._rows[0]).__name__, ["label"])
        plain = {name: str if name in ("shape", "dtype") else _plain for name in names}
        return {name.rstrip("_"): [plain[name](getattr(row, name)) for row in self._rows] for name in names}

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
        try:
            import pyarrow
        except ImportError as error:
            raise MissingDependencyError("to_arrow() needs pyarrow. Type: pip install pyarrow") from error
        return pyarrow.table(self.columns())

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`."""
        try:
            import pandas
        except ImportError as error:
            raise MissingDependencyError("to_pandas() needs pandas. Type: pip install pandas") from error
        return pandas.DataFrame(self.columns())


def _short(cell: Any) -> str:
    if isinstance(cell, list):
        return ", ".join(map(str, cell))
    return f"{cell:.3g}" if isinstance(cell, float) else "" if cell is None else str(cell)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return [_label_or_text(v) for v in value]
    return str(value)


def _label_or_text(value: Any) -> str:
    return str(getattr(value, "label", value))
