"""The demo records what its tutorial speaks of, and its bug shows in the numbers."""

from collections import Counter
from pathlib import Path

import pytest

import endoscope
from endoscope.demo import task
from endoscope.demo.training import TRIALS, Settings, begin_run, train
from endoscope.query.recording import Recording


def record(root: Path, settings: Settings) -> dict[str, Recording]:
    for trial, activate_last in TRIALS.items():
        with begin_run(root, trial, settings) as run:
            train(run, settings, activate_last=activate_last, say=lambda text: None)
    return dict(endoscope.open(root))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    return record(tmp_path_factory.mktemp("demo"), Settings(steps=12))


@pytest.mark.parametrize("trial", TRIALS)
def test_types_losses_metrics_notes_and_settings(short: dict[str, Recording], trial: str) -> None:
    recording = short[trial]
    assert recording.types == list(task.LENGTHS)
    assert recording.losses == ["final loss", "interim loss"]
    assert list(recording.metrics) == ["lr", "final loss", "interim loss", "accuracy"]
    assert len(recording.metrics["accuracy"].steps) == 12
    assert recording.notes[-1].text.startswith("the end:")
    assert recording.config["learning_rate"] == Settings().learning_rate
    assert not recording.gaps


def test_the_trials_differ_by_one_layer(short: dict[str, Recording]) -> None:
    suspect, repaired = (Counter(short[trial].nodes) for trial in TRIALS)
    assert suspect - repaired == Counter(["answer.leaky_relu_2"])
    assert not repaired - suspect


def test_partial_sums_are_one_node_with_a_role_for_each_position(short: dict[str, Recording]) -> None:
    recording = short["suspect"]
    long = recording.steps[-1]
    assert long.type == "long sequences"
    sample = long.raw_samples[0]
    numbers = recording.tensor("input", long.number, sample=sample)
    for count in range(1, task.LENGTHS[long.type] + 1):
        sums = recording.tensor("partial sums", long.number, role=f"after number {count}", sample=sample)
        for sequence in range(task.SEQUENCES):
            assert sums[sequence] == pytest.approx(sum(numbers[:count, sequence].tolist()), abs=1e-5)


def test_samples_are_kept_of_every_category(short: dict[str, Recording]) -> None:
    kept = {step.categories[sample] for step in short["repaired"].steps for sample in step.raw_samples}
    assert kept == {"mostly negative", "mixed", "mostly positive"}


def test_the_graph_is_the_one_of_the_tutorial(short: dict[str, Recording]) -> None:
    graph = short["suspect"].graph(short["suspect"].steps[-1].number)
    names = [node["node"] for node in graph["nodes"]]
    edges = {(names[a], names[b]) for a, b, _ in graph["edges"]}
    chain = "input reader memory answer.linear_1 answer.leaky_relu_1 answer.linear_2 answer.leaky_relu_2 answer".split()
    assert set(zip(chain, chain[1:] + ["probability"], strict=True)) <= edges
    assert {("input", "partial sums"), ("partial sums", "target"), ("target", "final loss")} <= edges
    assert {("probability", "output"), ("output", "final loss"), ("output", "interim loss")} <= edges
    assert ("memory", "memory") in edges
    kinds = {node["node"]: node["kind"] for node in graph["nodes"]}
    assert [kinds[name] for name in ("input", "target", "output", "final loss", "reader.weight", "partial sums")] == [
        "input", "target", "output", "loss", "parameter", "computed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "said"),
    [([0, 0, 0, 0, 1], "mostly negative"), ([0, 1, 0, 1, 0], "mixed"), ([1, 1, 1, 1, 0], "mostly positive")],
)
def test_categories(answers: list[int], said: str) -> None:
    import torch

    assert task.category(torch.tensor(answers)) == said


@pytest.mark.slow
def test_the_bug_slows_learning_down_and_can_be_seen(tmp_path: Path) -> None:
    recordings = record(tmp_path, Settings(steps=300))
    suspect, repaired = (recordings[trial] for trial in TRIALS)
    loss = {trial: recordings[trial].metrics["final loss"].values for trial in TRIALS}
    assert loss["suspect"][-100:].mean() > 1.5 * loss["repaired"][-100:].mean()  # slower,
    assert loss["suspect"][-100:].mean() < 0.7 * loss["suspect"][:20].mean()  # but not broken

    step = suspect.steps[-1].number
    spread = {trial: recordings[trial].statistics("answer", step, pass_=9) for trial in TRIALS}
    assert spread["suspect"]["q99"] > 2.5 * -spread["suspect"]["q01"] > 0
    assert spread["repaired"]["q99"] < 2 * -spread["repaired"]["q01"]
    assert lost_gradient(suspect, step) > 2
    assert lost_gradient(repaired, step) == pytest.approx(1)


def lost_gradient(recording: Recording, step: int) -> float:
    """How many times smaller the gradient becomes between what goes into the sigmoid and the last linear layer."""
    before, behind = (
        recording.statistics(node, step, of="gradient:final loss", pass_=9)["abs_mean"]
        for node in ("answer.linear_2", "answer")
    )
    return float(behind / before)
