#!/usr/bin/env python3
"""Makes nn.txt: how PyTorch prints modules, and what its optimisers make of given gradients, in float64.

    python3 nn.py > nn.txt

    print NAME LINES, then that many lines of text
    attention NAME HEADS CAUSAL | values...     of a [2, 5, 6], whose numbers and parameters follow a formula
    optimizer NAME KIND lr momentum nesterov weight_decay beta1 beta2 epsilon STEPS
    start values...
    step gradients... | values...       once a step; "step none" for a step without a gradient
    schedule KIND lr least warmup steps every gamma | rates...

Optimisers of the second list take beta2 for RMSprop's alpha; clip is 0, or the most that all gradients' norm (above 0) or
each number (below 0) is clipped to. Their name is "more".
"""
import random
import torch
from torch import nn

rng = random.Random(3)


class LinearRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.ReLU())
        self.head = nn.Linear(8, 2)


MODULES = {
    "linear": nn.Linear(4, 3),
    "linear_no_bias": nn.Linear(4, 3, bias=False),
    "conv": nn.Conv2d(3, 32, 3, stride=3),
    "conv_padded": nn.Conv2d(1, 2, 5, padding=2, bias=False),
    "max_pool": nn.MaxPool2d(2),
    "max_pool_padded": nn.MaxPool2d(3, stride=2, padding=1),
    "avg_pool": nn.AvgPool2d(2),
    "avg_pool_padded": nn.AvgPool2d(3, stride=1, padding=1),
    "flatten": nn.Flatten(),
    "relu": nn.ReLU(),
    "sigmoid": nn.Sigmoid(),
    "tanh": nn.Tanh(),
    "dropout": nn.Dropout(0.25),
    "article": nn.Sequential(nn.Conv2d(3, 32, 3, stride=3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(3200, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 1), nn.Sigmoid()),
    "nested": nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.Tanh()), nn.Linear(3, 1)),
    "regression": LinearRegression(),
    "block": Block(),
    "attention": nn.MultiheadAttention(6, 3),
    "attention_no_bias": nn.MultiheadAttention(6, 2, bias=False),
}

OPTIMIZERS = {  # kind, lr, momentum, nesterov, weight_decay, beta1, beta2, epsilon
    "plain": ("sgd", 0.1, 0, 0, 0, 0, 0, 0),
    "decay": ("sgd", 0.05, 0, 0, 0.1, 0, 0, 0),
    "momentum": ("sgd", 0.1, 0.9, 0, 0, 0, 0, 0),
    "nesterov": ("sgd", 0.1, 0.8, 1, 0.01, 0, 0, 0),
    "adam": ("adam", 0.001, 0, 0, 0, 0.9, 0.999, 1e-8),
    "adam_decay": ("adam", 0.01, 0, 0, 0.1, 0.8, 0.99, 1e-7),
}


MORE = {  # kind, lr, momentum, clip, weight_decay, beta1, beta2, epsilon
    "adamw": ("adamw", 0.01, 0, 0, 0.3, 0.9, 0.99, 1e-8),
    "rmsprop": ("rmsprop", 0.01, 0, 0, 0, 0, 0.9, 1e-8),
    "rmsprop_momentum": ("rmsprop", 0.01, 0.8, 0, 0.1, 0, 0.95, 1e-6),
    "lion": ("lion", 0.01, 0, 0, 0.2, 0.9, 0.97, 0),
    "clip_norm": ("sgd", 0.1, 0.9, 1.5, 0, 0, 0, 0),
    "clip_norm_adamw": ("adamw", 0.01, 0, 0.7, 0.1, 0.9, 0.99, 1e-8),
    "clip_value": ("adam", 0.01, 0, -0.5, 0, 0.9, 0.99, 1e-8),
    "clip_nothing": ("rmsprop", 0.01, 0, 100, 0, 0, 0.9, 1e-8),
}

SCHEDULES = {  # lr, least, warmup, steps, every, gamma
    "constant": (0.5, 0, 0, 0, 0, 0),
    "step": (0.4, 0, 0, 0, 3, 0.3),
    "linear": (0.4, 0.1, 0, 10, 0, 0),
    "cosine": (0.3, 0.01, 0, 10, 0, 0),
    "one_cycle": (0.2, 0, 4, 10, 0, 0),
    "one_cycle_usual": (0.2, 0, 0, 20, 0, 0),
}


def numbers(values):
    return " ".join("%.17g" % v for v in values)


