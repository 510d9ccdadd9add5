"""Charts, pictures and numbers of the report."""

from __future__ import annotations

import base64
import re
import struct
import zlib

import numpy as np
import pytest

from endoscope.markup import numbers
from endoscope.markup.tags import tag, text
from endoscope.report import heat
from endoscope.report.charts import Event, Line, chart, legend, round_ticks, thinned


def points(svg: str, colour: int = 0) -> list[tuple[float, float]]:
    path = re.search(rf'd="([^"]*)" class="line c{colour}"', svg)
    assert path
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", path[1])]


def test_a_curve_goes_where_its_numbers_go() -> None:
    steps = np.arange(10)
    drawn = points(chart([Line("loss", steps, steps * 2.0)], marks=steps))
    x, y = np.array(drawn).T
    assert len(drawn) == 10 and (np.diff(x) > 0).all() and (np.diff(y) < 0).all()
    assert np.diff(y) == pytest.approx(np.diff(y).mean(), abs=0.2)  # a straight line stays straight


def test_a_wide_range_is_logarithmic() -> None:
    steps = np.arange(9)
    drawn = np.array(points(chart([Line("loss", steps, 10.0**-steps)], marks=steps)))
    assert np.diff(drawn[:, 1]) == pytest.approx(np.diff(drawn[:, 1]).mean(), abs=0.2)


def test_what_is_not_finite_leaves_a_hole_and_a_mark() -> None:
    svg = chart([Line("loss", np.arange(4), np.array([1.0, np.nan, 2.0, np.inf]))], marks=np.arange(4))
    path = re.search(r'd="([^"]*)" class="line c0"', svg)
    assert path and path[1].count("M") == 2 and "broken" in svg and "nan" not in path[1]


def test_events_are_coloured_by_severity() -> None:
    svg = chart([Line("a", np.arange(3), np.ones(3))], marks=np.arange(3), events=[Event(1, "error", "1. <b>")])
    assert 'class="severity-error"' in svg and "1. &lt;b&gt;" in svg


def test_a_legend_only_where_there_is_a_choice() -> None:
    line = Line("one", np.arange(2), np.arange(2))
    assert legend([line]) is None
    assert "two" in str(legend([line, line._replace(name="two", colour=1)]))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0.001, 0.0012), (1e6, 5e6)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    ticks = round_ticks(low, high)
    assert 2 <= len(ticks) <= 7 and all(low - 1e-9 <= tick <= high * (1 + 1e-9) for tick in ticks)


def test_thinning_keeps_the_extremes() -> None:
    values = np.sin(np.arange(10_000) / 50)
    values[1234] = 9.0
    steps, kept = thinned(np.arange(10_000), values)
    assert len(kept) <= 330 and kept.max() == 9.0 and kept.min() == values.min() and (np.diff(steps) > 0).all()


def test_a_picture_is_a_png_with_the_right_pixels() -> None:
    values = np.array([[0.0, 1.0, np.nan], [0.5, np.inf, 0.25]])
    data = base64.b64decode(heat.png(heat.indices(values)).partition(",")[2])
    assert data.startswith(b"\x89PNG") and struct.unpack(">II", data[16:24]) == (3, 2)
    at = data.index(b"IDAT")
    size = struct.unpack(">I", data[at - 4 : at])[0]
    rows = np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + size]), np.uint8).reshape(2, 4)
    assert rows[:, 0].tolist() == [0, 0]  # no filter
    assert rows[0, 1:].tolist() == [0, 63, 64] and rows[1, 1:].tolist() == [32, 65, 16]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456, "0.123"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (12345.0, "12\u202f345"),
        (-0.5, "−0.5"),
        (3e-7, "3e-07"),
    ],
)
def test_numbers(value: float, shown: str) -> None:
    assert numbers.number(value) == shown


def test_text_is_escaped_unless_it_is_markup() -> None:
    assert tag("b", "<i>", tag("i", "x & y"), title='"') == '<b title="&quot;">&lt;i&gt;<i>x &amp; y</i></b>'
    assert text("a\x00b") == "a�b"
