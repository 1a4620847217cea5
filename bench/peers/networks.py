"""Networks for pictures beside torchvision's, with the same weights: what bench/networks.c gives of the same pictures.

Usage: python networks.py PROGRAM [--size 224] [--batch 2] [--classes 1000] [--device cpu] [--names NAME ...]
Weights are torchvision's random ones, with norms and biases drawn too and running statistics of a few batches. Shown is
the largest |a - b| / (1 + |b|) of: what the network gives in evaluation and in training, the loss, and the weights and
running statistics after one step of SGD; how far PyTorch's own weights then are from those that it computes in float64
(in float32 some inputs of a ReLU are on the other side of 0, and small batches make the most of that); and all of it with
both in float64. It ends with status 1 above 1e-4, of weights in float32 above that and three times PyTorch's own.
"""
import argparse
import copy
import pathlib
import subprocess
import sys
import tempfile

import torch
import torchvision
from safetensors.torch import load_file, save_file
from torch import nn

SIZES = {"vit_tiny": (192, 3), "vit_b_16": (768, 12)}
NAMES = ["vgg11", "resnet18", "resnet34", "resnet50", "mobilenet_v2", "vit_tiny", "vit_b_16"]


def network(name, size, classes):
    if name in SIZES:
        width, heads = SIZES[name]
        return torchvision.models.VisionTransformer(size, 16, 12, heads, width, 4 * width, num_classes=classes)
    return getattr(torchvision.models, name)(num_classes=classes)


def drawn(net, x):
    for name, t in net.state_dict().items():
        if t.dim() == 1 and not name.endswith(("running_mean", "running_var")):
            t.add_(torch.randn_like(t) * 0.1)
        elif t.dim() and not t.abs().max():
            t.normal_(0, 0.02)
    net.train()
    with torch.no_grad():
        for _ in range(5):
            net(x)
    return net


def far(a, b):
    d = (a.double() - b.double()).abs() / (1 + b.double().abs())
    return d.max().item() if d.isfinite().all() else float("inf")


def step(net, x, labels):
    """What bench/networks.c writes, of PyTorch."""
    net.eval()
    with torch.no_grad():
        made = {"evaluated": net(x)}
    net.train()
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    y = net(x)
    loss = nn.functional.cross_entropy(y, labels)
    loss.backward()
    sgd.step()
    made |= {"trained": y.detach(), "loss": loss.detach()}
    return made | {"after." + n: t for n, t in net.state_dict().items()}


def distances(a, b):
    found = {k: far(a[k], b[k]) for k in ("evaluated", "trained", "loss")}
    return found | {"weights": max(far(a[k], b[k]) for k in b if k.startswith("after."))}


def ask(name, arguments, folder, net, x, labels):
    save_file(net.state_dict(), folder / "weights")
    save_file({"x": x, "labels": labels}, folder / "batch")
    subprocess.run([arguments.program, name, folder / "weights", folder / "batch", folder / "out", arguments.device],
                   check=True)
    return load_file(folder / "out")


def compare(name, arguments, folder):
    torch.manual_seed(7)
    net = network(name, arguments.size, arguments.classes)
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    x = torch.randn(arguments.batch, 3, arguments.size, arguments.size)
    labels = torch.arange(arguments.batch) * 5 % arguments.classes
    drawn(net, torch.randn_like(x))
    ours, theirs = ask(name, arguments, folder, net, x, labels), step(copy.deepcopy(net), x, labels)
    exact = step(copy.deepcopy(net).double(), x.double(), labels)
    ours_exact = ask(name, arguments, folder, net, x.double(), labels)
    assert sorted(ours) == sorted(theirs)
    found = distances(ours, theirs)
    rest = distances(theirs, exact)["weights"], max(distances(ours_exact, exact).values())
    print(f"{name:14}" + "".join(f"{v:12.2e}" for v in (*found.values(), *rest)), flush=True)
    return max(found["evaluated"], found["trained"], found["loss"], rest[1], found["weights"] - 3 * rest[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--names", nargs="+", default=NAMES)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--device", default="cpu")
    a = parser.parse_args()
    print(f"{'':14}{'evaluated':>12}{'trained':>12}{'loss':>12}{'weights':>12}{'(its own)':>12}{'float64':>12}")
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(max(compare(name, a, pathlib.Path(folder)) for name in a.names) > 1e-4)
