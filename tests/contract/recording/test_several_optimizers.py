"""Several optimizers in a plain loop: which update ends which step, and what it is called."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tests.contract.recording.helpers import batches, mlp, numbers, recorded, sgd, strict_run
from tests.contract.recording.oracle import agree, compared, ends

cross_entropy = nn.functional.cross_entropy


def types(recording: Any) -> list[str]:
    return [step.type for step in recording.steps]


def iterations(recording: Any) -> list[int]:
    """Counted from the first one."""
    found = recording.to_arrow("steps").column("iteration").to_pylist()
    return [number - found[0] for number in found]


# ---- each update ends a step ---------------------------------------------------------------------


def gan(run: Any, rounds: int, critic_updates: int = 1, no_grad: bool = False) -> tuple[list[float], list[Tensor]]:
    maker, critic = mlp(2, 4, 3), mlp(3, 4, 1)
    optimizer_m, optimizer_c = sgd(maker), torch.optim.Adam(critic.parameters(), lr=0.01)
    run.watch(maker, optimizer_m, name="maker")
    run.watch(critic, optimizer_c, name="critic")
    losses = []
    for _ in range(rounds):
        for _ in range(critic_updates):
            optimizer_c.zero_grad()
            with torch.set_grad_enabled(not no_grad):
                fake = maker(torch.randn(4, 2)).detach()
            loss = critic(fake).mean() - critic(torch.randn(4, 3)).mean()
            loss.backward()
            optimizer_c.step()
            losses.append(loss.item())
            run.metric("critic loss", loss)
        optimizer_m.zero_grad()
        loss = -critic(maker(torch.randn(4, 2))).mean()
        loss.backward()
        optimizer_m.step()
        losses.append(loss.item())
    return losses, ends(maker, critic)


def test_each_update_of_a_gan_ends_a_step(tmp_path: Any) -> None:
    seen, recording = compared(lambda run: gan(run, 10), tmp_path)
    assert numbers(recording) == [*range(20)]
    for number, step in enumerate(seen):
        agree(recording, number, step)
    assert types(recording) == ["critic", "maker"] * 10
    for step in (seen[4], seen[5]):  # what the generator computed for the critic is there, too
        assert {"maker.0", "maker.2", "critic.0", "critic.2"} <= {node for node, _ in step.values}
    maker, critic = (recording.series(f"{name}.0.weight", "norm", of="update") for name in ("maker", "critic"))
    assert maker.steps.tolist() == [*range(1, 20, 2)]
    assert critic.steps.tolist() == [*range(0, 20, 2)]
    assert set(maker.types) == {"maker"} and set(critic.types) == {"critic"}
    assert recording.gaps == []


def test_iterations_count_returns_to_the_first_optimizer(tmp_path: Any) -> None:
    _, recording = compared(lambda run: gan(run, 6), tmp_path)
    assert iterations(recording) == [number // 2 for number in range(12)]


def test_a_critic_that_is_trained_more_often(tmp_path: Any) -> None:
    seen, recording = compared(lambda run: gan(run, 7, critic_updates=2), tmp_path)
    for number, step in enumerate(seen):
        agree(recording, number, step)
    critic_steps = [number for number in range(21) if number % 3 < 2]
    assert recording.metrics["critic loss"].steps.tolist() == critic_steps
    assert types(recording) == ["critic", "critic", "maker"] * 7
    assert iterations(recording) == [number // 3 for number in range(21)]


def test_numbers_of_a_gan_do_not_depend_on_what_is_recorded(tmp_path: Any) -> None:
    """Types are counted each by itself, so every third step of each is recorded."""
    seen, recording = compared(lambda run: gan(run, 9), tmp_path, when=3)
    assert numbers(recording) == [0, 1, 6, 7, 12, 13]
    assert types(recording) == ["critic", "maker"] * 3
    for step in recording.steps:
        agree(recording, step.number, seen[step.number])
    assert recording.metrics["critic loss"].steps.tolist() == [*range(0, 18, 2)]


def test_models_that_share_an_encoder_have_types_that_differ(tmp_path: Any) -> None:
    """Both optimizers move parameters of both models; what counts is with which one each was handed over."""
    encoder = nn.Linear(6, 8)
    actor, critic = nn.Sequential(encoder, nn.Linear(8, 3)), nn.Sequential(encoder, nn.Linear(8, 1))
    of_actor, of_critic = sgd(actor), sgd(critic)
    with strict_run(tmp_path) as run:
        run.watch(actor, of_actor, name="actor")
        run.watch(critic, of_critic, name="critic")
        for x, y in batches(6):
            of_critic.zero_grad()
            critic(x).square().mean().backward()
            of_critic.step()
            of_actor.zero_grad()
            cross_entropy(actor(x), y).backward()
            of_actor.step()
    recording = recorded(run)
    assert types(recording) == ["critic", "actor"] * 6
    assert {"lr actor", "lr critic"} <= set(recording.metrics)


def test_a_generator_that_comes_rarely_is_recorded_as_often_as_any_type(tmp_path: Any) -> None:
    """When it comes is guessed from how often the critic came in a row before."""
    seen, recording = compared(lambda run: gan(run, 10, critic_updates=5), tmp_path, when=3)
    of_critic = [number + number // 5 for number in range(0, 50, 3)]
    of_maker = [6 * number + 5 for number in range(0, 10, 3)]
    assert numbers(recording) == sorted([*of_critic, *of_maker])
    for step in recording.steps:
        assert step.type == ("maker" if step.number in of_maker else "critic")
        agree(recording, step.number, seen[step.number])
    assert [step.number for step in recording.steps if not step.graph] == [of_maker[0]]
    assert [gap.step for gap in recording.gaps] == [of_maker[0]]


def test_a_generator_that_comes_rarely_has_its_graph_in_all_but_the_first_step(tmp_path: Any) -> None:
    _, recording = compared(lambda run: gan(run, 6, critic_updates=5), tmp_path)
    assert [step.number for step in recording.steps if not step.graph] == [5]
    assert len({step.graph for step in recording.steps if step.type == "maker" and step.graph}) == 1


def test_a_generator_that_is_called_without_autograd(tmp_path: Any) -> None:
    seen, recording = compared(lambda run: gan(run, 10, no_grad=True), tmp_path)
    for number, step in enumerate(seen):
        step.values = {key: value for key, value in step.values.items() if number % 2 or "critic" in key[0]}
        agree(recording, number, step)
    assert types(recording) == ["critic", "maker"] * 10


def test_models_without_names_have_types_that_differ(tmp_path: Any) -> None:
    class Actor(nn.Linear): ...

    class Judge(nn.Linear): ...

    models = [Actor(6, 3), Judge(6, 3)]
    optimizers = [sgd(model) for model in models]
    with strict_run(tmp_path) as run:
        for model, optimizer in zip(models, optimizers, strict=True):
            run.watch(model, optimizer)
        for x, y in batches(4):
            for model, optimizer in zip(models, optimizers, strict=True):
                optimizer.zero_grad()
                cross_entropy(model(x), y).backward()
                optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [*range(8)]
    first, second = types(recording)[:2]
    assert first and second and first != second
    assert types(recording) == [first, second] * 4


def test_a_single_optimizer_gives_no_type(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
    recording = recorded(run)
    assert types(recording) == ["", "", ""]
    assert iterations(recording) == [0, 1, 2]


def actor_critic(run: Any, order: str) -> tuple[list[float], list[Tensor]]:
    actor, judge = mlp(4, 8, 2), mlp(4, 8, 1)
    optimizer_a, optimizer_j = sgd(actor), torch.optim.Adam(judge.parameters(), lr=0.01)
    run.watch(actor, optimizer_a, name="actor")
    run.watch(judge, optimizer_j, name="judge")
    losses = []
    for _ in range(20):
        state, reward = torch.randn(5, 4), torch.randn(5, 1)
        worth = judge(state)
        of_judge = (worth - reward).square().mean()
        if order == "in turns":
            optimizer_j.zero_grad()
            of_judge.backward()
            optimizer_j.step()
        of_actor = -(torch.log_softmax(actor(state), 1)[:, :1] * (reward - worth.detach())).mean()
        optimizer_a.zero_grad()
        if order == "together":
            optimizer_j.zero_grad()
            (of_actor + of_judge).backward()
        else:
            of_actor.backward()
        optimizer_a.step()
        if order == "together":
            optimizer_j.step()
        losses += [of_actor.item(), of_judge.item()]
    return losses, ends(actor, judge)


def test_an_actor_and_its_critic_in_turns(tmp_path: Any) -> None:
    seen, recording = compared(lambda run: actor_critic(run, "in turns"), tmp_path)
    assert numbers(recording) == [*range(40)]
    for number, step in enumerate(seen):
        agree(recording, number, step)
    assert types(recording) == ["judge", "actor"] * 20
    assert iterations(recording) == [number // 2 for number in range(40)]


def test_optimizers_with_no_forward_between_share_a_step(tmp_path: Any) -> None:
    seen, recording = compared(lambda run: actor_critic(run, "together"), tmp_path)
    assert numbers(recording) == [*range(20)]
    for number, step in enumerate(seen):
        assert {"actor.0.weight", "judge.0.weight"} <= set(step.updates)
        agree(recording, number, step)
    assert len(set(types(recording))) == 1
    assert iterations(recording) == [*range(20)]
