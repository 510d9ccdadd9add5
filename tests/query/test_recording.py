"""`endoscope.open(trial)`: what is in a recording, and every way to ask for it."""

import json
from pathlib import Path

import numpy as np
import pytest

import endoscope
from endoscope.errors import BadArgument, LookupFailed, ValueNotKept
from endoscope.query.recording import Recording
from endoscope.schema.stats import HISTOGRAM_BINS, SAMPLE, UNIT, WHOLE, histogram_edges
from tests.query.small_recording import KEYS, STEPS, numbers_of, raw_of, write_small_recording


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    found = endoscope.open(write_small_recording(tmp_path_factory.mktemp("runs")))
    assert isinstance(found, Recording)
    return found


def row_of(ordinal: int, node: str, of: str = "value", role: str = "", pass_: int = 1) -> int:
    """The row of a tensor in the measurement of a step; the slow way."""
    keys = STEPS[ordinal][2]
    return next(
        row for row, key in enumerate(keys) if (key.node, key.of, key.role, key.pass_) == (node, of, role, pass_)
    )


def test_what_it_is(recording: Recording) -> None:
    assert repr(recording) == "<Recording 'small': 5 steps (0 to 5), 5 nodes>"
    assert recording.name == "small" and recording.config == {"lr": 0.1, "name": "small"}
    assert recording.closed and recording.created > 1e9 and recording.updated >= recording.created
    assert recording.versions["endoscope"] == endoscope.__version__


def test_steps(recording: Recording) -> None:
    assert [(step.number, step.type, step.ordinal) for step in recording.steps] == [
        (0, "train", 0), (1, "rare", 1), (2, "train", 2), (2, "rare", 3), (5, "train", 4),
    ]  # fmt: skip
    step = recording.steps[2]
    assert step.recording_seconds == 0.25 and step.why == "every(1)" and step.time == 12.0 and step.graph == "h1"
    assert step.raw_samples == (1, 3) and step.categories == () and step.passes == 1 and step.tensors == 9
    assert step.config == {"beam": 2} and step.extra == {"cosines": {"encoder": 0.5}}


def test_types_nodes_losses(recording: Recording) -> None:
    assert recording.types == ["train", "rare"]
    assert recording.nodes == ["encoder", "sums", "head", "loss", "encoder.weight"]
    assert recording.losses == ["main", "aux"]
    assert recording.tensors_of("sums") == KEYS[4:6]


def test_notes_gaps_modules_graph(recording: Recording) -> None:
    assert [(note.step, note.time, note.text) for note in recording.notes] == [(0, 5.0, "begin")]
    assert [gap[:4] for gap in recording.gaps] == [(2, "buffer", "value", "sparse")]
    assert recording.modules == {"encoder": {"type": "Linear", "parameters": 9}}
    assert recording.graph(0)["nodes"] == [key.node for key in KEYS]
    assert recording.graph(5) == recording.graph(2, type="rare") == {"nodes": ["encoder", "encoder.weight"]}
    assert recording.problems == [] and recording.verify()


def test_metrics(recording: Recording) -> None:
    assert set(recording.metrics) == {"loss", "lr"} and len(recording.metrics) == 2
    loss = recording.metrics["loss"]
    assert loss.steps.tolist() == [0, 1, 2, 2, 3, 5] and loss.values.tolist() == [1, 1 / 2, 1 / 3, 1 / 4, 7, 1 / 5]
    assert loss.types.tolist() == ["train", "rare", "train", "rare", "train", "train"]
    assert "loss" in recording.metrics and "accuracy" not in recording.metrics
    assert recording.metrics.table["step"].to_pylist() == [0, 1, 2, 2, 3, 3, 5]
    assert recording.metrics.of(["loss"])["value"].to_pylist() == loss.values.tolist()
    with pytest.raises(LookupFailed, match=r"There is no metric 'los'. Nearest: 'loss'"):
        recording.metrics["los"]


