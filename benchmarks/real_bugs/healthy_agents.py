"""Healthy trainings by reinforcement: the loss has no meaning by itself, the reward rises."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from .common import mlp, rises
from .registry import healthy


def bandit(states, actions):
    """Reward 1 for the right one of three actions."""
    return (actions == states[:, :3].argmax(1)).float()


@healthy("reinforce-with-baseline", kind="RL")
def reinforce(run):
    policy = mlp(4, 48, 3, activation=nn.Tanh)
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    run.watch(policy, optimizer)
    rewards, baseline = [], 0.0
    for _ in range(300):
        states = torch.randn(48, 4)
        choice = torch.distributions.Categorical(logits=policy(states))
        actions = choice.sample()
        reward = bandit(states, actions)
        baseline += 0.1 * (float(reward.mean()) - baseline)
        loss = -(choice.log_prob(actions) * (reward - baseline)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.metric("reward", reward.mean().item())
        rewards.append(reward.mean().item())
    return rises(rewards, 0.7)


@healthy("actor-and-critic", kind="RL")
def actor_and_critic(run):
    class ActorCritic(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 48)
            self.actor, self.critic = nn.Linear(48, 3), nn.Linear(48, 1)

        def forward(self, states):
            hidden = torch.tanh(self.body(states))
            return self.actor(hidden), self.critic(hidden)[:, 0]

    model = ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    rewards = []
    for _ in range(300):
        states = torch.randn(48, 4)
        logits, value = model(states)
        choice = torch.distributions.Categorical(logits=logits)
        actions = choice.sample()
        reward = bandit(states, actions)
        advantage = reward - value.detach()
        loss = -(choice.log_prob(actions) * advantage).mean() + 0.5 * F.mse_loss(value, reward)
        loss = loss - 0.01 * choice.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        run.metric("reward", reward.mean().item())
        run.metric("entropy", choice.entropy().mean().item())
        rewards.append(reward.mean().item())
    return rises(rewards, 0.7)


@healthy("proximal-policy", kind="RL")
def proximal_policy(run):
    policy = mlp(4, 48, 3, activation=nn.Tanh)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    run.watch(policy, optimizer)
    rewards = []
    for _ in range(60):
        states = torch.randn(128, 4)
        with torch.no_grad():
            before = torch.distributions.Categorical(logits=policy(states))
            actions = before.sample()
            chances = before.log_prob(actions)
        reward = bandit(states, actions)
        advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
        for rows in torch.randperm(128).split(32):
            now = torch.distributions.Categorical(logits=policy(states[rows]))
            ratio = (now.log_prob(actions[rows]) - chances[rows]).exp()
            clipped = ratio.clamp(0.8, 1.2)
            loss = -torch.minimum(ratio * advantage[rows], clipped * advantage[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
        run.metric("reward", reward.mean().item())
        rewards.append(reward.mean().item())
    return rises(rewards, 0.7)


@healthy("q-learning-on-a-chain", kind="RL")
def q_learning(run):
    network = mlp(8, 48, 2)
    target = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    run.watch(network, optimizer)
    for number in range(400):
        state, action = torch.randint(0, 8, (64,)), torch.randint(0, 2, (64,))
        after = (state + 2 * action - 1).clamp(0, 7)
        done = ((state == 7) & (action == 1)).float()
        with torch.no_grad():
            wanted = done + 0.9 * (1 - done) * target(F.one_hot(after, 8).float()).max(1).values
        values = network(F.one_hot(state, 8).float()).gather(1, action[:, None])[:, 0]
        loss = F.smooth_l1_loss(values, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 15 == 0:
            target.load_state_dict(network.state_dict())
    greedy = network(torch.eye(8)).argmax(1)
    return bool((greedy == 1).all())


@healthy("deterministic-policy-and-critic", kind="RL")
def deterministic_policy(run):
    actor, critic = mlp(3, 48, 1), mlp(4, 48, 1)
    of_actor = torch.optim.Adam(actor.parameters(), lr=2e-3)
    of_critic = torch.optim.Adam(critic.parameters(), lr=5e-3)
    run.watch(actor, of_actor, name="actor")
    run.watch(critic, of_critic, name="critic")
    rewards = []
    for _ in range(250):
        states = torch.randn(64, 3)
        actions = (actor(states) + 0.3 * torch.randn(64, 1)).detach()
        reward = -(actions[:, 0] - states[:, 0]).square()
        of_critic.zero_grad()
        loss = F.mse_loss(critic(torch.cat([states, actions], 1))[:, 0], reward)
        loss.backward()
        of_critic.step()
        of_actor.zero_grad()
        loss = -critic(torch.cat([states, actor(states)], 1)).mean()
        loss.backward()
        of_actor.step()
        run.metric("reward", reward.mean().item())
        rewards.append(reward.mean().item())
    return rises(rewards, -0.4)
