"""bench/convs.c in PyTorch: cuDNN's convolutions of the same layers, without what ours do besides (bias and activation
and pooling forward, their gradients backward), in the faster memory order, cuDNN's search on, as replays of a graph.

Usage: convs.py [PROGRAM]: with bench.convs it is run too, and all stand in one table: our kernels, cuDNN by our call
with what ours do besides, PyTorch. Ratios are to our kernels: above 1 these are better.
"""
import json
import statistics
import subprocess
import sys

import torch

ROUNDS, CALLS = 15, 10
device = torch.device("cuda:0")
SHAPES = [
    ("article", 64, 3, 32, 3, 3, 0, (32, 512)),
    ("two-conv.1", 64, 3, 32, 3, 1, 0, (32, 512)),
    ("two-conv.2", 31, 32, 64, 3, 1, 0, (32, 512)),
    ("plain-3x3", 56, 128, 128, 3, 1, 1, (32,)),
    ("plain-1x1", 56, 64, 256, 1, 1, 0, (32,)),
    ("plain-64", 56, 64, 64, 3, 1, 1, (4, 32)),
    ("plain-down", 56, 64, 128, 3, 2, 1, (32,)),
    ("plain-256", 14, 256, 256, 3, 1, 1, (4, 32)),
    ("plain-512", 7, 512, 512, 3, 1, 1, (32,)),
    ("plain-1x1-1024", 14, 1024, 256, 1, 1, 0, (32,)),
    ("plain-5x5", 28, 32, 64, 5, 1, 2, (32,)),
    ("first-7x7", 224, 3, 64, 7, 2, 3, (32,)),
    ("narrow-3x3", 28, 1, 32, 3, 1, 0, (128,)),
]


def microseconds(body):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            body()
    times = []
    for i in range(-3, ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= 0:
            times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times)


def measure(name, side, channels, outputs, kernel, stride, padding, batch, kind):
    torch.backends.cudnn.allow_tf32 = kind == "tf32"
    dtype = {"bf16": torch.bfloat16}.get(kind, torch.float32)
    best = {}
    for memory in (torch.contiguous_format, torch.channels_last):
        x = torch.rand(batch, channels, side, side, device=device).to(dtype).contiguous(memory_format=memory)
        w = torch.randn(outputs, channels, kernel, kernel, device=device).to(dtype).contiguous(memory_format=memory)
        forward = lambda: torch.conv2d(x, w, None, stride, padding)
        dy = torch.randn_like(forward()).contiguous(memory_format=memory)

        def backward(mask):
            return torch.ops.aten.convolution_backward(
                dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, mask)

        pieces = {"forward": forward, "weights": lambda: backward([False, True, False])}
        if channels > 3:
            pieces["input"] = lambda: backward([True, False, False])
        for piece, body in pieces.items():
            best[piece] = min(best.get(piece, 1e9), microseconds(body))
    return best


ours = {}
if len(sys.argv) > 1:
    for line in subprocess.run(sys.argv[1:2], check=True, capture_output=True, text=True).stdout.splitlines():
        row = json.loads(line)
        ours[row["bench"].removeprefix("convs.")] = row["value"]
nan = float("nan")
print(f"{'piece, us':36} {'ours':>9} {'cuDNN':>9} {'ratio':>6} {'PyTorch':>9} {'ratio':>6}")
torch.backends.cudnn.benchmark = True
for *shape, batches in SHAPES:
    for batch in batches:
        for kind in ("f32", "tf32", "bf16"):
            for piece, peer in measure(*shape, batch, kind).items():
                key = f"{shape[0]}.{batch}.{piece}.{kind}"
                mine, called = ours.get(key, nan), ours.get(f"{key}.cudnn", nan)
                print(f"{key:36} {mine:9.2f} {called:9.2f} {called / mine:6.2f} {peer:9.2f} {peer / mine:6.2f}",
                      flush=True)
    torch.cuda.empty_cache()
