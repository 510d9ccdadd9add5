"""SQL over recordings: the tables, all trials at once, and nothing but the tables."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import endoscope
from endoscope.errors import BadArgument, MissingDependencyError
from endoscope.query.catalog import Recordings
from tests.query.small_recording import STEPS, numbers_of, write_small_recording

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    root = tmp_path_factory.mktemp("runs")
    write_small_recording(root, "first")
    write_small_recording(root, "it's the second")
    found = endoscope.open(root)
    assert isinstance(found, Recordings)
    return found


def test_statistics_with_names_and_types(trials: Recordings) -> None:
    query = "select step, type, node, role, pass, of, mean from stats order by ordinal, key"
    expected = [
        (number, type_, key.node, key.role, key.pass_, key.of, numbers_of(ordinal).whole["mean"][row])
        for ordinal, (number, type_, keys) in enumerate(STEPS)
        for row, key in enumerate(keys)
    ]
    found = sorted(trials["first"].sql(query).rows)
    assert found == sorted(expected)


def test_the_answer(trials: Recordings) -> None:
    answer = trials["first"].sql("select node, count(*) as n from stats group by node order by node limit 2")
    assert answer.columns == ["node", "n"] and len(answer) == 2
    assert answer.rows == answer.fetchall() == list(answer) == [("encoder", 17), ("encoder.weight", 5)]
    assert answer.to_dicts()[0] == {"node": "encoder", "n": 17}
    assert isinstance(answer.to_arrow(), pa.Table) and answer.to_pandas()["n"].tolist() == [17, 5]
    assert repr(answer) == "<Answer: 2 rows of node, n>"


@pytest.mark.parametrize("table", ["stats", "samples", "units", "steps", "metrics", "notes", "gaps", "keys"])
def test_every_table_has_the_rows_of_to_arrow(trials: Recordings, table: str) -> None:
    recording = trials["first"]
    found = recording.sql(f"select * from {table}").to_arrow()
    expected = recording.to_arrow(table)
    assert set(found.column_names) == set(expected.column_names) | {"trial", "rank"}
    assert found.num_rows == expected.num_rows > 0
    for name in expected.column_names:
        assert sorted(map(str, found[name].to_pylist())) == sorted(map(str, expected[name].to_pylist()))


def test_samples_are_rows(trials: Recordings) -> None:
    query = (
        "select sample, mean from samples where node = 'encoder' and pass = 1 and of = 'value' and step = 5 order by 1"
    )
    assert sorted(trials["first"].sql(query).rows) == [(n, numbers_of(4).samples["mean"][n]) for n in range(6)]


def test_all_trials_at_once(trials: Recordings) -> None:
    answer = trials.sql("select trial, max(step) as last from steps group by trial order by trial")
    assert answer.rows == [("first", 5), ("it's the second", 5)]
    joined = trials.sql("select count(*) from stats a join stats b using (step, key, ordinal) where a.trial < b.trial")
    assert joined.rows == [(sum(len(keys) for _, _, keys in STEPS),)]


def test_tables_can_be_listed_and_described(trials: Recordings) -> None:
    assert {"stats", "samples", "metrics"} <= {name for (name,) in trials["first"].sql("show tables").rows}
    described = {row[0] for row in trials["first"].sql("describe stats").rows}
    assert {"trial", "step", "type", "node", "abs_max", "q50", "hist", "shape"} <= described


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec 1", "syntax error"),
        ("select nonsense from stats", r"nonsense[\s\S]*Tables: keys, stats, samples"),
        ("select * from elsewhere", "elsewhere"),
        ("select * from read_csv('secrets.csv')", "disabled by configuration"),
        ("copy steps to 'out.csv'", "disabled by configuration"),
        ("set enable_external_access = true", "configuration has been locked"),
        ("select * from trials", "trials"),
        ("", "A query is a text such as"),
        (None, "A query is a text such as"),
    ],
)
def test_what_cannot_be_asked(trials: Recordings, query: str, message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        trials["first"].sql(query)


def test_a_statement_without_an_answer(trials: Recordings) -> None:
    assert trials["first"].sql("drop table if exists mine").rows == []


def test_without_duckdb(trials: Recordings, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match=r'SQL needs DuckDB.*pip install "endoscope\[sql\]"'):
        trials["first"].sql("select 1")


def test_without_pandas(trials: Recordings, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r'to_pandas\(\) needs pandas.*pip install "endoscope\[pandas\]"'):
        trials["first"].to_pandas()


def test_nan_and_infinity_survive(tmp_path: Path) -> None:
    from endoscope.store.writer import TrialWriter
    from tests.store.made_up import measured, step_record

    writer = TrialWriter.create(tmp_path, "trial")
    numbers = measured(3)
    numbers.whole["mean"] = np.array([np.nan, np.inf, -np.inf])
    writer.write_step(step_record(writer, 0, measured=numbers))
    found = [mean for (mean,) in endoscope.open(writer.path).sql("select mean from stats order by key").rows]
    assert np.isnan(found[0]) and found[1:] == [np.inf, -np.inf]
