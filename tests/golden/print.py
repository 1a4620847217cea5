#!/usr/bin/env python3
"""Makes print.txt: tensors as PyTorch prints them. Paracord writes dtype=int32 for dtype=torch.int32 and the op's name
for grad_fn.

    python3 print.py > print.txt

    case NAME LINES            LINES of text follow at the end
    in DTYPE SHAPE VIEWS values...           (as in ops.py)
    range DTYPE SHAPE START STEP             (start + i step, for large ones)
    then OP                                  (requires_grad, or exp: of a tensor that requires a gradient)
"""
import random
import re
import torch
from ops import CODES, In, shape_text

rng = random.Random(3)
nan, inf = float("nan"), float("inf")


def finish(name, line, t, then):
    if then == "requires_grad":
        t = t.requires_grad_(True)
    elif then:
        t = getattr(torch, then)(t.requires_grad_(True))
    text = repr(t).replace("dtype=torch.", "dtype=")
    text = re.sub(r"grad_fn=<(\w+)Backward\d>", lambda m: f"grad_fn=<{m[1].lower()}>", text)
    lines = text.split("\n")
    print("case", name.replace(" ", "_"), len(lines))
    print(line)
    if then:
        print("then", then)
    print(text)


def case(name, i, then=""):
    t = i.viewed(i.base(False).detach())
    values = [repr(float(v)) if i.is_float() else str(int(v)) for v in i.values]
    finish(name, " ".join(["in", i.dtype, shape_text(i.shape), i.views, *values]), t, then)


def large(name, dtype, shape, start, step, then=""):
    n = 1
    for d in shape:
        n *= d
    t = (start + torch.arange(n, dtype=torch.float64) * step).to(CODES[dtype]).reshape(shape)
    finish(name, f"range {dtype} {shape_text(shape)} {start} {step}", t, then)


def f(values, dtype="f32", shape=None, **k):
    return In(shape or [len(values)], dtype, values=values, **k)


case("integers", f([1, 2, 3], "i64"))
case("integers 32", f([8, 10, 12, 14, 16, 18], "i32"))
case("negative integers", f([1, -200, 30], "i32"))
case("bytes", f([1, 20, 255], "u8"))
case("bool", f([True, False], "b"))
case("bool matrix", f([True, False, False, True], "b", [2, 2]))
case("big integers", f([2**40, -7], "i64"))
for dtype in CODES:
    case(f"zero-dim {dtype}", f([1], dtype, []))
    case(f"empty {dtype}", f([], dtype))
    case(f"empty matrix {dtype}", f([], dtype, [0, 3]))
case("empty cube", f([], "f32", [2, 0, 1]))
case("zero-dim fraction", f([0.1], shape=[]))
case("zero-dim long", f([123456.789], shape=[]))
case("zero-dim small", f([1.25e-7], shape=[]))
case("zero-dim nan", f([nan], shape=[]))
case("zero-dim negative zero", f([-0.0], shape=[]))
case("whole", f([1, 2, 3]))
case("whole negative", f([1, -20, 300]))
case("fractions", f([0.5, 1.25, -3.0625]))
case("rounding", f([0.00005, 1.99995, 2.00005, 0.12345]))
case("doubles", f([0.1, 1 / 3], "f64"))
case("nan and whole", f([1, nan, 3]))
case("nan and fractions", f([1.5, nan, -3]))
case("infinities", f([inf, -inf, 1]))
case("infinities and fractions", f([inf, -inf, 1.5]))
case("only nan", f([nan, nan]))
case("only infinities", f([inf, -inf]))
case("zeros", f([0, 0, 0]))
case("negative zeros", f([-0.0, 0.0, 1.0]))
case("zero and fraction", f([0, 0.25]))
case("small", f([1e-5, 1]))
case("small alone", f([1e-5, 2e-5]))
case("just not small", f([1e-4, 1.5e-4]))
case("ratio 1000", f([1.5, 1500]))
case("ratio over 1000", f([1.5, 1501]))
case("whole ratio 1000", f([1, 1000]))
case("whole ratio over 1000", f([1, 1001]))
case("large whole", f([1e8, 2e8]))
case("over 1e8", f([1.01e8, 2e8]))
case("large", f([1e10, 1e20]))
case("largest", f([3.4e38, -3.4e38]))
case("denormal", f([1e-45, 1e-40]))
case("tiny double", f([1e-300, 1], "f64"))
case("huge double", f([1e300, -1e300], "f64"))
case("scientific with nan", f([1e-6, nan, inf, 3]))
case("matrix", f([rng.uniform(-2, 2) for _ in range(6)], shape=[2, 3]))
case("cube", f(list(range(12)), "i64", [2, 3, 2]))
case("five dims", f(list(range(16)), "i32", [2, 2, 1, 2, 2]))
case("transposed", f(list(range(6)), "i64", [2, 3], views="t:0,1"))
case("sliced", f(list(range(10)), "f32", [10], views="s:0,1,9,3"))
case("expanded", f([1.5, 2], shape=[2, 1], views="e:2,3"))
case("a wrapped line", f([v / 7 for v in range(30)]))
case("wrapped integers", f(list(range(100, 160)), "i64"))
case("wrapped in a matrix", f([v / 3 for v in range(48)], shape=[2, 24]))
case("wrapped bool", f([v % 3 == 0 for v in range(26)], "b"))
case("requires grad", f([1.5, 2]), "requires_grad")
case("result", f([1.5, 2]), "exp")
case("result double", f([1.5, 2], "f64"), "exp")
case("empty requires grad", f([]), "requires_grad")
case("suffix on a new line", f([v / 7 for v in range(9)], "f64"))
case("suffix fits", f([1.5] * 6, "f64"))
for n in range(6, 10):
    case(f"suffix at the edge {n}", f([1.25] * n), "requires_grad")
    if n != 7:  # there PyTorch's longer suffix breaks the line and ours does not
        case(f"suffixes at the edge {n}", f([1.25] * n, "f64"), "exp")
case("suffix after rows", f([1.25] * 18, shape=[2, 9]), "exp")
large("summary", "f32", [1001], 0, 1)
large("no summary yet", "i64", [20, 5], 0, 1)
large("summary fractions", "f32", [2000], -1, 0.001)
large("summary matrix", "f32", [40, 40], 0, 0.25)
large("summary narrow", "i64", [600, 2], 0, 1)
large("summary short", "i64", [2, 600], 0, 1)
large("summary cube", "i32", [9, 12, 13], 0, 1)
large("summary six", "f64", [6, 6, 40], 0, 0.5)
large("summary seven", "f32", [7, 200], 0, 1, "requires_grad")
large("summary hides the large", "f32", [1, 3000], 0, 0.5)
