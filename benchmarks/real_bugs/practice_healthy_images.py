"""Practice: healthy trainings on images."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from .common import accuracy, batches, digit_images, digits, falls, mlp, rises, tones
from .practice_common import fit, squares
from .registry import healthy


def conv(before, after, stride=1):
    return nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU())


@healthy("practice-branches-begin-at-zero", kind="residual network, last norm of each branch starts at zero")
def branches_begin_at_zero(run):
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first = conv(width, width)
            self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(width)
            nn.init.zeros_(self.norm.weight)

        def forward(self, x):
            return F.relu(x + self.norm(self.second(self.first(x))))

    x, y = digit_images()
    model = nn.Sequential(conv(1, 16), Block(16), Block(16), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    losses = fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, steps=150)
    return falls(losses, 0.3)


@healthy("practice-gains-begin-at-zero", kind="ReZero")
def gains_begin_at_zero(run):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.gain = nn.Linear(48, 48), nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return x + self.gain * F.relu(self.linear(x))

    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 48), *[Layer() for _ in range(12)], nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, steps=150), 0.4)


@healthy("practice-resnet-from-its-configuration", kind="Hugging Face, convolutions")
def resnet(run):
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        num_channels=1, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=10,
        downsample_in_first_stage=False,
    )  # fmt: skip
    x, y = digit_images()
    x = F.interpolate(x, scale_factor=4)
    model = ResNetForImageClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=24, steps=120):
        optimizer.zero_grad()
        loss = model(pixel_values=xb, labels=yb).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.5)


@healthy("practice-vit-from-its-configuration", kind="Hugging Face, stochastic depth off, warm-up")
def vit(run):
    from transformers import ViTConfig, ViTForImageClassification, get_cosine_schedule_with_warmup

    config = ViTConfig(
        image_size=8, patch_size=2, num_channels=1, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, num_labels=10,
    )  # fmt: skip
    x, y = digit_images()
    model = ViTForImageClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    schedule = get_cosine_schedule_with_warmup(optimizer, 30, 200)
    run.watch(model, optimizer)
    losses = []
    for image, label in batches(x * 2 - 1, y, size=32, steps=200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(image).logits, label, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return falls(losses, 0.6)


@healthy("practice-regions-to-be-ignored", kind="segmentation with U-Net, unlabelled pixels")
def regions_to_be_ignored(run):
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = conv(1, 8), conv(8, 16)
            self.up = nn.ConvTranspose2d(16, 8, 2, 2)
            self.three, self.head = conv(16, 8), nn.Conv2d(8, 2, 1)

        def forward(self, x):
            fine = self.one(x)
            coarse = self.two(F.max_pool2d(fine, 2))
            return self.head(self.three(torch.cat([fine, self.up(coarse)], 1)))

    x, mask, _ = squares()
    labels = mask[:, 0].long()
    unknown = torch.rand(labels.shape, generator=torch.Generator().manual_seed(4)) < 0.8
    labels = labels.masked_fill(unknown, 255)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def loss_of(x, labels):
        return F.cross_entropy(model(x), labels, ignore_index=255)

    return falls(fit(run, model, optimizer, loss_of, x, labels, size=8, steps=150), 0.4)


@healthy("practice-centres-on-a-map", kind="detection by heat maps with focal loss")
def centres_on_a_map(run):
    """One pixel of 64 is a centre; the bias of the head starts at -4, and the loss is divided by the objects."""
    x, _, corner = squares()
    heat = torch.zeros(len(x), 8, 8)
    heat[torch.arange(len(x)), (corner[:, 0] + 2) // 2, (corner[:, 1] + 2) // 2] = 1
    model = nn.Sequential(conv(1, 12), conv(12, 16, 2), conv(16, 16), nn.Conv2d(16, 1, 1))
    nn.init.constant_(model[-1].bias, -4.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss_of(x, heat):
        p = model(x)[:, 0].sigmoid().clamp(1e-4, 1 - 1e-4)
        near = -(1 - p).square() * p.log() * heat
        off = -p.square() * (1 - p).log() * (1 - heat)
        return (near + off).sum() / heat.sum()

    return falls(fit(run, model, optimizer, loss_of, x, heat, size=16, steps=150), 0.4)


@healthy("practice-teacher-is-an-average", kind="mean teacher with few labels")
def teacher_is_an_average(run):
    x, y = digits()
    known, unknown = torch.arange(100), torch.arange(100, 1500)
    student = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 10))
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)
    run.watch(student, optimizer)
    for number in range(250):
        few = known[torch.randint(0, 100, (32,))]
        many = unknown[torch.randint(0, 1400, (64,))]
        scores = student(torch.cat([x[few], x[many] + 0.1 * torch.randn(64, 64)]))
        with torch.no_grad():
            wished = teacher(x[many]).softmax(1)
        supervised = F.cross_entropy(scores[:32], y[few])
        agreement = (scores[32:].softmax(1) - wished).square().sum(1).mean()
        optimizer.zero_grad()
        (supervised + min(1, number / 100) * 5 * agreement).backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
                old.mul_(0.98).add_(new, alpha=0.02)
    with torch.no_grad():
        return accuracy(teacher.eval()(x[1500:]), y[1500:]) > 0.65


@healthy("practice-weights-are-averaged-at-the-end", kind="SWA with the statistics of norms made anew")
def weights_are_averaged(run):
    x, y = digit_images()
    model = nn.Sequential(conv(1, 12), conv(12, 16, 2), nn.Flatten(), nn.Linear(256, 10))
    averaged = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.02, anneal_epochs=5)
    run.watch(model, optimizer)
    losses = []
    for epoch in range(12):
        for xb, yb in batches(x[:1500], y[:1500], size=50, steps=15):
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch >= 6:
            averaged.update_parameters(model)
            schedule.step()
    torch.optim.swa_utils.update_bn([x[:500], x[500:1000]], averaged)
    averaged.eval()
    with torch.no_grad():
        run.metric("averaged accuracy", accuracy(averaged(x[1500:]), y[1500:]))
    return falls(losses, 0.3)


@healthy("practice-warm-restarts", kind="SGD with warm restarts, spikes of the loss")
def warm_restarts(run):
    x, y = digits()
    model = mlp(64, 64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=60, eta_min=1e-3)
    run.watch(model, optimizer)
    history = []
    for xb, yb in batches(x, y, size=48, steps=240):
        loss = F.cross_entropy(model(xb), yb)
        if not torch.isfinite(loss):
            raise RuntimeError(f"loss is {loss.item()}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        history.append(loss.item())
    return falls(history, 0.3)


@healthy("practice-rare-classes", kind="class imbalance with weights and label smoothing")
def rare_classes(run):
    """Nine of ten samples are of class zero, and the weights of the loss make up for it."""
    x, y = digits()
    y = (y == 3).long() + (y == 8).long() * 2
    kept = (torch.arange(len(y)) % 3 == 0) | (y == 0)
    x, y = x[kept], y[kept]
    weights = len(y) / (3 * torch.bincount(y).float())
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 3))
    criterion = nn.CrossEntropyLoss(weight=weights, label_smoothing=0.05)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    fit(run, model, optimizer, lambda x, y: criterion(model(x), y), x, y, size=64, steps=200)
    with torch.no_grad():
        found = model(x).argmax(1)
    return all(float((found[y == label] == label).float().mean()) > 0.8 for label in range(3))


@healthy("practice-half-of-the-weights-pruned", kind="magnitude pruning during training")
def half_of_the_weights_pruned(run):
    from torch.nn.utils import prune

    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    early = torch.optim.Adam(model.parameters(), lr=2e-3)
    for xb, yb in batches(x, y, size=48, steps=80):
        early.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        early.step()
    early.zero_grad()
    for layer in (model[0], model[2]):
        prune.l1_unstructured(layer, "weight", amount=0.8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, size=48, steps=150)
    return falls(losses, 0.6)


@healthy("practice-gradients-clipped-and-noised", kind="differential privacy by hand")
def gradients_clipped_and_noised(run):
    x, y = digits()
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=150):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        for weight in model.parameters():
            weight.grad += 0.01 * torch.randn_like(weight)
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.5)


@healthy("practice-layers-skipped-by-chance", kind="stochastic depth")
def layers_skipped_by_chance(run):
    class Block(nn.Module):
        def __init__(self, chance):
            super().__init__()
            self.chance, self.net = chance, nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 96), nn.GELU())
            self.out = nn.Linear(96, 48)

        def forward(self, x):
            if self.training and float(torch.rand(())) < self.chance:
                return x
            return x + self.out(self.net(x))

    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 48), *[Block(0.15 * n) for n in range(4)], nn.Linear(48, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, size=48, steps=150)
    return falls(losses, 0.4)


@healthy("practice-words-in-spectra", kind="convolutions on spectra with masked bands")
def words_in_spectra(run):
    wave, y = tones()
    window = torch.hann_window(32)

    def spectrum(wave):
        power = torch.stft(wave, 32, 8, window=window, return_complex=True).abs().square()
        return (power + 1e-6).log()[:, None]

    model = nn.Sequential(conv(1, 8), nn.MaxPool2d(2), conv(8, 16), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model.append(nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses, best, patience = [], 1e9, 0
    for number, (xb, yb) in enumerate(batches(wave[:480], y[:480], size=32, steps=200)):
        picture = spectrum(xb)
        start = int(torch.randint(0, 12, ()))
        picture[:, :, start : start + 3] = 0
        loss = F.cross_entropy(model(picture), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if number % 20 == 19:
            model.eval()
            with torch.no_grad():
                unseen = F.cross_entropy(model(spectrum(wave[480:])), y[480:]).item()
            model.train()
            run.metric("loss of unseen waves", unseen)
            best, patience = (unseen, 0) if unseen < best else (best, patience + 1)
            if patience > 3:
                break
    return falls(losses, 0.6)


@healthy("practice-hints-for-a-small-student", kind="distillation with large logits and features")
def hints_for_a_small_student(run):
    x, y = digits()
    teacher = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    early = torch.optim.Adam(teacher.parameters(), lr=1e-2)
    for xb, yb in batches(x, y, size=64, steps=250):
        early.zero_grad()
        F.cross_entropy(teacher(xb), yb).backward()
        early.step()
    teacher.requires_grad_(False).eval()

    class Student(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.hint, self.head = nn.Linear(64, 24), nn.Linear(24, 128), nn.Linear(24, 10)

        def forward(self, x):
            hidden = F.relu(self.body(x))
            return self.head(hidden), self.hint(hidden)

    student = Student()
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)

    def loss_of(x):
        with torch.no_grad():
            feature = teacher[1](teacher[0](x))
            wished = (teacher[2](feature) * 2).div(4).log_softmax(1)
        scores, hint = student(x)
        soft = F.kl_div(scores.div(4).log_softmax(1), wished, log_target=True, reduction="batchmean") * 16
        return soft + 0.1 * F.mse_loss(hint, feature)

    return falls(fit(run, student, optimizer, loss_of, x, size=64, steps=200), 0.4)


@healthy("practice-sixteen-experts-some-idle", kind="sparse mixture of experts")
def sixteen_experts(run):
    """Two of sixteen experts see a sample; some experts are hardly ever chosen, which does no harm."""

    class Sparse(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(64, 16)
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(64, 16), nn.GELU(), nn.Linear(16, 10)) for _ in range(16)
            )

        def forward(self, x):
            weight, chosen = self.gate(x).softmax(1).topk(2, dim=1)
            weight = weight / weight.sum(1, keepdim=True)
            out = torch.zeros(len(x), 10)
            for number, expert in enumerate(self.experts):
                rows, slot = (chosen == number).nonzero(as_tuple=True)
                if len(rows):
                    out = out.index_add(0, rows, weight[rows, slot, None] * expert(x[rows]))
            return out

    x, y = digits()
    model = Sparse()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    right = []

    def loss_of(x, y):
        out = model(x)
        right.append(accuracy(out, y))
        return F.cross_entropy(out, y)

    fit(run, model, optimizer, loss_of, x, y, size=64, steps=150)
    return rises(right, 0.85)
