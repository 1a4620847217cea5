"""bench/general.c in turns with PyTorch: ratios (above 1: ours is faster) of ops over several shapes, worst first.
A time is the least of several goes, a ratio the median of the rounds'. Where
other work wants the cores, one thread says more than two.

Usage: general.py PROGRAM [regular expression of "op dtype shape numbers"] [rounds] [threads]
"""
import math
import re
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

program, pattern, rounds, threads = (sys.argv[1:] + [".", "3", "2"][len(sys.argv) - 2:])[:4]
rounds = int(rounds)
torch.set_num_threads(int(threads))
GOES, FLOATS = 15, ["float32", "bfloat16", "float16"]
WIDE = ["1024x1024", "64x37", "3x100003"]
PICTURES = ["32x64x32x32", "8x3x224x224", "4x100x17x19"]
CASES = [(op, dtype, shape, "") for op in "exp log tanh sigmoid erf gelu gelu_tanh silu relu add mul_scalar".split()
         for dtype in ["float32", "bfloat16"] for shape in WIDE]
CASES += [(op, dtype, shape, at) for op in ["softmax", "log_softmax", "softmax_grad"] for dtype in FLOATS
          for shape, at in [("1024x1024", "1"), ("4096x10", "1"), ("64x32000", "1"), ("512x77", "1"), ("1024x1024", "0"),
                            ("16x64x32x32", "1"), ("12x64x64x8", "2")]]
CASES += [("add_row", "float32", s, "") for s in WIDE] + [("add_column", "float32", s, "") for s in WIDE]
CASES += [("add_permuted", dtype, shape, dims) for dtype in ["float32", "bfloat16"]
          for shape, dims in [("1024x1024", "0,1"), ("64x48x80", "0,2"), ("8x64x56x56", "1,3"), ("333x777", "0,1")]]
CASES += [("exp_permuted", "float32", "1024x1024", "1,0"), ("exp_permuted", "float32", "8x64x56x56", "0,2,3,1")]
CASES += [("contiguous", dtype, shape, dims) for dtype in ["float32", "bfloat16", "uint8", "float64"]
          for shape, dims in [("1024x1024", "1,0"), ("32x64x32x32", "0,2,3,1"), ("32x32x32x64", "0,3,1,2"), ("8x224x224x3", "0,3,1,2"),
                              ("8x3x224x224", "0,2,3,1"), ("333x777", "1,0"), ("8x128x12x64", "0,2,1,3"), ("40x50x60x7", "3,2,1,0")]]
CASES += [(op, dtype, shape, dims) for op in ["sum", "mean"] for dtype in ["float32", "bfloat16", "float64"]
          for shape, dims in [("1024x1024", ""), ("1024x1024", "0"), ("1024x1024", "1"), ("64x100x64", "1"), ("100000x10", "0"),
                              ("100000x10", "1"), ("32x64x32x32", "0,2,3"), ("32x64x32x32", "2,3"), ("32x64x32x32", "1"), ("1000003", ""), ("2x500000", "1")]]
CASES += [("sum", dtype, "1024x1024", dims) for dtype in ["int32", "int64", "uint8"] for dims in ["", "0", "1"]]
CASES += [("sum_permuted", "float32", shape, dims) for shape, dims in [("1024x1024", "0"), ("1024x1024", "1"), ("32x64x32x32", "0"), ("32x64x32x32", "1,2")]]
CASES += [("max", dtype, shape, dims) for dtype in ["float32", "bfloat16", "int64"]
          for shape, dims in [("1024x1024", ""), ("1024x1024", "0"), ("1024x1024", "1"), ("64x100x64", "1"), ("100000x10", "1")]]
CASES += [("argmax", dtype, shape, dims) for dtype in ["float32", "bfloat16"] for shape, dims in [("1024x1024", "0"), ("1024x1024", "1"), ("4096x10", "1")]]
CASES += [("matmul", dtype, shape, n) for dtype in ["float32"]
          for shape, n in [("12x256x64", "256"), ("12x256x256", "64"), ("96x128x64", "128"), ("1000x8x8", "8"), ("4x512x512", "512"), ("64x1x256", "256"), ("3000x3x3", "3"),
                           ("512x512", "512"), ("1024x64", "10"), ("2x4x100x40", "70")]]
