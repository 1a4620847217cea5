"""The same as bench/step.c in PyTorch on the CPU: training steps of the two networks, and a 16-element add.

Usage: step.py [THREADS]. The faster of default and channels-last memory is reported for each network."""
import json
import statistics
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else torch.get_num_threads())

NETS = {
    "article": lambda: nn.Sequential(nn.Conv2d(3, 32, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                     nn.Linear(3200, 128), nn.ReLU(), nn.Linear(128, 1)),
    "two-conv": lambda: nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
                                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12544, 128), nn.ReLU(), nn.Linear(128, 1)),
}


def measure(name, memory):
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
    return statistics.median(times), min(times)


for name in NETS:
    median, least = min(measure(name, m) for m in (torch.contiguous_format, torch.channels_last))
    print(json.dumps({"peer": "pytorch", "bench": "step", "network": name, "median_ms": round(median, 3),
                      "min_ms": round(least, 3)}))
a, b = torch.ones(16), torch.ones(16)
times = []
for _ in range(60):
    start = time.perf_counter()
    for _ in range(20000):
        torch.add(a, b)
    times.append((time.perf_counter() - start) * 1e9 / 20000)
print(json.dumps({"peer": "pytorch", "bench": "add16", "median_ns": round(statistics.median(times)),
                  "min_ns": round(min(times))}))
