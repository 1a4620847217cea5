"""bench/half.c in PyTorch, in turns with it, and the ratio (above 1: ours is better).

Usage: half.py PROGRAM [rounds]
"""
import json
import statistics
import subprocess
import sys

import torch

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


def measure(dtype, name, out):
    a, b = (torch.randn(LARGE, device=device, dtype=dtype) for _ in range(2))
    rate = lambda bytes_each, body: LARGE * bytes_each / device_seconds(body) * 1e-12
    out[f"add.{name}"] = rate(6, lambda: a + b)
    out[f"exp.{name}"] = rate(4, lambda: torch.exp(a))
    out[f"sum.{name}"] = rate(2, lambda: a.sum())
    out[f"to_float32.{name}"] = rate(6, lambda: a.float())
    x = torch.randn(65536, 4096, device=device, dtype=dtype)
    out[f"softmax4096.{name}"] = x.numel() * 4 / device_seconds(lambda: torch.softmax(x, 1)) * 1e-12
    del a, b, x
    c, d = (torch.randn(8192, 8192, device=device, dtype=dtype) for _ in range(2))
    bias = torch.zeros(8192, device=device, dtype=dtype)
    flops = 2 * 8192**3 * 1e-12
    out[f"matmul8192.{name}"] = flops / device_seconds(lambda: c @ d)
    out[f"linear8192.relu.{name}"] = flops / device_seconds(
        lambda: torch.relu(torch.nn.functional.linear(c, c, bias)))


ours, theirs = {}, {}
for _ in range(rounds):
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in map(json.loads, lines):
        ours.setdefault(line["bench"].removeprefix("half."), []).append(line["value"])
    once = {}
    for dtype, name in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16")):
        measure(dtype, name, once)
    torch.cuda.empty_cache()
    for name, value in once.items():
        theirs.setdefault(name, []).append(value)
for name, values in theirs.items():
    a, b = statistics.median(ours[name]), statistics.median(values)
    print(f"{name:28} ours {a:8.4g}  peer {b:8.4g}  ratio {a / b:.3f}")