CASES += [(op + grad, dtype, shape, "") for op in ["cross_entropy", "bce", "mse"] for grad in ["", "_grad"] for dtype in ["float32", "bfloat16"]
          for shape in ["32x10", "4096x10", "256x1000", "64x32000", "8192x1"] if not (op == "cross_entropy" and shape == "8192x1")]
CASES += [(op + grad, "float32", shape, window) for op in ["max_pool", "avg_pool"] for grad in ["", "_grad"] for shape in PICTURES for window in ["2,2,0", "3,2,1", "3,1,1"]]
CASES += [(op, "bfloat16", "32x64x32x32", "2,2,0") for op in ["max_pool", "avg_pool", "max_pool_grad"]]


def with_grad(leaf, function):
    def call():
        result = function()
        (result.sum() if result.dim() else result).backward()
        leaf.grad = None
    return call


def peer(op, dtype, shape, numbers):
    """The same in PyTorch: a call."""
    kind, shape = getattr(torch, dtype), [int(d) for d in shape.split("x")]
    at = [int(d) for d in numbers.split(",")] if numbers else []
    x, second = torch.randn(shape), list(shape)
    if not kind.is_floating_point:
        x = x.abs() * 3
    x = x.to(kind)
    if op == "matmul":
        second[-2:] = [shape[-1], at[0]]
    if op == "add_permuted":
        second[at[0]], second[at[1]] = shape[at[1]], shape[at[0]]
    y = torch.rand(second).to(kind)
    if op.endswith("_grad"):
        leaf = x.clone().requires_grad_()
        return with_grad(leaf, functional(op[:-5], leaf, y, at))
    return functional(op, x, y, at)


def functional(op, x, y, at):
    if op in ("exp", "tanh", "sigmoid", "erf", "relu"):
        return getattr(x, op)
    if op in ("max_pool", "avg_pool"):
        pool = getattr(F, op + "2d")
        return lambda: pool(x, *at)
    if op in ("sum", "mean"):
        return lambda: getattr(x, op)(tuple(at)) if at else getattr(x, op)()
    if op == "max":
        return (lambda: x.max(at[0])) if at else x.max
    if op == "cross_entropy":
        labels = torch.randint(x.shape[1], (x.shape[0],))
        return lambda: F.cross_entropy(x, labels)
    return {
        "log": lambda: y.log(), "gelu": lambda: F.gelu(x), "gelu_tanh": lambda: F.gelu(x, approximate="tanh"),
        "silu": lambda: F.silu(x), "softmax": lambda: x.softmax(at[0]), "log_softmax": lambda: x.log_softmax(at[0]),
        "add": lambda: x + y, "mul_scalar": lambda: x * 2, "add_row": lambda: x + y[:1], "add_column": lambda: x + y[..., :1],
        "add_permuted": lambda: y + x.transpose(*at), "exp_permuted": lambda: x.permute(at).exp(),
        "contiguous": lambda: x.permute(at).contiguous(), "sum_permuted": lambda: x.transpose(0, -1).sum(tuple(at)),
        "argmax": lambda: x.argmax(at[0]), "matmul": lambda: x @ y, "bce": lambda: F.binary_cross_entropy_with_logits(x, y),
        "mse": lambda: F.mse_loss(x, y),
    }[op]


def calls(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def microseconds(call):
    calls(call, 1)
    count = math.floor(2e-3 / calls(call, 1)) + 1
    return 1e6 * min(calls(call, count) for _ in range(GOES))


ours = subprocess.Popen([program, threads], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
table = []
for case in CASES:
    if not re.search(pattern, " ".join(case)):
        continue
    call, pairs = peer(*case), []
    for _ in range(rounds):
        ours.stdin.write(" ".join(case) + "\n")
        ours.stdin.flush()
        line = ours.stdout.readline()
        if not line:
            sys.exit(f"{program} ended at {' '.join(case)}")
        time.sleep(0.01)  # its helpers fall asleep
        pairs.append((float(line), microseconds(call)))
        time.sleep(0.01)
    a, b = (statistics.median(side) for side in zip(*pairs))
    table.append((statistics.median(q / p for p, q in pairs), a, b, " ".join(case)))
for ratio, a, b, name in sorted(table):
    print(f"{ratio:6.2f}  {a:10.1f} us, PyTorch {b:10.1f} us  {name}")
if table:
    print(f"{sum(row[0] < 1 for row in table)} of {len(table)} below 1; geometric mean "
          f"{math.exp(statistics.fmean(math.log(row[0]) for row in table)):.2f}")
