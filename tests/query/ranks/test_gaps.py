"""What has no whole says so, says why, and never has a value; single ranks stay readable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import endoscope
from endoscope.cli import main
from endoscope.errors import LookupFailed, ValueNotKept
from endoscope.query.recording import Recording
from endoscope.query.summary import summarise
from endoscope.store.writer import TrialWriter
from tests.query.ranks.made_up import DATA, TWO_BY_TWO, Part, Step, part, placed, sharded, write_rank


def _batch(rank: int, number: int, rows: int = 4) -> Part:
    generator = torch.Generator().manual_seed(10 * number + rank)
    return part("x", torch.randn(rows, 3, generator=generator), placed(["batch"]), batch_dim=0)


def _weight(value: float = 1.0) -> Part:
    return part("w", torch.full((2, 3), value), placed(["replicate"]), of="parameter", kind="parameter")


def _two(root: Path, first: list[int], second: list[int]) -> Path:
    for rank, numbers in enumerate((first, second)):
        steps = {n: Step([_batch(rank, n), _weight(n)], metrics={"loss": n + rank}) for n in numbers}
        path = write_rank(root, rank, steps)
    return path


def test_a_trial_of_two_ranks(tmp_path: Path) -> None:
    recording = endoscope.open(_two(tmp_path, [0, 1, 2], [0, 1, 2]))
    assert isinstance(recording, Recording) and recording.ranks == [0, 1] and recording.world_size == 2
    assert recording.closed and [step.number for step in recording.steps] == [0, 1, 2]
    assert recording.gaps == [] and recording.problems == [] and recording.verify()
    series = recording.series("x", "count")
    assert series.values.tolist() == [24, 24, 24] and series.ranks == (0, 1)
    assert recording.rank(1).series("x", "count").values.tolist() == [12, 12, 12]
    assert recording.rank(1).rank(1) is recording.rank(1) and recording.rank(1).ranks == [1]
    with pytest.raises(LookupFailed, match=r"Rank 2 has recorded nothing of 'job'\. There are: 0, 1\."):
        recording.rank(2)


def test_where_a_rank_is_missing_there_is_no_value(tmp_path: Path) -> None:
    recording = endoscope.open(_two(tmp_path, [0, 1, 2, 4], [0, 2]))
    assert [step.number for step in recording.steps] == [0, 1, 2, 4]
    for node, of in (("x", "value"), ("w", "parameter")):
        series = recording.series(node, "norm", of=of)
        assert np.isnan(series.values).tolist() == [False, True, False, True]
        assert series.gaps == ("", "rank 1 did not record it at this step; ask one rank: recording.rank(0)") * 2
        with pytest.raises(ValueNotKept, match=r"rank 1 did not record it at this step. Ask one rank: recording.rank"):
            recording.statistics(node, 1, of=of)
        with pytest.raises(ValueNotKept, match="rank 1 did not record it"):
            recording.tensor(node, 4, of=of)
        with pytest.raises(ValueNotKept, match="rank 1 did not record it"):
            recording.histogram(node, 4, of=of)
    with pytest.raises(ValueNotKept, match="rank 1 did not record it"):
        recording.samples("x", 1)
    assert {gap.step for gap in recording.gaps if "rank 1 did not record it" in gap.reason} == {1, 4}
    assert recording.rank(0).statistics("x", 4)["count"] == 12


def test_a_rank_that_has_never_recorded_is_missing_everywhere(tmp_path: Path) -> None:
    recording = endoscope.open(write_rank(tmp_path, 0, {0: Step([_batch(0, 0), _weight()])}))
    assert recording.ranks == [0] and recording.world_size == 2 and not recording.closed
    assert np.isnan(recording.series("x", "norm").values).all()
    assert "recording.rank(0)" in recording.gaps[0].reason
    assert recording.rank(0).series("w", "norm").values.tolist() == [6**0.5]


def test_what_ranks_should_have_in_common_and_do_not(tmp_path: Path) -> None:
    for rank in (0, 1):
        path = write_rank(tmp_path, rank, {0: Step([_weight()]), 1: Step([_weight(1.0 + 0.5 * rank)])})
    series = endoscope.open(path).series("w", "norm")
    assert np.isnan(series.values).tolist() == [False, True]
    assert series.gaps[1].startswith("ranks that should have the same tensor have different ones")
    with pytest.raises(ValueNotKept, match="different ones"):
        endoscope.open(path).statistics("w", 1)


@pytest.mark.parametrize(
    ("over", "why"),
    [("local", "each rank has one of its own"), ("partial:sum", "each rank has a summand"), ("", "nothing says how")],
)
def test_what_makes_up_no_whole(tmp_path: Path, over: str, why: str) -> None:
    for rank in (0, 1):
        own = part("g", torch.full((2,), rank + 1.0), placed([over]) if over else "", of="gradient:loss")
        path = write_rank(tmp_path, rank, {0: Step([own])})
    recording = endoscope.open(path)
    series = recording.series("g", "norm", of="gradient:loss")
    assert np.isnan(series.values).all() and why in series.gaps[0] and "recording.rank(0)" in series.gaps[0]
    with pytest.raises(ValueNotKept, match=r"recording\.rank\(0\)"):
        recording.statistics("g", 0, of="gradient:loss")
    assert [(gap.node, gap.of) for gap in recording.gaps] == [("g", "gradient:loss")]
    assert why in recording.gaps[0].reason
    assert recording.rank(1).series("g", "max", of="gradient:loss").values.tolist() == [2.0]
    if over == "partial:sum":  # element by element the sum is known, where all of it was kept
        assert recording.tensor("g", 0, of="gradient:loss").tolist() == [3.0, 3.0]
    else:
        with pytest.raises(ValueNotKept):
            recording.tensor("g", 0, of="gradient:loss")


def test_a_stage_of_a_pipeline_is_whole_by_itself(tmp_path: Path) -> None:
    for rank in (0, 1):
        own = part(f"stage{rank}", torch.ones(2), "", of="parameter")
        path = write_rank(tmp_path, rank, {0: Step([own])}, [], world=2)
    recording = endoscope.open(path)
    assert recording.series("stage0", "count").values.tolist() == [2]
    assert recording.series("stage1", "count").ranks == (1,) and recording.gaps == []


def test_shards_that_do_not_make_up_a_whole(tmp_path: Path) -> None:
    whole = torch.ones(6, 2)
    for rank, at in enumerate(((0, 3), (3, 5))):
        path = write_rank(tmp_path, rank, {0: Step([sharded("w", whole, 0, at, of="parameter")])})
    assert "do not make up a whole" in endoscope.open(path).series("w", "norm").gaps[0]


def test_singular_values_and_cosines_are_of_one_rank(tmp_path: Path) -> None:
    extra = {"spectra": [["w", "", 1, "parameter", 1.0, [2.0]]], "cosines": {"w": 0.5}, "clipping": [{"norm": 1.0}]}
    for rank in (0, 1):
        path = write_rank(tmp_path, rank, {0: Step([_weight()], extra=extra)})
    recording = endoscope.open(path)
    with pytest.raises(ValueNotKept, match=r"Ask one rank: recording.rank\(0\)"):
        recording.spectrum("w", 0)
    assert recording.steps[0].extra == {"clipping": [{"norm": 1.0}]}
    assert recording.rank(1).spectrum("w", 0).singular_values.tolist() == [2.0]


def test_metrics_are_mean_and_range(tmp_path: Path) -> None:
    for rank in (0, 1):
        steps = {n: Step([_weight()], metrics={"loss": n + rank} | ({"lr": 0.1} if rank == 0 else {})) for n in (0, 1)}
        if rank == 0:
            steps[2] = Step([_weight()], metrics={"loss": 9.0})
        path = write_rank(tmp_path, rank, steps)
    recording = endoscope.open(path)
    loss, lr = recording.metrics["loss"], recording.metrics["lr"]
    assert loss.low is not None and loss.high is not None
    assert loss.steps.tolist() == [0, 1] and loss.values.tolist() == [0.5, 1.5]
    assert loss.low.tolist() == [0, 1] and loss.high.tolist() == [1, 2]
    assert lr.values.tolist() == [0.1, 0.1]  # a metric of one rank
    assert any("no mean over ranks at 1 steps, because rank 1" in gap.reason for gap in recording.gaps)
    assert recording.rank(0).metrics["loss"].values.tolist() == [0, 1, 9]
    assert set(recording.read("metrics").column_names) >= {"value", "low", "high"}


def test_the_later_attempt_counts(tmp_path: Path) -> None:
    path = _two(tmp_path, [0, 1, 2], [0, 1, 2])
    write_rank(tmp_path, 1, {n: Step([_batch(1, n), _weight(n)], metrics={"loss": 100.0 + n}) for n in (2, 3)})
    recording = endoscope.open(path)
    assert [step.number for step in recording.rank(1).steps] == [0, 1, 2, 3]
    assert recording.rank(1).metrics["loss"].values.tolist() == [1, 2, 102, 103]
    assert recording.rank(1).series("x", "count").values.tolist() == [12] * 4
    np.testing.assert_array_equal(recording.rank(1).tensor("x", 3), _batch(1, 3).tensor.numpy())
    # Rank 0 was not restarted, so what it recorded goes with both.
    assert recording.series("x", "count").values.tolist()[:3] == [24, 24, 24]
    assert recording.metrics["loss"].values.tolist() == [0.5, 1.5, 52.0]
    assert np.isnan(recording.series("x", "count").values[3])


def test_steps_of_before_and_after_a_restart_do_not_go_together(tmp_path: Path) -> None:
    path = _two(tmp_path, [0, 1, 2], [0, 1, 2])
    for rank, numbers in ((0, (0, 1, 2)), (1, (0, 1))):
        write_rank(tmp_path, rank, {n: Step([_batch(rank, n, rows=5)]) for n in numbers})
    recording = endoscope.open(path)
    counts = recording.series("x", "count").values
    assert counts[:2].tolist() == [30, 30] and np.isnan(counts[2])
    assert recording.rank(1).series("x", "count").values.tolist() == [15, 15, 12]


def test_types_that_differ_between_ranks(tmp_path: Path) -> None:
    for rank, type_ in enumerate(("long", "short")):
        path = write_rank(
            tmp_path, rank, {0: Step([_batch(rank, 0)], type="train"), 1: Step([_batch(rank, 1)], type=type_)}
        )
    recording = endoscope.open(path)
    assert recording.types == ["train", "long / short"]
    assert recording.series("x", "count", type="long / short").values.tolist() == [24]


def test_batches_of_other_sizes_at_other_steps(tmp_path: Path) -> None:
    for rank, rows in enumerate(((4, 4), (4, 1))):
        path = write_rank(
            tmp_path, rank, {n: Step([_batch(rank, n, rows[n])], categories=[f"r{rank}"] * rows[n]) for n in (0, 1)}
        )
    recording = endoscope.open(path)
    assert [key.shape for key in recording.tensors_of("x")] == [(8, 3), (5, 3)]
    assert recording.series("x", "count").values.tolist() == [24, 15]
    assert recording.series("x", "mean", sample=4).values.shape == (2,)
    assert recording.steps[1].categories == ("r0",) * 4 + ("r1",)
    assert recording.samples("x", 1)["rank"].tolist() == [0, 0, 0, 0, 1]


def test_chosen_samples_are_numbered_through(tmp_path: Path) -> None:
    for rank in (0, 1):
        own = part("x", torch.arange(12.0).reshape(4, 3) + 100 * rank, placed(["batch"]), batch_dim=0, samples=[1, 3])
        path = write_rank(tmp_path, rank, {0: Step([own])})
    recording = endoscope.open(path)
    assert recording.steps[0].raw_samples == (1, 3, 5, 7)
    assert recording.tensor("x", 0)[:, 0].tolist() == [3, 9, 103, 109]
    assert recording.tensor("x", 0, sample=5).tolist() == [103, 104, 105]
    with pytest.raises(ValueNotKept, match=r"the samples 1, 3, 5, 7 were kept raw"):
        recording.tensor("x", 0, sample=0)


def test_replicas_over_one_dimension_of_a_mesh(tmp_path: Path) -> None:
    """Activations under tensor parallelism: batches over dp, the same on both ranks of tp."""
    for rank in range(4):
        own = part("x", torch.full((2, 3), float(rank // 2)), placed(["batch", "replicate"]), batch_dim=0)
        path = write_rank(tmp_path, rank, {0: Step([own])}, [TWO_BY_TWO])
    recording = endoscope.open(path)
    assert recording.statistics("x", 0)["count"] == 12
    assert recording.samples("x", 0)["rank"].tolist() == [0, 0, 2, 2]
    assert recording.tensor("x", 0).shape == (4, 3)


def test_sql_has_a_column_rank(tmp_path: Path) -> None:
    recording = endoscope.open(_two(tmp_path, [0, 1], [0, 1]))
    rows = recording.sql(
        "select rank, count(*), sum(count) from stats where node = 'x' group by rank order by rank"
    ).rows
    assert rows == [(0, 2, 24), (1, 2, 24)]
    assert recording.sql("select distinct rank from metrics order by rank").rows == [(0,), (1,)]
    assert recording.rank(1).sql("select distinct rank from steps").rows == [(1,)]


def test_tables_of_the_whole(tmp_path: Path) -> None:
    recording = endoscope.open(_two(tmp_path, [0, 1], [0, 1]))
    stats = recording.to_arrow()
    assert stats["count"].to_pylist() == [24, 6, 24, 6] and stats["pieces"].to_pylist() == [2, 1, 2, 1]
    assert recording.to_arrow("samples").num_rows == 16 and set(recording.to_arrow("samples")["rank"].to_pylist()) == {
        0,
        1,
    }
    for table in ("units", "steps", "metrics", "notes", "gaps", "keys", "times"):
        recording.to_arrow(table)


def test_one_process_is_as_ever(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "one")
    writer.close()
    recording = endoscope.open(writer.path)
    assert type(recording) is Recording and recording.ranks == [0] and recording.rank(0) is recording
    assert recording.world_size == 1 and DATA["shape"] == [2]


def test_summands_of_a_rank_are_the_gradient_of_the_whole(tmp_path: Path) -> None:
    """None of them stands under the name of the sum."""
    for rank, value in enumerate((1.0, 4.0)):
        own = part("w", torch.full((2, 3), value), placed(["partial:sum"]), of="local_gradient", kind="parameter")
        path = write_rank(tmp_path, rank, {0: Step([own])})
    recording = endoscope.open(path)
    assert [key.of for key in recording.tensors_of("w")] == ["gradient"]
    assert recording.tensor("w", 0, of="gradient").tolist() == [[5.0] * 3] * 2
    with pytest.raises(ValueNotKept, match=r"a summand of it.*recording\.tensor\(…\) adds up what was kept raw"):
        recording.statistics("w", 0, of="gradient")
    assert [gap.of for gap in recording.gaps if gap.node == "w"] == ["gradient"]
    assert [key.of for key in recording.rank(1).tensors_of("w")] == ["local_gradient"]
    assert recording.rank(1).series("w", "max", of="local_gradient").values.tolist() == [4.0]


def test_one_of_two_ranks_has_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _two(tmp_path, [0, 1], [0, 1])
    journal = path / "rank-1" / "journal.jsonl"
    journal.write_text("".join(line for line in journal.read_text().splitlines(True) if '"close"' not in line))
    assert main(["ls", str(tmp_path)]) == 0
    assert "rank 1 ended early, " in capsys.readouterr().out
    (path / "rank-1").rename(tmp_path.parent / "elsewhere")
    assert main(["ls", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert "finished" in listed and "1 of 2" in listed


def test_a_summary_counts_the_steps_of_all_ranks(tmp_path: Path) -> None:
    for first, second in (([0, 1, 2], [0, 1, 2]), ([0, 1, 2, 4], [0, 2]), ([0, 1], [0, 1, 5])):
        path = _two(tmp_path / f"{len(first)}{len(second)}", first, second)
        found = summarise(endoscope.open(path))
        steps = endoscope.open(path).steps
        assert (found.steps, found.last_step) == (len(steps), steps[-1].number)
