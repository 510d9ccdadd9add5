"""Small models for each way in which something can repeat, or seem to; `CASES` is filled by the decorators."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.models import DemoNetwork, OuterModule, SharedActivation, TiedEmbedding

Build = Callable[[], tuple[nn.Module, Tensor]]
CASES: dict[str, Build] = {}


def case(build: Build) -> Build:
    CASES[build.__name__] = build
    return build


class Forward(nn.Module):
    """A model whose forward pass is the decorated function; `m` in it is the model with its parts."""

    def __init__(self, forward: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = forward
        self.fc = nn.Linear(5, 5)
        self.other = nn.Linear(5, 5)
        self.state = nn.Parameter(torch.rand(5, 5))
        self.stack = nn.Parameter(torch.rand(3, 5, 5))
        self.weights = nn.ParameterList([torch.rand(5, 5) for _ in range(3)])
        self.scale: Tensor
        self.register_buffer("scale", torch.rand(5, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def of_forward(forward: Callable[[nn.Module, Tensor], Tensor]) -> None:
    CASES[forward.__name__] = lambda: (Forward(forward), torch.rand(5, 5))


# ---- the examples of the poster and the figure of the paper --------------------------------------------------


@case
def poster_demo() -> tuple[nn.Module, Tensor]:
    return DemoNetwork(), torch.rand(5, 5)


@of_forward
def poster_recurrent(m, x):
    for _ in range(3):
        x = m.fc(x)
        x = x + 1
        x = x * 2
    return x


@case
def poster_organization() -> tuple[nn.Module, Tensor]:
    class Organization(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.submodule1 = OuterModule()

        def forward(self, x: Tensor) -> Tensor:
            if torch.sum(x) > 0:
                x = x * 2
            else:
                x = x + 1
            w = 1 / x
            y = torch.log(x)
            z = x**2
            x = w + y + z
            x = self.submodule1(x)
            x = x + 1
            x = x * 2
            return x

    return Organization(), torch.rand(5, 5)


@of_forward
def figure_3a(m, x):
    x = torch.cos(x)
    x = m.fc(x)
    x = x + 1
    x = torch.sin(x)
    x = torch.cos(x)
    x = m.fc(x)
    return x + 1


@of_forward
def figure_3b(m, x):
    x = torch.cos(x)
    x = torch.relu(x)
    x = x * 2
    x = torch.cos(x)
    x = torch.relu(x)
    x = x * 2
    x = torch.tan(x)
    x = torch.cos(x)
    x = torch.relu(x)
    return x * 2


# ---- loops without parameters --------------------------------------------------------------------------------


@of_forward
def relu_again(m, x):
    for _ in range(3):
        x = torch.relu(x)
    return x


@of_forward
def constant_of_the_step(m, x):
    for i in range(3):
        x = torch.sin(x) + i
    return x


@of_forward
def nested(m, x):
    for _ in range(3):
        x = torch.sin(x)
        for _ in range(2):
            x = torch.cos(x)
    return x


@of_forward
def three_levels(m, x):
    for _ in range(2):
        x = x.sin()
        for _ in range(2):
            x = x.cos()
            for _ in range(3):
                x = x.tanh() * 2
        x = x.exp()
    return x


@of_forward
def while_of_a_tensor(m, x):
    while x.sum() > 0.5:
        x = x * 0.5
    return x


@of_forward
def shrinking(m, x):
    for _ in range(3):
        x = x[1:].relu()
    return x


@of_forward
def pooling_pyramid(m, x):
    x = x.repeat(4, 4)[None, None]
    levels = []
    for _ in range(3):
        x = F.avg_pool2d(x, 2)
        levels.append(x.mean())
    return torch.stack(levels)


@of_forward
def sum_of_parts(m, x):
    """The first pass has nothing to add to."""
    total = None
    for i in range(4):
        part = (x * i).sin()
        total = part if total is None else total + part
    return total


@of_forward
def written_into_a_row(m, x):
    rows = torch.zeros(5, 5)
    for i in range(5):
        rows[i] = x[i].sin()
    return rows


@of_forward
def one_loop_and_another(m, x):
    for _ in range(3):
        x = x.sin().cos()
    for _ in range(2):
        x = x.sin().cos()
    return x


@of_forward
def branch_in_a_loop(m, x):
    for i in range(4):
        x = x.sin()
        if i > 0:
            x = x.cos()
        x = x.tanh()
    return x


# ---- loops through parameters --------------------------------------------------------------------------------


@of_forward
def factor_of_the_step(m, x):
    for i in range(3):
        x = m.fc(x) * (i + 1)
    return x


@of_forward
def loops_around_a_layer(m, x):
    for _ in range(3):
        x = m.fc(x)
        for _ in range(2):
            x = x.cos()
        for _ in range(4):
            x = x.sin()
    return x


@of_forward
def one_more_behind_the_loop(m, x):
    for _ in range(3):
        x = m.fc(x).relu()
    return m.fc(x).relu()


@of_forward
def residual_written_out(m, x):
    x = x + m.fc(x)
    return x + m.fc(x)


@of_forward
def learned_first_state(m, x):
    h = m.state
    for t in range(4):
        h = torch.tanh(m.fc(x[t]) + m.other(h))
    return h


@of_forward
def no_first_state(m, x):
    h = None
    for t in range(4):
        a = m.fc(x[t])
        h = torch.tanh(a) if h is None else torch.tanh(a + m.other(h))
    return h


@of_forward
def branches_at_random(m, x):
    for t in range(7):
        x = m.fc(x)
        if t in (1, 2, 5):
            x = x.sin()
        if t in (0, 2, 3, 5):
            x = x.cos()
        if t in (4, 5):
            x = m.other(x)
    return x


@of_forward
def one_helper_for_two_layers(m, x):
    def act(v):
        return v.relu()

    for _ in range(3):
        x = act(m.fc(x))
        x = act(m.other(x))
    return x


@of_forward
def transposed_each_time(m, x):
    for _ in range(3):
        x = torch.relu(x @ m.state.t())
    return x


@of_forward
def split_once(m, x):
    left, right = m.state.chunk(2)
    for _ in range(3):
        x = torch.cat([x @ left.t(), x @ right.t()], 1).relu()
    return x


class Cell(nn.Module):
    """One step of an LSTM, written out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_input = nn.Linear(width, 4 * width)
        self.of_state = nn.Linear(width, 4 * width)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = (self.of_input(x) + self.of_state(h)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Lstm(nn.Module):
    """The step again and again, and a layer behind the last."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell(4)
        self.readout = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], 4)
        c = torch.zeros_like(h)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], h, c)
        return self.readout(h)


@case
def lstm_of_200_steps() -> tuple[nn.Module, Tensor]:
    return Lstm(), torch.rand(2, 200, 4)


class Block(nn.Module):
    """Parts without parameters."""

    def __init__(self, act: nn.Module | None = None) -> None:
        super().__init__()
        self.act = act or nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x) * 2


@case
def one_block_three_times() -> tuple[nn.Module, Tensor]:
    block = Block()
    return nn.Sequential(block, block, block), torch.rand(5, 5)


# ---- used again, but not a loop in time ----------------------------------------------------------------------


class Siamese(nn.Module):
    """One encoder on two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        left = self.encoder(x)
        right = self.encoder(x.flip(0))
        return (left - right).abs().sum()


@case
def siamese() -> tuple[nn.Module, Tensor]:
    return Siamese(), torch.rand(5, 5)


@of_forward
def siamese_side_by_side(m, x):
    a, b = m.fc(x), m.fc(x * 2)
    a, b = a.relu(), b.relu()
    return (a - b).abs()


# ---- nothing repeats -----------------------------------------------------------------------------------------


@case
def tied_embedding_and_head() -> tuple[nn.Module, Tensor]:
    return TiedEmbedding(), torch.tensor([[1, 2, 3]])


@case
def one_activation_for_two_layers() -> tuple[nn.Module, Tensor]:
    return SharedActivation(), torch.rand(5, 5)


@of_forward
def apart(m, x):
    for i in range(2):
        x = x.sin().cos().tanh()
        if i == 0:
            x = x.exp()
    return x


@of_forward
def other_function_each_time(m, x):
    for function in (torch.sin, torch.cos, torch.tan):
        x = function(x) * 2
    return x


@of_forward
def independent_parts(m, x):
    return torch.stack([(row * 2).sin() for row in x])


@of_forward
def columns_of_a_table(m, x):
    """`zip` takes the table apart, then each of its rows: the same function at the same place."""
    first, second = zip(*x[:, :2], strict=True)
    return sum(first) * sum(second)


@of_forward
def sum_of_four(m, x):
    return x.sin() + x.cos() + x.tan() + x.exp()


@of_forward
def one_function_twice(m, x):
    return x[..., None].mean(-1).relu().relu().unsqueeze(-1).unsqueeze(-1)


@of_forward
def other_weights_each_time(m, x):
    for weight in m.weights:
        x = torch.relu(x @ weight)
    return x


@of_forward
def weights_of_a_stack(m, x):
    for i in range(3):
        x = torch.relu(x @ m.stack[i])
    for weight in m.stack:
        x = torch.relu(x @ weight)
    return x


@of_forward
def weights_transposed_before(m, x):
    for weight in [weight.t() for weight in m.weights]:
        x = torch.relu(x @ weight)
    return x


@case
def blocks_without_parameters() -> tuple[nn.Module, Tensor]:
    act = nn.ReLU()
    return nn.Sequential(Block(act), Block(act), Block(act)), torch.rand(5, 5)


@case
def one_position_for_all_blocks() -> tuple[nn.Module, Tensor]:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(5, 5)

        def forward(self, x: Tensor, position: Tensor) -> Tensor:
            return self.fc(x + position)

    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.position = nn.Parameter(torch.rand(5))
            self.blocks = nn.ModuleList([Shifted(), Shifted(), Shifted()])

        def forward(self, x: Tensor) -> Tensor:
            for block in self.blocks:
                x = block(x, self.position)
            return x

    return Positions(), torch.rand(5, 5)