@pytest.mark.parametrize("statistic", WHOLE)
def test_every_statistic_over_steps(recording: Recording, statistic: str) -> None:
    """A changed shape is the same tensor: step 5 belongs to the series."""
    series = recording.series("encoder", statistic)
    expected = [numbers_of(n).whole[statistic][row_of(n, "encoder")] for n in range(5)]
    assert series.values.tolist() == [float(value) for value in expected]
    assert series.steps.tolist() == [0, 1, 2, 2, 5] and len(series) == 5
    assert series.types.tolist() == ["train", "rare", "train", "rare", "train"]
    assert series.values.dtype == np.float64 and series.steps.dtype == np.int64


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"node": "encoder", "pass_": 2}, {"node": "encoder", "pass_": 2}),
        ({"node": "encoder", "of": "gradient:aux"}, {"node": "encoder", "of": "gradient:aux"}),
        ({"node": "head", "of": "gradient"}, {"node": "head", "of": "gradient:main"}),
        ({"node": "sums", "role": "digit 2"}, {"node": "sums", "role": "digit 2"}),
        ({"node": "encoder.weight"}, {"node": "encoder.weight", "of": "parameter"}),
        ({"node": "encoder.weight", "of": "parameter"}, {"node": "encoder.weight", "of": "parameter"}),
    ],
)
def test_addresses(recording: Recording, options: dict, address: dict) -> None:
    series = recording.series(statistic="max", **options)
    there = [n for n in range(5) if address["node"] == "encoder.weight" or n != 1]
    assert series.values.tolist() == [numbers_of(n).whole["max"][row_of(n, **address)] for n in there]


def test_series_of_one_type(recording: Recording) -> None:
    assert recording.series("encoder", "mean", type="rare").steps.tolist() == [1, 2]
    assert set(recording.series("encoder", "mean", type="train").types) == {"train"}


@pytest.mark.parametrize("statistic", SAMPLE)
def test_series_of_a_sample(recording: Recording, statistic: str) -> None:
    series = recording.series("encoder", statistic, sample=2)
    assert series.values.tolist() == [numbers_of(n).samples[statistic][2] for n in range(5)]
    assert recording.series("encoder", statistic, sample=5).steps.tolist() == [5]  # only the larger batch has it


@pytest.mark.parametrize("statistic", UNIT)
def test_series_of_a_unit(recording: Recording, statistic: str) -> None:
    series = recording.series("encoder", statistic, unit=1, type="train")
    assert series.values.tolist() == [numbers_of(n).units[statistic][1] for n in (0, 2, 4)]
    assert recording.series("encoder", statistic, unit=(1,)).values.tolist()[0] == series.values[0]


def test_samples_that_are_not_all_of_the_batch(tmp_path: Path) -> None:
    from endoscope.store.writer import TrialWriter
    from tests.store.made_up import measured, step_record

    writer = TrialWriter.create(tmp_path, "trial")
    numbers = measured(3)
    numbers.sample_index = np.tile(np.array([7, 3, 9, 1], np.int32), 2)
    writer.write_step(step_record(writer, 0, measured=numbers))
    recording = Recording(writer.path)
    for place, sample in enumerate([7, 3, 9, 1]):
        found = recording.series("layer.1", "std", sample=sample)
        assert found.values.tolist() == [numbers.samples["std"][4 + place]]
    with pytest.raises(LookupFailed, match="No step has a sample 2 of this tensor"):
        recording.series("layer.1", "std", sample=2)


def test_units_of_several_dimensions(tmp_path: Path) -> None:
    from endoscope.store.writer import TrialWriter
    from tests.store.made_up import measured, step_record

    writer = TrialWriter.create(tmp_path, "trial")
    numbers = measured(3, unit_shape=(2, 3))
    writer.write_step(step_record(writer, 0, measured=numbers))
    recording = Recording(writer.path)
    assert recording.units("layer.1", 0)["mean"].shape == (2, 3)
    for index in np.ndindex(2, 3):
        expected = numbers.units["mean"].reshape(2, 2, 3)[1][index]
        assert recording.series("layer.1", "mean", unit=index).values.tolist() == [expected]
        assert recording.units("layer.1", 0)["mean"][index] == expected
    for unit in ((2, 0), (0, 3), (-1, 0), (1,), 6, (0, 0, 0)):
        with pytest.raises(LookupFailed, match=r"No step has a unit .* of this tensor; it has 6 units at most"):
            recording.series("layer.1", "mean", unit=unit)
    with pytest.raises(BadArgument, match=r"unit=\(\) names no unit"):
        recording.series("layer.1", "mean", unit=())