def optimizer_case(name, kind, lr, momentum, nesterov, decay, beta1, beta2, epsilon):
    gradients = [[rng.uniform(-2, 2) for _ in range(5)] for _ in range(8)]
    gradients[3] = None
    start = [rng.uniform(-1, 1) for _ in range(5)]
    p = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    if kind == "sgd":
        optimizer = torch.optim.SGD([p], lr=lr, momentum=momentum, nesterov=bool(nesterov), weight_decay=decay)
    else:
        optimizer = torch.optim.Adam([p], lr=lr, betas=(beta1, beta2), eps=epsilon, weight_decay=decay)
    print("optimizer", name, kind, numbers([lr, momentum, nesterov, decay, beta1, beta2, epsilon]), len(gradients))
    print("start", numbers(start))
    for g in gradients:
        p.grad = None if g is None else torch.tensor(g, dtype=torch.float64)
        optimizer.step()
        print("step", "none" if g is None else numbers(g), "|", numbers(p.detach().tolist()))


class Lion:
    """Algorithm 2 of Chen et al. 2023."""

    def __init__(self, p, lr, beta1, beta2, decay):
        self.p, self.lr, self.beta1, self.beta2, self.decay, self.m = p, lr, beta1, beta2, decay, torch.zeros_like(p)

    def step(self):
        if self.p.grad is None:
            return
        with torch.no_grad():
            update = torch.sign(self.beta1 * self.m + (1 - self.beta1) * self.p.grad) + self.decay * self.p
            self.p -= self.lr * update
            self.m = self.beta2 * self.m + (1 - self.beta2) * self.p.grad


def more_case(name, kind, lr, momentum, clip, decay, beta1, beta2, epsilon):
    gradients = [[rng.uniform(-2, 2) for _ in range(5)] for _ in range(8)]
    gradients[3] = None
    start = [rng.uniform(-1, 1) for _ in range(5)]
    p = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer = {
        "sgd": lambda: torch.optim.SGD([p], lr=lr, momentum=momentum, weight_decay=decay),
        "adam": lambda: torch.optim.Adam([p], lr=lr, betas=(beta1, beta2), eps=epsilon, weight_decay=decay),
        "adamw": lambda: torch.optim.AdamW([p], lr=lr, betas=(beta1, beta2), eps=epsilon, weight_decay=decay),
        "rmsprop": lambda: torch.optim.RMSprop([p], lr=lr, alpha=beta2, eps=epsilon, momentum=momentum, weight_decay=decay),
        "lion": lambda: Lion(p, lr, beta1, beta2, decay),
    }[kind]()
    print("more", name, kind, numbers([lr, momentum, clip, decay, beta1, beta2, epsilon]), len(gradients))
    print("start", numbers(start))
    for g in gradients:
        p.grad = None if g is None else torch.tensor(g, dtype=torch.float64)
        if clip > 0 and g is not None:
            torch.nn.utils.clip_grad_norm_([p], clip)
        if clip < 0 and g is not None:
            torch.nn.utils.clip_grad_value_([p], -clip)
        optimizer.step()
        print("step", "none" if g is None else numbers(g), "|", numbers(p.detach().tolist()))


def schedule_case(kind, lr, least, warmup, steps, every, gamma):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler = {
        "constant": lambda: torch.optim.lr_scheduler.ConstantLR(optimizer, 1),
        "step": lambda: torch.optim.lr_scheduler.StepLR(optimizer, every, gamma),
        "linear": lambda: torch.optim.lr_scheduler.LinearLR(optimizer, 1, least / lr, steps),
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, least),
        "one_cycle": lambda: torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, steps,
                                                                 pct_start=warmup / steps if warmup else 0.3),
    }[kind.removesuffix("_usual")]()
    rates = []
    for _ in range(10):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(rates) < 10:
            scheduler.step()
    print("schedule", kind.removesuffix("_usual"), numbers([lr, least, warmup, steps, every, gamma]), "|", numbers(rates))


for name, module in MODULES.items():
    text = repr(module)
    print("print", name, text.count("\n") + 1)
    print(text)
for name, case in OPTIMIZERS.items():
    optimizer_case(name, *case)
for name, case in MORE.items():
    more_case(name, *case)
for name, case in SCHEDULES.items():
    schedule_case(name, *case)


def formula(t, at):
    """The numbers of a parameter or an input, by its number."""
    return torch.tensor([((7 * i + 3 * at) % 11 - 5) / 8 for i in range(t.numel())], dtype=t.dtype).reshape(t.shape)


def attention_case(name, heads, causal, bias):
    module = nn.MultiheadAttention(6, heads, bias=bias, batch_first=True).double()
    for at, p in enumerate(module.parameters()):
        p.data = formula(p, at)
    x = formula(torch.empty(2, 5, 6, dtype=torch.float64), 9)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64) if causal else None
    y, _ = module(x, x, x, attn_mask=mask, need_weights=False)
    print("attention", name, heads, int(causal), "|", numbers(y.detach().reshape(-1).tolist()))


