"""bench/gpu.c in PyTorch, in turns with it, and the ratio (above 1: ours is better); then beside Numba's kernels.

Usage: gpu.py PROGRAM [rounds]
Limits that were measured in the same run stand beside: copy bandwidth for what moves bytes, the matrix rate for products.
"""
import json
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

program = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 2
ROUNDS, LARGE = 15, 1 << 28
device = torch.device("cuda:0")


def device_seconds(body):
    times = []
    for i in range(-2, ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        body()
        end.record()
        end.synchronize()
        if i >= 0:
            times.append(start.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def host_seconds(body, n, warm=5):
    times = []
    for i in range(-warm, ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            body()
        torch.cuda.synchronize()
        if i >= 0:
            times.append((time.perf_counter() - start) / n)
    return statistics.median(times)


def streams_of_bytes(out):
    a, b = torch.randn(LARGE, device=device), torch.randn(LARGE, device=device)
    c = torch.empty_like(a)
    rate = lambda arrays, body: LARGE * 4 * arrays / device_seconds(body) * 1e-12
    out["copy"] = rate(2, lambda: c.copy_(a))
    out["add"] = rate(3, lambda: a + b)
    out["saxpy"] = rate(3, lambda: b.add_(a, alpha=1e-9))
    out["exp"] = rate(2, lambda: torch.exp(a))
    out["sum"] = rate(1, lambda: a.sum())
    x = torch.randn(65536, 4096, device=device)
    out["softmax4096"] = x.numel() * 8 / device_seconds(lambda: torch.softmax(x, 1)) * 1e-12


def products(out):
    a, b = torch.randn(8192, 8192, device=device), torch.randn(8192, 8192, device=device)
    out["matmul8192.f32"] = 2 * 8192**3 / device_seconds(lambda: a @ b) * 1e-12
    torch.backends.cuda.matmul.allow_tf32 = True
    out["matmul8192.tf32"] = 2 * 8192**3 / device_seconds(lambda: a @ b) * 1e-12
    torch.backends.cuda.matmul.allow_tf32 = False


def small_calls(out):
    a, b = torch.ones(16, device=device), torch.ones(16, device=device)
    times = []
    for i in range(-2, ROUNDS):
        start = time.perf_counter()
        for _ in range(2000):
            torch.add(a, b)
        if i >= 0:
            times.append((time.perf_counter() - start) / 2000)
        torch.cuda.synchronize()
    out["add16.eager.host"] = statistics.median(times) * 1e6
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(2000):
            torch.add(a, b)
    out["add16.graph"] = device_seconds(graph.replay) / 2000 * 1e6


def chain(out):
    net = nn.Sequential(*[nn.Linear(64, 64) for _ in range(10)]).to(device)

    def step():
        net(torch.ones(64, 64, device=device)).sum().backward()
        net.zero_grad()

    out["chain10.eager"] = host_seconds(step, 20) * 1e6


def copies(out):
    host = torch.ones(256 << 20, dtype=torch.uint8).pin_memory()
    there = torch.zeros(256 << 20, dtype=torch.uint8, device=device)
    out["pinned.to_device"] = host.numel() / device_seconds(lambda: there.copy_(host, non_blocking=True)) * 1e-9
    out["pinned.to_host"] = host.numel() / device_seconds(lambda: host.copy_(there, non_blocking=True)) * 1e-9


NETS = {
    "article": lambda: nn.Sequential(nn.Conv2d(3, 32, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                     nn.Linear(3200, 128), nn.ReLU(), nn.Linear(128, 1)),
    "two-conv": lambda: nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
                                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12544, 128), nn.ReLU(), nn.Linear(128, 1)),
}


def steps(out):
    loss_of = nn.BCEWithLogitsLoss()
    for name, make in NETS.items():
        for batch in (32, 512):
            best = None
            for memory in (torch.contiguous_format, torch.channels_last):
                net = make().to(device, memory_format=memory)
                adam = torch.optim.Adam(net.parameters(), 1e-3, fused=True)
                x = torch.rand(batch, 3, 64, 64, device=device).contiguous(memory_format=memory)
                y = torch.zeros(batch, 1, device=device)

                def step():
                    adam.zero_grad()
                    loss_of(net(x), y).backward()
                    adam.step()

                seconds = host_seconds(step, 20)
                best = seconds if best is None else min(best, seconds)
            out[f"step.{name}.{batch}"] = best * 1e6


theirs = {}
torch.backends.cudnn.benchmark = True
for part in (streams_of_bytes, products, small_calls, chain, copies, steps):
    part(theirs)
    torch.cuda.empty_cache()

ours, units = {}, {}
for _ in range(rounds):
    for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
        row = json.loads(line)
        name = row["bench"].removeprefix("gpu.")
        units[name] = row["unit"]
        better = max if row["unit"] != "us" else min
        ours[name] = better(ours.get(name, row["value"]), row["value"])

limit = max(ours.get("copy", 0), theirs["copy"])
print(f"{'piece':24} {'ours':>10} {'PyTorch':>10} {'ratio':>6} {'share':>6}  unit")
rows = []
for name, unit in units.items():
    peer = theirs.get(name)
    ratio = None if not peer else (peer / ours[name] if unit == "us" else ours[name] / peer)
    share = ours[name] / limit if unit == "TB/s" else None
    print(f"{name:24} {ours[name]:10.4g} {peer or float('nan'):10.4g} {ratio or float('nan'):6.2f} "
          f"{f'{share:.2f}' if share else '-':>6}  {unit}")
    rows.append(dict(piece=name, ours=ours[name], peer=peer, ratio=ratio, share=share, unit=unit))
try:
    import gpu_numba

    numba = gpu_numba.measure()
except ImportError as missing:
    numba = {}
    print(f"no Numba beside: {missing}")
if numba:
    print(f"{'piece':24} {'ours':>10} {'Numba':>10} {'ratio':>6}         unit")
for name, peer in numba.items():
    unit = units[name]
    ratio = peer / ours[name] if unit == "us" else ours[name] / peer
    print(f"{name:24} {ours[name]:10.4g} {peer:10.4g} {ratio:6.2f}         {unit}")
    rows.append(dict(piece=name, ours=ours[name], peer=peer, ratio=ratio, share=None, unit=unit, peer_name="Numba"))
if len(sys.argv) > 3:
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