def test_raw_values(recording: Recording) -> None:
    assert np.array_equal(recording.tensor("encoder", 0), raw_of(0))
    assert np.array_equal(recording.tensor("encoder", 5, sample=3), raw_of(4)[1])
    assert np.array_equal(recording.tensor("encoder", 2), raw_of(3))  # of two steps with one number the newest
    assert np.array_equal(recording.tensor("encoder", 2, type="train"), raw_of(2))
    weight = recording.tensor("encoder.weight", step=0, of="value")
    assert np.array_equal(weight, np.eye(3))
    weight[0, 0] = 7  # it is the caller's own
    assert recording.tensor("encoder.weight", 0)[0, 0] == 1


def test_what_one_step_recorded(recording: Recording) -> None:
    numbers = numbers_of(2)
    row = row_of(2, "sums", role="digit 2")
    found = recording.statistics("sums", 2, role="digit 2", type="train")
    assert found == {name: numbers.whole[name][row].item() for name in WHOLE}
    edges, counts = recording.histogram("sums", 2, role="digit 2", type="train")
    first, last = numbers.hist_offsets[row : row + 2]
    start = numbers.hist_first[row]
    assert edges.tolist() == histogram_edges() and counts.shape == (HISTOGRAM_BINS,)
    assert counts[start : start + last - first].tolist() == numbers.hist_values[first:last].tolist()
    assert counts.sum() == numbers.hist_values[first:last].sum()
    samples = recording.samples("sums", 2, role="digit 2", type="train")
    assert samples["sample"].tolist() == [0, 1, 2, 3] and set(samples) == {"sample", *SAMPLE}
    assert samples["norm"].tolist() == numbers.samples["norm"][4 * row : 4 * row + 4].tolist()
    units = recording.units("sums", 2, role="digit 2", type="train")
    assert units["abs_max"].tolist() == numbers.units["abs_max"][3 * row : 3 * row + 3].tolist()


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda r: r.series("encodr", "mean"), LookupFailed,
         r"There is no node 'encodr' in this recording\. Nearest: 'encoder', .* `recording\.nodes` lists all 5\."),
        (lambda r: r.series(3, "mean"), BadArgument, r"A node is named by a text such as 'encoder\.2', not by 3"),
        (lambda r: r.series("encoder", "median"), LookupFailed,
         r"There is no statistic 'median' of a whole tensor\. Did you mean 'mean'\? There are: count, zeros"),
        (lambda r: r.series("encoder", "q50", sample=0), LookupFailed, "no statistic 'q50' of a single sample"),
        (lambda r: r.series("encoder", "norm", unit=0), LookupFailed, r"of a single unit\..* mean, std, abs_max"),
        (lambda r: r.series("encoder", "mean", of="gradient"), LookupFailed,
         r"'encoder' has gradients of 2 losses\. Say which: of='gradient:main', of='gradient:aux'\."),
        (lambda r: r.series("loss", "mean", of="gradient"), LookupFailed,
         r"Node 'loss' has no 'gradient'\. It has: of='value'\."),
        (lambda r: r.series("sums", "mean"), LookupFailed,
         r"'sums' \(value\) has 2 roles\. Say which: role='digit 1', role='digit 2'\."),
        (lambda r: r.series("sums", "mean", role="digit 3"), LookupFailed, "has no role 'digit 3'"),
        (lambda r: r.series("encoder", "mean", pass_=3), LookupFailed,
         r"'encoder' \(value\) has no pass 3\. Recorded: pass_=1, pass_=2\."),
        (lambda r: r.series("encoder", "mean", type="test"), LookupFailed,
         r"No step of type 'test' was recorded\. Types: 'train', 'rare'\."),
        (lambda r: r.series("encoder", "mean", sample=9), LookupFailed,
         "No step has a sample 9 of this tensor; the largest batch has 6, from 0 on"),
        (lambda r: r.series("encoder.weight", "mean", sample=0), LookupFailed,
         r"Nothing was recorded per sample of 'encoder\.weight' \(value\)\. Leave out sample="),
        (lambda r: r.series("encoder", "mean", sample=0, unit=0), LookupFailed, "of one sample or of one unit"),
        (lambda r: r.tensor("encoder", 4), LookupFailed,
         r"Step 4 was not recorded\. Nearest: 1, 2, 5\. `recording\.steps` lists all 5\."),
        (lambda r: r.tensor("encoder", 0, type="rare"), LookupFailed, "Step 0 was not recorded as 'rare'"),
        (lambda r: r.tensor("encoder", "last"), LookupFailed, "Step last was not recorded"),
        (lambda r: r.tensor("sums", 0, role="digit 1"), ValueNotKept,
         r"Of 'sums' there are no raw values at step 0\. Kept raw at this step: samples 1, 3\."),
        (lambda r: r.tensor("encoder", 0, sample=2), ValueNotKept,
         r"Of step 0, the samples 1, 3 were kept raw, not 2\."),
        (lambda r: r.tensor("encoder.weight", 0, sample=0), LookupFailed, "has no samples: it is kept as one tensor"),
        (lambda r: r.statistics("sums", 1, role="digit 1"), ValueNotKept, "there are no statistics at step 1"),
        (lambda r: r.units("encoder.weight", 0), ValueNotKept, "no statistics per unit at step 0"),
        (lambda r: r.to_arrow("tensors"), LookupFailed, "There is no table 'tensors'. There are: keys, stats"),
        (lambda r: r.graph(99), LookupFailed, "Step 99 was not recorded"),
    ],
)  # fmt: skip
def test_questions_without_an_answer(recording: Recording, ask: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        ask(recording)  # type: ignore[operator]


def test_a_step_without_a_graph(tmp_path: Path) -> None:
    from endoscope.store.writer import TrialWriter
    from tests.store.made_up import step_record

    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_step(step_record(writer, 0, graph=None, graph_hash=""))
    with pytest.raises(ValueNotKept, match="no graph at step 0"):
        Recording(writer.path).graph(0)


def test_everything_as_a_table(recording: Recording) -> None:
    table = recording.to_arrow()
    assert table.num_rows == sum(len(keys) for _, _, keys in STEPS)
    rows = table.to_pylist()
    position = 0
    for ordinal, (number, type_, keys) in enumerate(STEPS):
        for row, key in enumerate(keys):
            found = rows[position]
            assert (found["step"], found["type"], found["ordinal"]) == (number, type_, ordinal)
            assert (found["node"], found["of"], found["role"], found["pass"]) == (key.node, key.of, key.role, key.pass_)
            assert found["shape"] == list(key.shape) and found["source"] == key.source
            assert found["mean"] == numbers_of(ordinal).whole["mean"][row]
            position += 1
    samples = recording.to_arrow("samples")
    assert samples.num_rows == sum(len(numbers_of(n).sample_index) for n in range(5))
    means = np.concatenate([numbers_of(n).samples["mean"] for n in range(5)])
    assert samples["mean"].to_pylist() == means.tolist()
    assert recording.to_arrow("units").num_rows == sum(len(keys) - 1 for _, _, keys in STEPS)
    assert recording.to_arrow("steps")["step"].to_pylist() == [0, 1, 2, 2, 5]
    assert recording.to_arrow("metrics").num_rows == 7 and recording.to_arrow("keys").num_rows == 10


def test_as_pandas(recording: Recording) -> None:
    frame = recording.to_pandas()
    assert (
        frame[frame.node == "head"]["mean"].tolist() == recording.series("head", "mean", of="gradient").values.tolist()
    )
    assert recording.to_pandas("notes").text.tolist() == ["begin"]


def test_paths_may_be_text_or_path(recording: Recording) -> None:
    assert endoscope.open(str(recording.path)).name == endoscope.open(recording.path).name == "small"


def test_extra_and_config_are_json(recording: Recording) -> None:
    assert json.loads(recording.to_arrow("steps")["config"].to_pylist()[3]) == {"beam": 3}
