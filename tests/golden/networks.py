#!/usr/bin/env python3
"""Makes networks.txt: torchvision's networks for pictures: what their parameters and buffers are called, and what they make
of weights that follow a formula, in float64.

    python3 networks.py > networks.txt

    names NAME COUNT, then that many lines: a name of the state dict and its sizes
    evaluated NAME SIZE | logits of two pictures for five classes, in evaluation mode
    trained NAME | logits in training mode, without dropout | the loss
    step NAME COUNT, then that many lines: a name of the state dict; by one step of SGD (rate 0.1, decay 0.001) the norm of
        its change, and the change of its first number
"""
import sys

import numpy as np
import torch
import torchvision
from torch import nn

NAMES = ("vgg11", "resnet18", "resnet50", "mobilenet_v2", "vit_tiny")
CLASSES, BATCH = 5, 2


def network(name, size):
    if name == "vit_tiny":
        return torchvision.models.VisionTransformer(size, 16, 12, 3, 192, 768, num_classes=CLASSES)
    return getattr(torchvision.models, name)(num_classes=CLASSES)


def drawn(count, at):
    """Numbers in [-1, 1), by tensor and element."""
    h = np.arange(count, dtype=np.uint64) * 2654435761 + (at + 1) * 40503
    h = (h ^ (h >> 15)) * 2246822519 & 0xFFFFFFFF
    return torch.from_numpy(((h ^ (h >> 13)) & 0xFFFF).astype(np.float64) / 32768 - 1)


def begin(net):
    for at, (name, t) in enumerate(net.state_dict().items()):
        if not t.dim():
            continue
        u = drawn(t.numel(), at).reshape(t.shape)
        if t.dim() > 1:
            fan_in = t[0].numel() if t.dim() != 3 else 100
            u = u * (3 / fan_in) ** 0.5
        else:
            u = u / 8 + (name.endswith("var") or (name.endswith("weight")))
        t.copy_(u.float())
    return net.double()


def numbers(t):
    return " ".join("%.9g" % v for v in t.detach().reshape(-1).tolist())


def train(name, net, x):
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    net.train()
    before = {n: t.clone() for n, t in net.state_dict().items()}
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=0.001)
    y = net(x)
    loss = nn.functional.cross_entropy(y, torch.tensor([3, 1]))
    loss.backward()
    sgd.step()
    print("trained", name, "|", numbers(y), "|", numbers(loss))
    print("step", name, len(before))
    for n, t in net.state_dict().items():
        change = (t - before[n]).double()
        print(n, "%.9g %.9g" % (change.norm(), change.reshape(-1)[0]))


for name in NAMES:
    size = 32 if name == "resnet50" else 64
    net = begin(network(name, size))
    state = net.state_dict()
    print("names", name, len(state))
    for n, t in state.items():
        print(n, *t.shape)
    if name == "vgg11":  # 0.5 GB of weights
        continue
    x = drawn(BATCH * 3 * size * size, 1000).reshape(BATCH, 3, size, size)
    net.eval()
    with torch.no_grad():
        print("evaluated", name, size, "|", numbers(net(x)))
    if name != "resnet50":
        train(name, net, x)
    sys.stdout.flush()
