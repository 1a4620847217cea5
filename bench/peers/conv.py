"""The pieces of bench/conv.c and bench/gemm.c in PyTorch, in turns with them, and the ratio.

Usage: conv.py FOLDER [rounds] [seconds per measurement] [threads]
FOLDER holds bench.conv and bench.gemm. Each round runs our programs and then PyTorch's pieces, and keeps the median of
each; shown is the best round of each side, which is what other work on the machine disturbed least. With one thread the
time is the processor's, which other work does not count in. PyTorch's figure is the faster of its two layouts.
"""
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

folder = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.3
threads = int(sys.argv[4]) if len(sys.argv) > 4 else torch.get_num_threads()
torch.set_num_threads(threads)
torch.manual_seed(1)
clock = time.thread_time if threads == 1 else time.perf_counter


def conv_block(x, c, o, stride, fused, layout, first):
    x = torch.rand(x, dtype=torch.float32).sub_(0.5).to(memory_format=layout).requires_grad_(not first)
    w = torch.rand(o, c, 3, 3).sub_(0.5).to(memory_format=layout).requires_grad_()
    b = torch.rand(o).sub_(0.5).requires_grad_()

    def forward():
        y = F.conv2d(x, w, b, stride)
        return F.max_pool2d(F.relu(y), 2) if fused else y

    return forward, [w, b] if first else [x, w, b]


def linear(n_in, n_out, relu):
    x = torch.rand(32, n_in).sub_(0.5).requires_grad_()
    w = torch.rand(n_out, n_in).sub_(0.5).requires_grad_()
    b = torch.rand(n_out).sub_(0.5).requires_grad_()

    def forward():
        y = F.linear(x, w, b)
        return F.relu(y) if relu else y

    return forward, [x, w, b]


def square(n, turned):
    a, b = torch.rand(n, n), torch.rand(n, n)
    b = b.t() if turned else b
    return lambda: a @ b


def median(body):
    for _ in range(3):
        body()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = clock()
        body()
        times.append(clock() - start)
    return statistics.median(times)


pieces = {}
for name, layout in ("nchw", torch.contiguous_format), ("nhwc", torch.channels_last):
    pieces["article.conv", name] = conv_block((32, 3, 64, 64), 3, 32, 3, True, layout, True)
    pieces["two-conv.conv1", name] = conv_block((32, 3, 64, 64), 3, 32, 1, True, layout, True)
    pieces["two-conv.conv2", name] = conv_block((32, 32, 31, 31), 32, 64, 1, True, layout, False)
    pieces["plain.conv", name] = conv_block((32, 32, 31, 31), 32, 64, 1, False, layout, False)
pieces["article.linear1", ""] = linear(3200, 128, True)
pieces["article.linear2", ""] = linear(128, 1, False)
pieces["two-conv.linear1", ""] = linear(12544, 128, True)

ours, theirs = {}, {}
for _ in range(rounds):
    for program in "conv", "gemm":
        command = [f"{folder}/bench.{program}", str(seconds), "best", str(threads)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for line in output.splitlines():
            name, value = line.split()
            ours.setdefault(name, []).append(float(value))
    for (name, layout), (forward, inputs) in pieces.items():
        theirs.setdefault(f"{name}.forward", {}).setdefault(layout, []).append(median(forward))
        y = forward()
        g = torch.rand_like(y)
        backward = median(lambda: torch.autograd.grad(y, inputs, g, retain_graph=True))
        theirs.setdefault(f"{name}.backward", {}).setdefault(layout, []).append(backward)
    for name in ours:
        if name.startswith("square"):
            body = square(int(name.split(".")[1]), name.endswith("turned"))
            theirs.setdefault(name, {}).setdefault("", []).append(median(body))

print(f"{'piece':28} {'ours us':>10} {'peer us':>10} {'ratio':>6}  peer")
for name, values in ours.items():
    mine, layout = min(values), min(theirs[name], key=lambda k: min(theirs[name][k]))
    other = min(theirs[name][layout])
    print(f"{name:28} {mine * 1e6:10.3f} {other * 1e6:10.3f} {other / mine:6.2f}  PyTorch {layout}".rstrip())
