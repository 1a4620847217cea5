"""bench/pointwise.c in PyTorch, in turns with it, and the ratio (above 1: ours is faster).

Usage: pointwise.py PROGRAM [device] [rows] [dtype: float32 or bfloat16] [rounds]
"""
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

program, device, rows, dtype, rounds = (sys.argv[1:] + ["cpu", "1024", "float32", "2"][len(sys.argv) - 2:])[:5]
GOES, CALLS = 21, 10
wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
rand = lambda *shape: torch.randn(*shape, device=device).to(getattr(torch, dtype))
x, y, turned = rand(int(rows), 1024), rand(int(rows), 1024), rand(1024, int(rows))
positive = x.exp()
OPS = {
    "add": lambda: x + y, "mul_scalar": lambda: x * 2, "add_row": lambda: y + x[:1],
    "add_transposed": lambda: y + turned.t(), "exp": lambda: x.exp(), "exp_transposed": lambda: x.t().exp(),
    "log": lambda: positive.log(), "tanh": lambda: x.tanh(), "sigmoid": lambda: x.sigmoid(), "erf": lambda: x.erf(),
    "gelu": lambda: F.gelu(x), "gelu_tanh": lambda: F.gelu(x, approximate="tanh"), "silu": lambda: F.silu(x),
    "softmax": lambda: x.softmax(1),
}


def microseconds(call):
    times = []
    for i in range(-2, GOES):
        wait()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        wait()
        if i >= 0:
            times.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(times)


ours, theirs = {}, {}
with torch.no_grad():
    for _ in range(int(rounds)):
        out = subprocess.run([program, device.replace("cuda", "cuda:0") if device == "cuda" else device, rows, dtype],
                             capture_output=True, text=True, check=True).stdout
        for line in map(json.loads, out.splitlines()):
            ours.setdefault(line["bench"].split(".")[1], []).append(line["value"])
        for name, call in OPS.items():
            theirs.setdefault(name, []).append(microseconds(call))
for name in OPS:
    a, b = statistics.median(ours[name]), statistics.median(theirs[name])
    print(f"{name:15} {a:9.1f} us, PyTorch {b:9.1f} us, ratio {b / a:.2f}")
