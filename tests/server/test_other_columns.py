"""Recordings of other versions, whose tables have a column less or a column more: in Python and in the page."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import endoscope
from endoscope.errors import EndoscopeError
from endoscope.query import bulk
from endoscope.query.catalog import Recordings
from endoscope.query.recording import Recording
from endoscope.schema.stats import WHOLE
from endoscope.store.writer import TrialWriter
from tests.house.tree import ROOT
from tests.server.conftest import table
from tests.store.forging import rewrite, with_column, without
from tests.store.made_up import step_record, write_trial

GOLDEN = ROOT / "tests" / "golden" / "recordings" / "format-1" / "everything"
LESS = ("norm", "zeros", "q25", "abs_max", "nans")  # a number, counts, a quantile; some per sample and per unit, too


def doubled(rows: int) -> pa.Array:
    return pa.array(np.arange(rows) / 2)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The golden recording as it is, with columns less, and with columns more."""
    for name in ("as it is", "less", "more"):
        shutil.copytree(GOLDEN, tmp_path / "runs" / name)
    rewrite(tmp_path / "runs" / "less" / "rank-0", without(*LESS))
    more = tmp_path / "runs" / "more" / "rank-0"
    rewrite(more, with_column("stats", "tailedness", 9, doubled))
    rewrite(more, with_column("metrics", "unit", 1, lambda rows: pa.array(["s"] * rows)))
    rewrite(more, with_column("samples", "skew", 4, lambda rows: pa.array([[0.5]] * rows, pa.list_(pa.float64()))))
    return tmp_path / "runs"


def same(some: object, others: object) -> bool:
    return str(some) == str(others)  # as text, because NaN is not NaN


@pytest.mark.parametrize("name", ["less", "more"])
def test_alone_in_python(runs: Path, name: str) -> None:
    old, found = Recording(runs / "as it is"), endoscope.open(runs / name)
    assert isinstance(found, Recording) and found.verify() and found.problems == []
    assert (
        found.steps == old.steps and found.nodes == old.nodes and dict(found.metrics).keys() == dict(old.metrics).keys()
    )
    left_out = LESS if name == "less" else ()
    for node in old.nodes:
        for step in old.steps:
            try:
                expected = old.statistics(node, step.number)
            except EndoscopeError:  # several roles
                continue
            of_it = found.statistics(node, step.number)
            assert all(same(of_it[one], expected[one]) for one in WHOLE if one not in left_out)
            assert all(one not in of_it or np.isnan(of_it[one]) for one in left_out)
            assert same(found.histogram(node, step.number), old.histogram(node, step.number))
    table = found.to_arrow()
    assert ("tailedness" in table.column_names) == (name == "more")
    assert set(WHOLE) <= set(table.column_names)
    for column in left_out:
        values = table[column].to_pylist()
        assert all(value is None or np.isnan(value) for value in values) and values
    assert found.to_arrow("samples").num_rows == old.to_arrow("samples").num_rows
    assert found.to_arrow("units").num_rows == old.to_arrow("units").num_rows


def test_a_series_of_a_statistic_that_the_recording_lacks(runs: Path) -> None:
    """As many steps as any other series, and NaN: so several statistics go into one table."""
    old, less = Recording(runs / "as it is"), Recording(runs / "less")
    node = next(key.node for keys in map(old.tensors_of, old.nodes) for key in keys if key.batch_dim == 0)
    for statistic in ("norm", "zeros", "q25"):
        series = less.series(node, statistic)
        assert series.steps.tolist() == old.series(node, statistic).steps.tolist() and np.isnan(series.values).all()
        assert np.isnan(bulk.matrix(less, "value", statistic).values).all()
    assert less.series(node, "mean").values.tolist() == old.series(node, "mean").values.tolist()
    sample = less.series(node, "norm", sample=0)
    assert len(sample) == len(old.series(node, "norm", sample=0)) > 0 and np.isnan(sample.values).all()
    assert np.isnan(less.series(node, "abs_max", unit=0).values).all()
    assert same(less.series(node, "std", unit=0).values, old.series(node, "std", unit=0).values)


def test_all_of_them_in_sql(runs: Path) -> None:
    for name in ("less", "more", "as it is"):
        rows = Recording(runs / name).sql("select count(*), count(norm), count(mean) from stats").rows[0]
        assert rows[0] == rows[2] > 0
        Recording(runs / name).sql("select * from samples"), Recording(runs / name).sql("select * from units")
    answer = Recordings(runs).sql(
        "select trial, count(*), count(tailedness), round(sum(mean), 9) from stats where not isnan(mean) "
        "group by trial order by trial"
    )
    (_, rows, none, mean), less, more = answer.rows
    assert less == ("less", rows, 0, mean) and none == 0 and more == ("more", rows, rows, mean)
    assert len(Recordings(runs).sql("select * from samples")) == 3 * len(Recording(runs / "less").to_arrow("samples"))
    assert len(Recordings(runs).sql("select * from metrics")) == 3 * len(Recording(runs / "less").to_arrow("metrics"))


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("name", ["less", "more"])
def test_in_the_page(runs: Path, serve: Callable[..., TestClient], name: str, alone: bool) -> None:
    client = serve(runs / name if alone else runs)
    recording = Recording(runs / name)
    trial = f"/api/trials/{name}"
    step, node = recording.steps[0].number, next(key.node for n in recording.nodes for key in recording.tensors_of(n)
                                                 if key.batch_dim == 0)  # fmt: skip
    names = ",".join(["mean", *LESS])
    for address in ("/api/catalog", trial, f"{trial}/tensors", f"{trial}/notes", f"{trial}/gaps", f"{trial}/modules",
                    f"{trial}/metrics", f"{trial}/steps/{step}", f"{trial}/steps/{step}/samples/0",
                    f"{trial}/heat?statistic=norm", f"{trial}/heat?statistic=zeros", f"{trial}/heat?statistic=mean",
                    f"{trial}/series?node={quote(node)}&statistics={names}",
                    f"{trial}/series?node={quote(node)}&statistics=mean,norm&sample=0",
                    f"{trial}/series?node={quote(node)}&statistics=mean,abs_max&unit=0",
                    f"{trial}/histograms?node={quote(node)}", f"{trial}/samples?node={quote(node)}&step={step}",
                    f"{trial}/units?node={quote(node)}&step={step}", "/api/start", f"{trial}/findings"):  # fmt: skip
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.text)
    found = table(client, f"{trial}/series", node=node, statistics=names)
    assert found.num_rows == len(recording.series(node, "mean"))
    assert found["mean"].to_pylist() == recording.series(node, "mean").values.tolist()


def test_a_newer_version_that_has_gone_on_with_the_trial(tmp_path: Path) -> None:
    """Columns more in some segments of a table, in the middle of it."""
    trial = write_trial(tmp_path, steps=range(3))
    rewrite(trial / "rank-0", without("norm"))
    writer = TrialWriter.create(tmp_path, "trial", resume=True)
    for number in (3, 4):
        writer.write_step(step_record(writer, number))
    writer.close()
    recording = Recording(trial)
    norms = recording.series("layer.0", "norm")
    assert norms.steps.tolist() == [0, 1, 2, 3, 4] and np.isnan(norms.values).tolist() == [True] * 3 + [False] * 2
    assert recording.to_arrow().num_rows == 15 and recording.verify()
