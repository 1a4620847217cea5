"""bench/half.c in PyTorch, in turns with it, and the ratio (above 1: ours is better).

Usage: half.py PROGRAM [rounds] [file for the same as JSON]
"""
import json
import statistics
import subprocess
import sys

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


NETWORKS = {
    "article": lambda: nn.Sequential(nn.Conv2d(3, 32, 3, stride=3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                     nn.Linear(3200, 128), nn.ReLU(), nn.Linear(128, 1)),
    "two-conv": lambda: nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
                                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12544, 128), nn.ReLU(),
                                      nn.Linear(128, 1)),
    "wide": lambda: nn.Sequential(nn.Flatten(), nn.Linear(12288, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                                  nn.Linear(4096, 1)),
}


def measure_steps(out):
    """One CUDA graph a step, fused Adam; float16 with a scaler would need the host's word and is left out."""
    torch.backends.cudnn.benchmark = True
    for name, make in NETWORKS.items():
        for dtype, code in ((torch.float32, "float32"), (torch.bfloat16, "bfloat16")):
            net = make().to(device, memory_format=torch.channels_last)
            adam = torch.optim.Adam(net.parameters(), fused=True, capturable=True)
            x = torch.rand(512, 3, 64, 64, device=device).to(memory_format=torch.channels_last)
            y = torch.zeros(512, 1, device=device)

            def step():
                adam.zero_grad(set_to_none=True)
                with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype != torch.float32, cache_enabled=False):
                    loss = nn.functional.binary_cross_entropy_with_logits(net(x), y)
                loss.backward()
                adam.step()

            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(4):
                    step()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            out[f"step.{name}.512.{code}"] = device_seconds(lambda: [graph.replay() for _ in range(20)]) / 20 * 1e6


ours, theirs = {}, {}
for _ in range(rounds):
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in map(json.loads, lines):
        ours.setdefault(line["bench"].removeprefix("half."), []).append(line["value"])
    once = {}
    for dtype, name in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16")):
        measure(dtype, name, once)
    measure_steps(once)
    torch.cuda.empty_cache()
    for name, value in once.items():
        theirs.setdefault(name, []).append(value)
table = []
for name, values in theirs.items():
    a, b = statistics.median(ours[name]), statistics.median(values)
    ratio = b / a if name.startswith("step.") else a / b
    print(f"{name:28} ours {a:8.4g}  peer {b:8.4g}  ratio {ratio:.3f}")
    table.append({"piece": name, "ours": a, "peer": b, "ratio": ratio})
for name in sorted(set(ours) - set(theirs)):
    print(f"{name:28} ours {statistics.median(ours[name]):8.4g}")
if len(sys.argv) > 3:
    with open(sys.argv[3], "w") as file:
        json.dump({"pytorch": torch.__version__, "results": table}, file, indent=1)
