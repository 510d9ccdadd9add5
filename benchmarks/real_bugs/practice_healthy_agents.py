"""Practice: healthy agents."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from .common import mlp, rises
from .practice_bugs_generative import ActorCritic, Corridor
from .registry import healthy


@healthy("practice-games-with-generalised-advantages", kind="actor and critic, noisy rewards")
def games_with_generalised_advantages(run):
    model = ActorCritic()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3, alpha=0.99, eps=1e-5)
    run.watch(model, optimizer)
    world, won = Corridor(), []
    for _ in range(150):
        state, action, returns, share = world.play(lambda s: model.actor(model.trunk(s)), many=12)
        returns = returns + 0.1 * torch.randn_like(returns)
        logits, value = model(state)
        policy = torch.distributions.Categorical(logits=logits)
        advantage = (returns - value[:, 0]).detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        gain = (policy.log_prob(action) * advantage).mean() + 0.01 * policy.entropy().mean()
        loss = 0.5 * F.mse_loss(value[:, 0], returns) - gain
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        run.metric("share won", share)
        won.append(share)
    return rises(won, 0.9)


@healthy("practice-clipped-ratios-on-old-games", kind="PPO with several epochs a rollout")
def clipped_ratios(run):
    actor, critic = mlp(8, 32, 2, activation=nn.Tanh), mlp(8, 32, 1, activation=nn.Tanh)
    optimizer = torch.optim.Adam([{"params": actor.parameters(), "lr": 3e-3}, {"params": critic.parameters()}], lr=1e-2)
    both = nn.ModuleDict({"actor": actor, "critic": critic})

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = both

        def forward(self, state):
            return self.parts["actor"](state), self.parts["critic"](state)[:, 0]

    agent, world, won = Agent(), Corridor(), []
    run.watch(agent, optimizer)
    for _ in range(50):
        state, action, returns, share = world.play(actor)
        with torch.no_grad():
            old = torch.distributions.Categorical(logits=actor(state)).log_prob(action)
            advantage = returns - critic(state)[:, 0]
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        for _ in range(4):
            logits, value = agent(state)
            policy = torch.distributions.Categorical(logits=logits)
            ratio = (policy.log_prob(action) - old).exp()
            gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            loss = -gain + 0.5 * (value - returns).square().mean() - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        won.append(share)
    return rises(won, 0.9)


@healthy("practice-two-networks-against-overestimation", kind="double DQN with replay and a lagging target")
def double_dqn(run):
    generator = torch.Generator().manual_seed(14)
    online = mlp(8, 48, 2)
    lagging = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=5e-3)
    run.watch(online, optimizer)
    memory, place = [], 0
    for step in range(1500):
        eps = max(0.1, 1 - step / 500)
        with torch.no_grad():
            best = int(online(F.one_hot(torch.tensor([place]), 8).float()).argmax()) if step > 50 else 0
        action = (
            int(torch.randint(0, 2, (), generator=generator)) if torch.rand((), generator=generator) < eps else best
        )
        following = min(7, max(0, place + 2 * action - 1))
        done = following == 7
        memory.append((place, action, float(done), following, float(done)))
        place = 0 if done else following
        if step < 60 or step % 4:
            continue
        rows = [memory[int(n)] for n in torch.randint(0, len(memory), (32,), generator=generator)]
        state, act, reward, after, over = (torch.tensor(column) for column in zip(*rows, strict=True))
        with torch.no_grad():
            hot = F.one_hot(after, 8).float()
            wished = reward + 0.9 * (1 - over) * lagging(hot).gather(1, online(hot).argmax(1, keepdim=True))[:, 0]
        value = online(F.one_hot(state, 8).float()).gather(1, act[:, None])[:, 0]
        loss = F.huber_loss(value, wished)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.metric("td error", (value - wished).abs().mean())
        if step % 40 == 0:
            lagging.load_state_dict(online.state_dict())
    with torch.no_grad():
        return bool((online(torch.eye(8)[:7]).argmax(1) == 1).all())


@healthy("practice-entropy-weight-is-learnt", kind="soft actor and critics on a bandit")
def entropy_weight_is_learnt(run):
    """A Gaussian policy, two critics, and a learnt weight of the entropy; rewards are noisy."""

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.policy = mlp(2, 32, 2)
            self.critics = nn.ModuleList(mlp(3, 48, 1) for _ in range(2))
            self.log_alpha = nn.Parameter(torch.zeros(()))

        def act(self, state):
            mean, spread = self.policy(state).chunk(2, 1)
            law = torch.distributions.Normal(mean, spread.clamp(-4, 1).exp())
            action = law.rsample()
            return action.tanh(), (law.log_prob(action) - (1 - action.tanh().square() + 1e-6).log()).sum(1)

        def forward(self, state, action):
            return torch.stack([critic(torch.cat([state, action], 1))[:, 0] for critic in self.critics])

    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=5e-3)
    run.watch(agent, optimizer)
    rewards = []
    for _ in range(250):
        state = torch.rand(64, 2) * 2 - 1
        with torch.no_grad():
            action, _ = agent.act(state)
        reward = 1 - 4 * (action[:, 0] - 0.5 * state[:, 0]).square() + 0.3 * torch.randn(64)
        critic_loss = (agent(state, action) - reward).square().mean()
        fresh, surprise = agent.act(state)
        frozen = [critic.requires_grad_(False) for critic in agent.critics]
        worth = agent(state, fresh).amin(0)
        for critic in frozen:
            critic.requires_grad_(True)
        alpha = agent.log_alpha.exp()
        actor_loss = (alpha.detach() * surprise - worth).mean()
        alpha_loss = -(agent.log_alpha * (surprise.detach() - 1.0)).mean()
        optimizer.zero_grad()
        (critic_loss + actor_loss + 0.1 * alpha_loss).backward()
        optimizer.step()
        rewards.append(float(reward.mean()))
        run.metric("reward", rewards[-1])
    return rises(rewards, 0.3)
