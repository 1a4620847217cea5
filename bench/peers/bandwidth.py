"""bench/bandwidth.c in PyTorch, in turns with it, and the ratio (above 1: ours is better): ops of any shape that are as fast as
memory where their kernels are.

Usage: bandwidth.py PROGRAM [rounds] [file for the same as JSON] [device] [only those whose name has this]
Each op is called plainly and as a CUDA graph; shown is the quicker one. Backward is timed together with forward. Beside
them: what share of the copy rate, measured in the same run, the bytes come to that the op must move. On a CPU sizes
shrink, to try the program itself.
"""
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

program = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 2
device = torch.device(sys.argv[4] if len(sys.argv) > 4 else "cuda:0")
wanted = sys.argv[5] if len(sys.argv) > 5 else ""
ROUNDS, AT_ONCE = 11, 5
SCALE = 1 if device.type == "cuda" else 1024
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
PICTURES = (64, 64, 112, 112)
max_pool = lambda x, y: F.max_pool2d(x, 3, 2, 1)
mean = lambda x, y: x.mean((0, 2, 3))
softmax = lambda x, y: torch.softmax(x, -1)
cross_entropy = lambda x, y: F.cross_entropy(x, y)
CASES = {  # name: what, shape of x, memory order, backward too
    "maxpool3x3s2.nchw": (max_pool, PICTURES, "plain", True),
    "maxpool3x3s2.nhwc": (max_pool, PICTURES, "last", True),
    "mean_nhw.nchw": (mean, PICTURES, "plain", False),
    "mean_nhw.nhwc": (mean, PICTURES, "last", False),
    "sum_rows1000": (lambda x, y: x.sum(-1), (131072, 1000), "plain", False),
    "sum_rows50257": (lambda x, y: x.sum(-1), (4096, 50257), "plain", False),
    "sum_columns": (lambda x, y: x.sum(0), (131072, 1000), "plain", False),
    "sum_middle": (lambda x, y: x.sum(1), (256, 1000, 512), "plain", False),
    "sum_outside": (lambda x, y: x.sum((0, 2)), (256, 1000, 512), "plain", False),
    "argmax1000": (lambda x, y: x.argmax(-1), (131072, 1000), "plain", False),
    "argmax50257": (lambda x, y: x.argmax(-1), (4096, 50257), "plain", False),
    "softmax64": (softmax, (2097152, 64), "plain", True),
    "softmax256": (softmax, (524288, 256), "plain", True),
    "softmax1000": (softmax, (131072, 1000), "plain", True),
    "softmax1001": (softmax, (131072, 1001), "plain", True),
    "log_softmax50257": (lambda x, y: torch.log_softmax(x, -1), (4096, 50257), "plain", True),
    "log_softmax.dim1": (lambda x, y: torch.log_softmax(x, 1), (64, 256, 56, 56), "plain", True),
    "cross_entropy1000": (cross_entropy, (131072, 1000), "labels", True),
    "cross_entropy50257": (cross_entropy, (4096, 50257), "labels", True),
    "add_turned": (lambda x, y: y + x.t(), (8192, 16384), "other", False),
    "copy_turned": (lambda x, y: x.contiguous(), (8192, 16384), "turned", False),
    "copy_nhwc_to_nchw": (lambda x, y: x.contiguous(), PICTURES, "last", False),
}


def by_events(body):
    times = []
    for i in range(-2, ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(AT_ONCE):
            body()
        end.record()
        end.synchronize()
        if i >= 0:
            times.append(start.elapsed_time(end) * 1e-3 / AT_ONCE)
    return statistics.median(times)


def by_clock(body):
    times = []
    for i in range(-1, ROUNDS):
        start = time.perf_counter()
        body()
        if i >= 0:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def seconds(body):
    """Plainly, or as one recording, whichever is quicker."""
    if device.type != "cuda":
        return by_clock(body)
    plain = by_events(body)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            body()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            body()
    except RuntimeError as error:
        print(f"not recorded: {str(error).splitlines()[0]}", file=sys.stderr)
        return plain
    return min(plain, by_events(graph.replay))


def measure(name, dtype):
    """{way: seconds}"""
    what, shape, order, backward = CASES[name]
    shape = (max(1, shape[0] // SCALE), *shape[1:])
    x, y = torch.randn(shape, device=device).to(dtype), None
    if order == "last":
        x = x.contiguous(memory_format=torch.channels_last)
    elif order == "turned":
        x = x.t()
    elif order == "labels":
        y = torch.zeros(shape[0], dtype=torch.int64, device=device)
    elif order == "other":
        y = torch.randn(shape[1], shape[0], device=device).to(dtype)
    with torch.no_grad():
        out = {"forward": seconds(lambda: what(x, y))}
    if backward:
        x.requires_grad_()
        given = torch.randn_like(what(x, y))

        def both():
            torch.autograd.grad(what(x, y), x, given)

        out["both"] = seconds(both)
    return out


def copy_rate():
    a = torch.randn((1 << 28) // SCALE, device=device)
    b = torch.empty_like(a)
    return a.numel() * 8 / seconds(lambda: b.copy_(a))


ours, theirs, moved, copies = {}, {}, {}, []
for _ in range(rounds):
    copies.append(copy_rate())
    for name in CASES:
        if wanted not in name:
            continue
        command = [program, str(device)] + (["small"] if SCALE > 1 else []) + [name]
        for line in map(json.loads, subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()):
            row = line["bench"].removeprefix("bandwidth.")
            ours.setdefault(row, []).append(line["value"] * 1e-6)
            moved[row] = line["bytes"]
        for code, dtype in DTYPES.items():
            for way, taken in measure(name, dtype).items():
                theirs.setdefault(f"{name}.{way}.{code}", []).append(taken)
            if device.type == "cuda":
                torch.cuda.empty_cache()

copy = max(copies)
print(f"copy: {copy * 1e-12:.2f} TB/s")
print(f"{'piece':40} {'ours, us':>10} {'PyTorch':>10} {'ratio':>6} {'TB/s':>6} {'share':>6} {'theirs':>6}")
table = []
for row, values in ours.items():
    mine, other = statistics.median(values), statistics.median(theirs[row])
    print(f"{row:40} {mine * 1e6:10.1f} {other * 1e6:10.1f} {other / mine:6.2f} {moved[row] / mine * 1e-12:6.2f} "
          f"{moved[row] / mine / copy:6.2f} {moved[row] / other / copy:6.2f}")
    table.append(dict(piece=row, ours=mine * 1e6, peer=other * 1e6, ratio=other / mine, bytes=moved[row], unit="us"))
slower = [row["piece"] for row in table if row["ratio"] < 0.98]
print(f"slower than PyTorch by more than 2%: {', '.join(slower) or 'none'}")
if len(sys.argv) > 3 and sys.argv[3]:
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        json.dump(dict(pytorch=torch.__version__, device=str(device), copy=copy, results=table), file, indent=1)
