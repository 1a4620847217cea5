"""bench/step.c in PyTorch on the CPU, in turns with it, and the ratio: training steps of two networks, a 16-element add.

Usage: step.py PROGRAM [rounds] [threads]
Each round runs our program and then PyTorch's pieces; shown is the best median of each side, which is what other work on
the machine disturbed least. PyTorch's figure is the faster of its default and its channels-last memory.
"""
import json
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

program = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else torch.get_num_threads())

NETS = {
    "article": lambda: nn.Sequential(nn.Conv2d(3, 32, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                     nn.Linear(3200, 128), nn.ReLU(), nn.Linear(128, 1)),
    "two-conv": lambda: nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
                                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12544, 128), nn.ReLU(), nn.Linear(128, 1)),
}


def step_ms(name, memory):
    torch.manual_seed(0)
    net = NETS[name]().to(memory_format=memory)
    adam = torch.optim.Adam(net.parameters(), 1e-3, fused=True)
    x, y = torch.rand(32, 3, 64, 64).contiguous(memory_format=memory), torch.zeros(32, 1)
    loss_of, times = nn.BCEWithLogitsLoss(), []
    for i in range(70):
        start = time.perf_counter()
        adam.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        adam.step()
        loss.item()
        if i >= 10:
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def add_ns():
    a, b, times = torch.ones(16), torch.ones(16), []
    for _ in range(60):
        start = time.perf_counter()
        for _ in range(5000):
            torch.add(a, b)
        times.append((time.perf_counter() - start) * 1e9 / 5000)
    return statistics.median(times)


ours, theirs = {}, {}
for _ in range(rounds):
    for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
        row = json.loads(line)
        name = ".".join(filter(None, [row["bench"], row.get("network")]))
        ours.setdefault(name, []).append(row["median_ms"] * 1e3 if "median_ms" in row else row["median_ns"] / 1e3)
    for name in NETS:
        for memory in torch.contiguous_format, torch.channels_last:
            theirs.setdefault(f"step.{name}", []).append(step_ms(name, memory) * 1e3)
    theirs.setdefault("add16", []).append(add_ns() / 1e3)

print(f"{'piece':28} {'ours us':>10} {'peer us':>10} {'ratio':>6}  peer")
for name, values in ours.items():
    mine, other = min(values), min(theirs[name])
    print(f"{name:28} {mine:10.3f} {other:10.3f} {other / mine:6.2f}  PyTorch")
