"""bench/vision.c beside PyTorch, in one run: training steps of ResNets with fused SGD, channels-last memory and cuDNN's
search; eager, in a CUDA graph, compiled (with a bare step and with CUDA graphs), each in a process of its own; the best counts.

Usage: vision.py PROGRAM DEVICE [ways] [CASE ...], a CASE as bench.vision has it: PRECISION:NETWORK:BATCH:SIZE:CLASSES
"""
import json
import sys
import time

import gpt

DEPTHS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3), "resnet50": (3, 4, 6, 3)}
CASES = ["bf16:resnet18:256:224:1000", "bf16:resnet50:256:224:1000"]


def network(torch, name, classes):
    from torch import nn
    growth = 4 if name == "resnet50" else 1

    def conv(channels, out, size, stride=1):
        return [nn.Conv2d(channels, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out)]

    class Block(nn.Module):
        def __init__(self, channels, width, stride):
            super().__init__()
            out, relu = width * growth, nn.ReLU(inplace=True)
            self.body = nn.Sequential(*conv(channels, width, 1), relu, *conv(width, width, 3, stride), relu, *conv(width, out, 1)) \
                if growth > 1 else nn.Sequential(*conv(channels, width, 3, stride), relu, *conv(width, width, 3))
            self.aside = nn.Sequential(*conv(channels, out, 1, stride)) if stride > 1 or channels != out else nn.Identity()

        def forward(self, x):
            return torch.relu(self.body(x) + self.aside(x))

    layers, channels = [*conv(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, depth in enumerate(DEPTHS[name]):
        for i in range(depth):
            layers.append(Block(channels, 64 << stage, 2 if stage and not i else 1))
            channels = (64 << stage) * growth
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def measure(device, way, case):
    import torch
    precision, name, batch, size, classes = case.split(":")
    batch, size, classes = int(batch), int(size), int(classes)
    on_gpu = device.startswith("cuda")
    if precision == "tf32":
        torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.manual_seed(1)
    x = torch.randn(batch, 3, size, size, device=device).contiguous(memory_format=torch.channels_last)
    y = (torch.arange(batch) * 2654435761).remainder(classes).to(device)
    net = network(torch, name, classes).to(device).to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=on_gpu)
    run = torch.compile(net) if way in ("compile", "compile+graph") else net

    def step():
        with torch.autocast(device.split(":")[0], torch.bfloat16, enabled=precision == "bf16"):
            loss = torch.nn.functional.cross_entropy(run(x), y)
        loss.backward()
        sgd.step()
        sgd.zero_grad(set_to_none=not way.endswith("graph"))

    gpt.timed(torch, step, way, on_gpu, 10 if on_gpu else 3)


def main():
    program, device = sys.argv[1:3]
    ways = (sys.argv[3] if len(sys.argv) > 3 else "eager,graph,compile,compile+graph").split(",")
    for case in sys.argv[4:] or CASES:
        ours = gpt.of([program, device, *case.split(":")])
        theirs = {way: gpt.of([sys.executable, __file__, "--one", device, way, case]) for way in ways}
        gpt.compared(case, ours, theirs)


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        measure(*sys.argv[2:5])
    else:
        main()