attention_case("attention", 3, False, True)
attention_case("attention", 3, True, True)
attention_case("attention_no_bias", 2, True, False)


def print_more(modules):
    for name, module in modules.items():
        print("print", name, repr(module).count("\n") + 1)
        print(repr(module))


print_more({
    "conv_dilated": nn.Conv2d(4, 8, 3, padding=2, dilation=2, groups=2),
    "conv_depthwise": nn.Conv2d(8, 8, (3, 5), stride=(2, 1), padding=(1, 2), dilation=(1, 3), groups=8, bias=False),
    "transposed": nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1),
    "transposed_more": nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 1), padding=(0, 1), dilation=(1, 2),
                                          output_padding=(1, 0), groups=2, bias=False),
    "conv1d": nn.Conv1d(2, 3, 5, stride=2, padding=1),
    "conv1d_more": nn.Conv1d(4, 4, 3, padding="same", dilation=2, groups=4, bias=False),
    "conv_same": nn.Conv2d(2, 3, (4, 3), padding="same", dilation=(1, 2)),
})
PICTURES = {
    "max_pool_ceil": nn.MaxPool2d(3, stride=2, ceil_mode=True),
    "avg_pool_ceil": nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    "adaptive_avg": nn.AdaptiveAvgPool2d((1, 1)),
    "adaptive_max": nn.AdaptiveMaxPool2d((3, None)),
    "upsample": nn.Upsample(scale_factor=2),
    "upsample_uneven": nn.Upsample(scale_factor=(2, 1.5), mode="bilinear"),
    "upsample_size": nn.Upsample(size=(4, 5), mode="bilinear", align_corners=True),
}
for name, module in PICTURES.items():
    print("print", name, 1)
    print(repr(module))
def compositions():
    """Modules of modules, as they print; and a network of residual blocks: what it gives in training and evaluation, and
    what one step of SGD leaves of it."""

    told = {
        "list": nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 3)]),
        "lists": nn.ModuleList([nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Sequential(nn.Linear(2, 2), nn.ReLU())]),
        "empty": nn.ModuleList(),
        "dict": nn.ModuleDict({"encoder": nn.Linear(4, 2), "decoder": nn.ModuleList([nn.Linear(2, 4)])}),
    }
    for name, module in told.items():
        text = repr(module)
        print("told", name, text.count("\n") + 1)
        print(text)

    class Residual(nn.Module):
        def __init__(self, body, shortcut=None):
            super().__init__()
            self.body = body
            if shortcut is not None:
                self.shortcut = shortcut

        def forward(self, x):
            return torch.relu(self.body(x) + (self.shortcut(x) if hasattr(self, "shortcut") else x))

    def conv(i, o, kernel, stride=1):
        return nn.Conv2d(i, o, kernel, stride=stride, padding=kernel // 2, bias=False)

    def block(i, o, stride=1):
        body = nn.Sequential(conv(i, o, 3, stride), nn.BatchNorm2d(o), nn.ReLU(), conv(o, o, 3), nn.BatchNorm2d(o))
        same = i == o and stride == 1
        return Residual(body, None if same else nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o)))

    net = nn.Sequential(conv(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), block(4, 4), block(4, 6, 2), nn.AvgPool2d(4),
                        nn.Flatten(), nn.Linear(6, 3)).float()
    for at, p in enumerate(net.parameters()):
        p.data = formula(p, at)
    x, labels = formula(torch.empty(2, 3, 8, 8), 9), torch.tensor([2, 0])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    y = net(x)
    loss = nn.functional.cross_entropy(y, labels)
    loss.backward()
    optimizer.step()
    print("residual outputs", numbers9(y), "|", numbers9(loss.reshape(1)))
    for name, t in net.state_dict().items():
        print("residual", name, numbers9(t))
    net.eval()
    print("residual evaluated", numbers9(net(x)))


def numbers9(t):
    return " ".join("%.9g" % v for v in t.detach().reshape(-1).tolist())


compositions()


def averages():
    """A parameter that moves, and its average behind each update."""
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    net = nn.Linear(5, 1, bias=False).double()
    averaged = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    for at in range(1, 5):
        net.weight.data = formula(net.weight, at)
        averaged.update_parameters(net)
        print("average", at, "|", numbers(averaged.module.weight.detach().reshape(-1).tolist()))
    print("averaged", " ".join(averaged.state_dict().keys()))


averages()
