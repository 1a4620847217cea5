#!/usr/bin/env python3
"""Makes ops.txt: inputs, results and gradients of every op, as PyTorch computes them.

    python3 ops.py > ops.txt

Values are computed in float64 and hold for float32 too (a check here); dtypes are those of a float32 run. A case:

    case OP NAME [flags]       flags: f32 (only in float32)
    in DTYPE SHAPE VIEWS values...
    args numbers...
    out DTYPE SHAPE values...
    grad INPUT values...       for the gradient ((7 i + 3) mod 11 - 5) / 4 of element i of the first output

SHAPE is () or 2,3. VIEWS are applied to the input before use: t:0,1 (transpose), p:... (permute), s:dim,start,stop,step
(slice), e:... (expand), r:... (reshape), cl (channels last), joined by ';', or '-'. Gradients are those of the input
before its views. Inputs are multiples of 1/16: the same in float32 and float64.
"""
import random
import torch
import torch.nn.functional as F

CODES = {"b": torch.bool, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "f32": torch.float32,
         "f64": torch.float64}
NAMES = {dtype: code for code, dtype in CODES.items()}
rng = random.Random(20)


def shape_text(shape):
    return ",".join(str(n) for n in shape) if len(shape) else "()"


def number(v):
    if isinstance(v, bool):
        return str(int(v))
    if isinstance(v, int):
        return str(v)
    return "%.7g" % v


def flat(t):
    return t.detach().contiguous().reshape(-1).tolist()


class In:
    """One input: values given, or drawn from low..high: multiples of 1/4, or of 1/16 and all different where `distinct`."""

    def __init__(self, shape, dtype="f32", views="-", values=None, low=-2, high=2, distinct=False):
        self.shape, self.dtype, self.views = list(shape), dtype, views
        n = 1
        for d in self.shape:
            n *= d
        if values is None and distinct:
            values = rng.sample(range(int(low * 16), int(high * 16) + 1), n)
            values = [v / 16 for v in values]
        elif values is None and dtype == "b":
            values = [rng.random() < 0.5 for _ in range(n)]
        elif values is None and dtype == "u8":
            values = [rng.randint(0, 9) for _ in range(n)]
        elif values is None and dtype[0] == "i":
            values = [rng.randint(-9, 9) for _ in range(n)]
        elif values is None:
            values = [rng.randint(int(low * 4), int(high * 4)) / 4 for _ in range(n)]
        assert len(values) == n, (shape, values)
        self.values = values

    def is_float(self):
        return self.dtype[0] == "f"

    def base(self, wide):
        dtype = torch.float64 if wide and self.is_float() else CODES[self.dtype]
        t = torch.tensor(self.values, dtype=torch.float64 if self.is_float() else None)
        t = t.to(dtype).reshape(self.shape)
        return t.requires_grad_(self.is_float())

    def viewed(self, t):
        for step in self.views.split(";"):
            if step == "-":
                continue
            name, _, numbers = step.partition(":")
            n = [int(x) for x in numbers.split(",")] if numbers else []
            if name == "t":
                t = t.transpose(n[0], n[1])
            elif name == "p":
                t = t.permute(n)
            elif name == "s":
                t = t.narrow(n[0], 0, t.shape[n[0]])
                index = [slice(None)] * t.dim()
                index[n[0]] = slice(n[1], n[2], n[3])
                t = t[tuple(index)]
            elif name == "e":
                t = t.expand(n)
            elif name == "r":
                t = t.reshape(n)
            elif name == "cl":
                t = t.contiguous(memory_format=torch.channels_last)
            else:
                raise ValueError(step)
        return t


def run(inputs, fn, wide):
    bases = [i.base(wide) for i in inputs]
    outs = fn(*[i.viewed(b) for i, b in zip(inputs, bases)])
    outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    if outs[0].requires_grad:
        n = outs[0].numel()
        g = torch.tensor([((7 * i + 3) % 11 - 5) / 4 for i in range(n)], dtype=outs[0].dtype).reshape(outs[0].shape)
        outs[0].backward(g)
    return bases, outs


counts = {}


def case(op, name, inputs, fn, args=(), flags="", gradients=True):
    counts[op] = counts.get(op, 0) + 1
    single = "f32" in flags.split()
    floats = [i.dtype for i in inputs if i.is_float()]
    if "f64" in floats:
        single = True
    bases, outs = run(inputs, fn, False)
    if not single:
        wide_bases, wide_outs = run(inputs, fn, True)
        for a, b in zip(outs, wide_outs):
            torch.testing.assert_close(a.double(), b.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
    else:
        wide_bases, wide_outs = bases, outs
    print("case", op, name.replace(" ", "_"), flags + ("" if not single or "f32" in flags else " f32"))
    for i in inputs:
        print("in", i.dtype, shape_text(i.shape), i.views, *[number(v) for v in i.values])
    if args:
        print("args", *[number(a) for a in args])
    for narrow, wide in zip(outs, wide_outs):
        print("out", NAMES[narrow.dtype], shape_text(narrow.shape), *[number(v) for v in flat(wide)])
    if gradients and wide_outs[0].requires_grad:
        for k, b in enumerate(wide_bases):
            if b.requires_grad and b.grad is not None:
                print("grad", k, *[number(v) for v in flat(b.grad)])


nan, inf = float("nan"), float("inf")


# --- element by element ---

def arith():
    ops = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
    for name, fn in ops.items():
        low = 0.25 if name == "div" else -2  # no division by 0
        right = lambda *a, **k: In(*a, low=low, **k)
        case(name, "same shape", [In([2, 3]), right([2, 3])], fn)
        case(name, "row", [In([2, 3]), right([3])], fn)
        case(name, "both broadcast", [In([2, 1, 3]), right([4, 1])], fn)
        case(name, "zero-dim", [In([]), right([3])], fn)
        case(name, "zero-dims", [In([]), right([])], fn)
        case(name, "empty", [In([0, 3]), right([3])], fn)
        case(name, "empty broadcast", [In([2, 0]), right([1])], fn)
        case(name, "transposed", [In([3, 2], views="t:0,1"), right([2, 3])], fn)
        case(name, "both transposed", [In([3, 2], views="t:0,1"), right([3, 2], views="t:0,1")], fn)
        case(name, "sliced", [In([3, 7], views="s:1,1,7,2"), right([5, 3], views="s:0,1,4,1")], fn)
        case(name, "expanded", [In([1, 3], views="e:4,-1"), right([4, 1], views="e:4,3")], fn)
        case(name, "permuted", [In([2, 3, 2], views="p:2,0,1"), right([2, 2, 3])], fn)
        case(name, "channels last", [In([2, 3, 2, 2], views="cl"), right([2, 3, 2, 2])], fn)
        case(name, "channels last bias", [In([1, 3, 2, 2], views="cl"), right([1, 3, 1, 1])], fn)
        case(name, "eight dims", [In([1, 2, 1, 1, 2, 1, 1, 2]), right([2, 1, 1, 1, 2, 1, 1, 1])], fn)
    for a in CODES:
        for b in CODES:
            for sa, sb in (([1], [1]), ([1], []), ([], [1])):
                case("add", f"promote {a}{sa} {b}{sb}", [In(sa, a, values=[1]), In(sb, b, values=[1])], torch.add,
                     gradients=False)
            case("div", f"promote {a} {b}", [In([1], a, values=[1]), In([1], b, values=[1])], torch.div, gradients=False)
            case("mul", f"promote {a} {b}", [In([2], a, values=[1, 0]), In([2], b, values=[1, 1])], torch.mul,
                 gradients=False)
            if a != "b" and b != "b":
                case("sub", f"promote {a} {b}", [In([2], a, values=[1, 0]), In([2], b, values=[1, 1])], torch.sub,
                     gradients=False)
    case("add", "integers wrap", [In([2], "i32", values=[2**31 - 1, -2**31]), In([2], "i32", values=[1, -1])], torch.add)
    case("mul", "bytes wrap", [In([2], "u8", values=[200, 16]), In([2], "u8", values=[2, 16])], torch.mul)
    case("sub", "bytes wrap", [In([2], "u8", values=[1, 0]), In([2], "u8", values=[2, 255])], torch.sub)
    case("div", "by zero", [In([3], values=[1, 0, -1]), In([1], values=[0])], torch.div, gradients=False)
    case("div", "integers", [In([4], "i64", values=[7, -7, 1, 0]), In([4], "i64", values=[2, 2, 3, 0])], torch.div)

    def scalar(op, b):
        whole = int(b) if b == int(b) else b
        ops = {"add_scalar": torch.add, "sub_scalar": torch.sub, "mul_scalar": torch.mul, "div_scalar": torch.div}
        return lambda a: ops[op](a, b if a.is_floating_point() else whole)
    for op in ("add_scalar", "sub_scalar", "mul_scalar", "div_scalar"):
        for b in (3, 0.5, -2):
            for dtype in CODES:
                if dtype == "b" and op == "sub_scalar":
                    continue  # PyTorch refuses; Paracord subtracts integers
                case(op, f"{dtype} {b}", [In([3], dtype, low=-1)], scalar(op, b), [float(b)])
        case(op, "zero-dim", [In([])], scalar(op, 2), [2.0])
        case(op, "transposed", [In([3, 2], views="t:0,1")], scalar(op, 0.25), [0.25])
        case(op, "empty", [In([0])], scalar(op, 0.25), [0.25])


def unary():
    functions({"neg": torch.neg, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "relu": torch.relu,
               "sigmoid": torch.sigmoid, "tanh": torch.tanh})
    case("neg", "bytes wrap", [In([3], "u8", values=[0, 1, 255])], torch.neg)
    case("relu", "negative integers", [In([3], "i32", values=[-5, 0, 5])], torch.relu)
    case("relu", "gradient at zero", [In([4], values=[0, -0.0, 1, -1])], torch.relu)


def more_unary():
    floating = lambda a: a if a.is_floating_point() else a.float()
    functions({"erf": torch.erf, "silu": lambda a: F.silu(floating(a)), "gelu": lambda a: F.gelu(floating(a)),
               "gelu_tanh": lambda a: F.gelu(floating(a), approximate="tanh")})


def functions(ops):
    for name, fn in ops.items():
        low = 0.25 if name in ("log", "sqrt", "rsqrt") else -2
        case(name, "plain", [In([3, 5], low=low)], fn)
        case(name, "zero-dim", [In([], low=low)], fn)
        case(name, "empty", [In([2, 0], low=low)], fn)
        case(name, "transposed", [In([3, 2], low=low, views="t:0,1")], fn)
        case(name, "every other", [In([11], low=low, views="s:0,1,11,2")], fn)
        case(name, "expanded", [In([2, 1], low=low, views="e:2,3")], fn)
        case(name, "channels last", [In([1, 3, 2, 2], low=low, views="cl")], fn)
        case(name, "not finite", [In([5], values=[nan, inf, -inf, 0.0, -0.0])], fn, gradients=False)
        case(name, "large", [In([8], values=[100, -100, 20, -20, 88.5, -87.25, 5000, -5000])], fn, flags="f32",
             gradients=False)
        for dtype in ("i32", "i64", "u8"):
            case(name, dtype, [In([4], dtype, values=[0, 1, 2, 5])], fn)
        if name not in ("neg", "relu", "relu6", "abs", "square", "floor", "round", "sign"):
            case(name, "bool", [In([2], "b", values=[True, False])], fn)


def compare():
    ops = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
    for name, fn in ops.items():
        case(name, "plain", [In([5], values=[1, 2, 3, nan, inf]), In([5], values=[2, 2, 2, nan, inf])], fn)
        case(name, "row", [In([2, 3], "i64"), In([3], "i64")], fn)
        case(name, "zero-dim", [In([2, 3], "i32", low=-1, high=1), In([], "i32")], fn)
        case(name, "mixed", [In([3], "i32", values=[1, 2, 3]), In([3], values=[0.5, 2, 3.5])], fn)
        case(name, "bytes", [In([3], "u8", values=[1, 200, 255]), In([3], "u8", values=[255, 200, 1])], fn)
        case(name, "bool", [In([4], "b", values=[True, False, True, False]),
                            In([4], "b", values=[True, True, False, False])], fn)
        case(name, "transposed", [In([3, 2], views="t:0,1"), In([2, 3])], fn)
        case(name, "empty", [In([0, 2]), In([2])], fn)
    condition = lambda shape, **k: In(shape, "b", **k)
    case("where", "plain", [condition([2, 3]), In([2, 3]), In([2, 3])], torch.where)
    case("where", "condition broadcasts", [condition([2, 1]), In([2, 3]), In([2, 3])], torch.where)
    case("where", "values broadcast", [condition([2, 3]), In([3]), In([2, 1])], torch.where)
    case("where", "zero-dim values", [condition([2, 3]), In([]), In([])], torch.where)
    case("where", "zero-dim condition", [condition([]), In([2, 2]), In([2])], torch.where)
    case("where", "transposed", [condition([3, 2], views="t:0,1"), In([3, 2], views="t:0,1"), In([2, 3])], torch.where)
    case("where", "integers", [condition([3]), In([3], "i32"), In([3], "i64")], torch.where)
    case("where", "mixed", [condition([3]), In([3], "i64"), In([3])], torch.where)
    case("where", "bool", [condition([3]), In([3], "b"), In([3], "b")], torch.where)
    case("where", "zero-dim double", [condition([3]), In([3], "i32"), In([], "f64")], torch.where)
    case("where", "bytes", [condition([3]), In([3], "u8"), In([3], "u8")], torch.where)
    case("where", "empty", [condition([0]), In([0]), In([1])], torch.where)
    case("where", "nan stays out", [condition([2], values=[True, False]), In([2], values=[1, nan]),
                                    In([2], values=[nan, 2])], torch.where)


# --- reductions ---

def reduce():
    views = [([2, 3], "-"), ([3, 2], "t:0,1"), ([7], "s:0,1,7,2"), ([2, 1], "e:2,4"), ([2, 3, 2], "p:2,0,1"),
             ([1, 2, 2, 2], "cl"), ([], "-"), ([1], "-")]
    for name, fn in (("sum", torch.sum), ("mean", torch.mean), ("max", torch.max)):
        for shape, view in views:
            case(name, f"{shape} {view}", [In(shape, views=view, distinct=True)], fn)
        case(name, "long", [In([67], distinct=True, low=-9, high=9)], fn)
        case(name, "nan", [In([4], values=[1, nan, 3, 2])], fn)
    case("sum", "empty", [In([0])], torch.sum)
    case("sum", "empty 2", [In([2, 0])], torch.sum)
    case("mean", "empty", [In([0, 3])], torch.mean)
    for dtype in ("b", "u8", "i32", "i64"):
        case("sum", dtype, [In([2, 5], dtype)], torch.sum)
        case("max", dtype, [In([2, 5], dtype)], torch.max)
    case("sum", "bytes do not wrap", [In([3], "u8", values=[255, 255, 255])], torch.sum)
    case("max", "ties", [In([5], values=[1, 3, 3, 0, 3])], torch.max)
    case("max", "all equal", [In([2, 2], values=[1, 1, 1, 1])], torch.max)
    case("max", "infinities", [In([3], values=[-inf, -inf, -inf])], torch.max, gradients=False)

    dims = [([0], False), ([1], False), ([-1], True), ([0, 2], False), ([0, 2], True), ([1, 2], False), ([0, 1], False),
            ([2, 0, 1], False), ([-2], False)]
    for name, fn in (("sum_dims", torch.sum), ("mean_dims", torch.mean)):
        for d, keep in dims if name == "sum_dims" else dims[2:5]:
            case(name, f"{d} {keep}", [In([2, 3, 4])], lambda a: fn(a, d, keep), [int(keep), *d])
        case(name, "0 1 3 of 4", [In([2, 3, 2, 2])], lambda a: fn(a, [0, 1, 3]), [0, 0, 1, 3])
        case(name, "1 3 of 5", [In([2, 3, 1, 2, 2])], lambda a: fn(a, [1, 3], True), [1, 1, 3])
        case(name, "permuted", [In([2, 3, 2], views="p:2,0,1")], lambda a: fn(a, [0, 2]), [0, 0, 2])
        case(name, "channels last", [In([2, 3, 2, 2], views="cl")], lambda a: fn(a, [0, 2, 3]), [0, 0, 2, 3])
        case(name, "expanded", [In([1, 3], views="e:4,3")], lambda a: fn(a, [0]), [0, 0])
        case(name, "empty reduced", [In([0, 3])], lambda a: fn(a, [0]), [0, 0])
        case(name, "empty kept", [In([0, 3])], lambda a: fn(a, [1]), [0, 1])
        case(name, "zero-dim", [In([])], lambda a: fn(a, [0]), [0, 0])
        case(name, "long rows", [In([2, 35])], lambda a: fn(a, [1]), [0, 1])
        case(name, "long columns", [In([35, 2])], lambda a: fn(a, [0]), [0, 0])
    for dtype in ("b", "u8", "i32"):
        case("sum_dims", dtype, [In([3, 3], dtype)], lambda a: torch.sum(a, [1]), [0, 1])

    def max_dim(dim, keep):
        return lambda a: tuple(torch.max(a, dim, keep))
    for d, keep in ((0, False), (1, False), (2, True), (-1, False), (-3, True)):
        case("max_dim", f"{d} {keep}", [In([2, 3, 4], distinct=True)], max_dim(d, keep), [int(keep), d])
        case("argmax", f"{d} {keep}", [In([2, 3, 4], distinct=True)], lambda a: torch.argmax(a, d, keep), [int(keep), d])
    for op, fn in (("max_dim", max_dim(1, False)), ("argmax", lambda a: torch.argmax(a, 1))):
        case(op, "first of ties", [In([3, 4], values=[1, 3, 3, 0, 2, 2, 2, 2, 0, 0, 0, 1])], fn, [0, 1])
        case(op, "nan", [In([2, 4], values=[1, nan, 9, nan, -inf, -inf, inf, 0])], fn, [0, 1])
        case(op, "transposed", [In([3, 4], views="t:0,1", distinct=True)], fn, [0, 1])
        case(op, "expanded", [In([3, 1], views="e:3,4")], fn, [0, 1])
        case(op, "empty kept", [In([0, 3])], fn, [0, 1])
        if op == "max_dim":  # PyTorch has no argmax of bool
            case(op, "bool", [In([2, 2], "b", values=[False, True, False, False])], fn, [0, 1])
        case(op, "bytes", [In([2, 2], "u8", values=[200, 100, 3, 3])], fn, [0, 1])
        case(op, "integers", [In([2, 2], "i64", values=[-2, -1, -3, -3])], fn, [0, 1])
    case("max_dim", "zero-dim", [In([])], max_dim(0, False), [0, 0])
    case("argmax", "zero-dim", [In([])], lambda a: torch.argmax(a, 0), [0, 0])


# --- views and copies ---

def views():
    r = lambda *s: (lambda a: a.reshape(s))
    case("reshape", "plain", [In([2, 6])], r(3, 4), [3, 4])
    case("reshape", "minus one", [In([2, 6])], r(4, -1), [4, -1])
    case("reshape", "minus one empty", [In([0, 6])], r(-1, 3), [-1, 3])
    case("reshape", "to zero-dim", [In([1, 1])], r(), [])
    case("reshape", "from zero-dim", [In([])], r(1, 1), [1, 1])
    case("reshape", "transposed copies", [In([2, 3], views="t:0,1")], r(6), [6])
    case("reshape", "transposed splits", [In([4, 3], views="t:0,1")], r(3, 2, 2), [3, 2, 2])
    case("reshape", "permuted part merges", [In([2, 3, 4], views="p:1,2,0")], r(12, 2), [12, 2])
    case("reshape", "sliced rows", [In([5, 4], views="s:0,1,4,2")], r(2, 2, 2), [2, 2, 2])
    case("reshape", "sliced columns", [In([2, 8], views="s:1,0,8,2")], r(8), [8])
    case("reshape", "expanded", [In([3, 1], views="e:3,2")], r(6), [6])
    case("reshape", "ones", [In([2, 3])], r(1, 2, 1, 3, 1), [1, 2, 1, 3, 1])
    case("reshape", "ones of a slice", [In([4, 3], views="s:1,0,3,2")], r(1, 4, 1, 2), [1, 4, 1, 2])
    case("reshape", "channels last", [In([1, 2, 2, 2], views="cl")], r(2, 4), [2, 4])
    case("reshape", "bool", [In([4], "b")], r(2, 2), [2, 2])
    p = lambda *s: (lambda a: a.permute(s))
    case("permute", "three", [In([2, 3, 4])], p(2, 0, 1), [2, 0, 1])
    case("permute", "negative", [In([2, 3, 4])], p(-1, -3, -2), [-1, -3, -2])
    case("permute", "same", [In([2, 3])], p(0, 1), [0, 1])
    case("permute", "zero-dim", [In([])], p(), [])
    case("permute", "empty", [In([2, 0, 3])], p(2, 1, 0), [2, 1, 0])
    case("permute", "of a slice", [In([4, 3], views="s:0,0,4,2")], p(1, 0), [1, 0])
    t = lambda a, b: (lambda x: x.transpose(a, b))
    case("transpose", "plain", [In([2, 3])], t(0, 1), [0, 1])
    case("transpose", "negative", [In([2, 3, 4])], t(-1, 0), [-1, 0])
    case("transpose", "same dim", [In([2, 3])], t(1, 1), [1, 1])
    case("transpose", "zero-dim", [In([])], t(0, -1), [0, -1])
    case("transpose", "integers", [In([2, 3], "i32")], t(0, 1), [0, 1])

    def s(dim, start, stop, step):
        def cut(a):
            index = [slice(None)] * a.dim()
            index[dim] = slice(start, stop, step)
            return a[tuple(index)]
        return cut
    for dim, start, stop, step in ((0, 1, 3, 1), (1, 0, 5, 2), (1, -3, -1, 1), (1, -100, 100, 1), (0, 3, 1, 1),
                                   (-1, 1, 4, 3), (0, 4, 4, 1), (1, 4, 100, 7), (0, -2, 4, 1), (0, 0, 0, 1)):
        case("slice", f"{dim} {start} {stop} {step}", [In([4, 5])], s(dim, start, stop, step), [dim, start, stop, step])
    case("slice", "of a transposed", [In([4, 5], views="t:0,1")], s(0, 1, 5, 2), [0, 1, 5, 2])
    case("slice", "of a slice", [In([9], views="s:0,1,9,2")], s(0, 1, 4, 2), [0, 1, 4, 2])
    case("slice", "of an expanded", [In([1, 2], views="e:4,2")], s(0, 1, 3, 1), [0, 1, 3, 1])
    case("slice", "empty", [In([0, 2])], s(0, 0, 5, 1), [0, 0, 5, 1])
    case("slice", "bytes", [In([5], "u8")], s(0, 1, 5, 2), [0, 1, 5, 2])
    for dim in (0, 1, -1, -2):
        case("squeeze", f"{dim}", [In([1, 3])], lambda a: a.squeeze(dim), [dim])
    case("squeeze", "zero-dim", [In([])], lambda a: a.squeeze(0), [0])
    case("squeeze", "of a slice", [In([3, 4], views="s:1,2,3,1")], lambda a: a.squeeze(1), [1])
    for dim in (0, 1, 2, -1, -3):
        case("unsqueeze", f"{dim}", [In([2, 3])], lambda a: a.unsqueeze(dim), [dim])
    case("unsqueeze", "zero-dim", [In([])], lambda a: a.unsqueeze(-1), [-1])
    case("unsqueeze", "of a transposed", [In([2, 3], views="t:0,1")], lambda a: a.unsqueeze(1), [1])
    e = lambda *s: (lambda a: a.expand(s))
    case("expand", "rows", [In([1, 3])], e(2, 3), [2, 3])
    case("expand", "front", [In([3])], e(2, -1), [2, -1])
    case("expand", "zero-dim", [In([])], e(2, 2), [2, 2])
    case("expand", "several", [In([1, 3, 1])], e(2, 2, -1, 2), [2, 2, -1, 2])
    case("expand", "to nothing", [In([1, 2])], e(0, 2), [0, 2])
    case("expand", "of a transposed", [In([2, 1], views="t:0,1")], e(3, 2), [3, 2])
    case("expand", "nothing new", [In([2, 2])], e(2, 2), [2, 2])
    for d in (0, 1, -1, -3):
        case("flatten_from", f"{d}", [In([2, 3, 2])], lambda a: a.flatten(d), [d])
    case("flatten_from", "zero-dim", [In([])], lambda a: a.flatten(0), [0])
    case("flatten_from", "empty", [In([2, 0, 2])], lambda a: a.flatten(1), [1])
    case("flatten_from", "channels last", [In([1, 2, 2, 3], views="cl")], lambda a: a.flatten(1), [1])


def copies():
    for name, fn in (("contiguous", lambda a: a.contiguous()), ("clone", lambda a: a.clone())):
        for shape, view in (([2, 3], "-"), ([2, 3], "t:0,1"), ([7], "s:0,6,7,2"), ([1, 2], "e:3,2"), ([], "-"),
                            ([0, 2], "-"), ([1, 3, 2, 2], "cl")):
            case(name, f"{shape} {view}", [In(shape, views=view)], fn)
        for dtype in ("b", "u8", "i32", "i64"):
            case(name, dtype, [In([2, 3], dtype, views="t:0,1")], fn)
    values = {"b": [True, False, True, True], "u8": [0, 1, 200, 255], "i32": [0, -1, 300, -129],
              "i64": [0, -1, 70000, 2**40 + 3], "f32": [0, -1.75, 2.5, 300.25], "f64": [0, -1.75, 2.5, 300.25]}
    codes = list(CODES)
    for a in codes:
        for b in codes:
            case("cast", f"{a} {b}", [In([2, 2], a, values=values[a], views="t:0,1")], lambda x: x.to(CODES[b]),
                 [codes.index(b)], flags="f32")
    case("cast", "to bool", [In([5], values=[nan, 0.0625, -0.0, inf, 0])], lambda x: x.bool(), [0], flags="f32")


def join():
    def cat(dim):
        return lambda *a: torch.cat(a, dim)
    case("cat", "rows", [In([1, 3]), In([2, 3])], cat(0), [0])
    case("cat", "columns", [In([2, 1]), In([2, 3]), In([2, 2])], cat(1), [1])
    case("cat", "last", [In([2, 1, 2]), In([2, 1, 3])], cat(-1), [-1])
    case("cat", "one", [In([2, 2])], cat(0), [0])
    case("cat", "ten", [In([1, 2]) for _ in range(10)], cat(0), [0])
    case("cat", "empty part", [In([0, 2]), In([2, 2])], cat(0), [0])
    case("cat", "not contiguous", [In([3, 2], views="t:0,1"), In([2, 6], views="s:1,0,6,3"), In([1, 2], views="e:2,2")],
         cat(1), [1])
    case("cat", "vectors", [In([2]), In([3])], cat(0), [0])
    case("cat", "pictures", [In([1, 2, 2, 2], views="cl"), In([1, 1, 2, 2])], cat(1), [1])
    for a, b in (("b", "u8"), ("u8", "i32"), ("i32", "i64"), ("i64", "f32"), ("b", "b")):
        case("cat", f"{a} {b}", [In([2], a), In([1], b)], cat(0), [0])
    case("cat", "f32 f64", [In([2]), In([1], "f64")], cat(0), [0])

    def select(dim):
        return lambda a, i: torch.index_select(a, dim, i)
    index = lambda values, dtype="i64": In([len(values)], dtype, values=values)
    case("index_select", "rows", [In([4, 3]), index([2, 0])], select(0), [0])
    case("index_select", "repeated", [In([4, 3]), index([1, 1, 3, 1])], select(0), [0])
    case("index_select", "columns", [In([2, 4]), index([3, 3, 0], "i32")], select(1), [1])
    case("index_select", "middle", [In([2, 3, 2]), index([2, 0, 2])], select(-2), [-2])
    case("index_select", "none", [In([2, 3]), index([])], select(0), [0])
    case("index_select", "transposed", [In([3, 2], views="t:0,1"), index([1, 0, 1])], select(0), [0])
    case("index_select", "strided index", [In([4]), In([5], "i64", values=[3, 9, 0, 9, 3], views="s:0,0,5,2")], select(0),
         [0])
    for dtype in ("b", "u8", "i32", "i64"):
        case("index_select", dtype, [In([3], dtype), index([2, 2, 0])], select(0), [0])


# --- products ---

def products():
    shapes = [([3], [3]), ([2, 3], [3]), ([3], [3, 4]), ([2, 3], [3, 4]), ([1, 1], [1, 1]), ([2, 2, 3], [2, 3, 2]),
              ([2, 2, 3], [3, 2]), ([2, 3], [2, 3, 2]), ([2, 1, 2, 3], [3, 3, 2]), ([3], [2, 3, 2]), ([2, 2, 3], [3]),
              ([0, 3], [3, 2]), ([2, 0], [0, 3]), ([2, 3], [3, 0]), ([0, 2, 3], [3, 2]), ([3, 9], [9, 5])]
    for a, b in shapes:
        case("matmul", f"{a} x {b}", [In(a), In(b)], torch.matmul)
    case("matmul", "left transposed", [In([3, 2], views="t:0,1"), In([3, 4])], torch.matmul)
    case("matmul", "right transposed", [In([2, 3]), In([4, 3], views="t:0,1")], torch.matmul)
    case("matmul", "sliced", [In([4, 7], views="s:1,1,7,2"), In([6, 2], views="s:0,0,6,2")], torch.matmul)
    case("matmul", "expanded", [In([1, 3], views="e:4,3"), In([3, 1], views="e:3,5")], torch.matmul)
    case("matmul", "batch expanded", [In([1, 2, 3], views="e:3,2,3"), In([3, 2, 3], views="t:1,2")], torch.matmul)
    case("matmul", "batch permuted", [In([2, 3, 2], views="p:2,0,1"), In([2, 3, 2])], torch.matmul)
    acts = [lambda y: y, torch.relu, torch.sigmoid, torch.tanh]
    for k in range(4):
        case("linear", f"activation {k}", [In([3, 4]), In([5, 4]), In([5])],
             lambda x, w, b: acts[k](F.linear(x, w, b)), [k])
        case("linear", f"no bias, activation {k}", [In([2, 3]), In([2, 3])], lambda x, w: acts[k](F.linear(x, w)), [k])
    case("linear", "three dims", [In([2, 2, 3]), In([4, 3]), In([4])], lambda x, w, b: torch.relu(F.linear(x, w, b)), [1])
    case("linear", "one dim", [In([3]), In([4, 3]), In([4])], F.linear, [0])
    case("linear", "empty batch", [In([0, 3]), In([4, 3]), In([4])], F.linear, [0])
    case("linear", "all strided", [In([3, 4], views="t:0,1"), In([3, 10], views="s:1,1,10,3;t:0,1"),
                                   In([6], views="s:0,0,6,2")], lambda x, w, b: torch.tanh(F.linear(x, w, b)), [3])
    case("linear", "expanded input", [In([1, 3], views="e:4,3"), In([2, 3]), In([2])], F.linear, [0])
    case("linear", "odd sizes", [In([3, 9]), In([10, 9]), In([10])], lambda x, w, b: torch.sigmoid(F.linear(x, w, b)),
         [2])


# --- pictures ---

def pictures():
    acts = [lambda y: y, torch.relu, torch.sigmoid, torch.tanh]

    def conv(stride, padding, act, pool):
        def fn(x, w, b=None):
            y = acts[act](F.conv2d(x, w, b, stride, padding))
            return F.max_pool2d(y, pool) if pool > 1 else y
        return fn

    def one(name, x, w, stride=(1, 1), padding=(0, 0), act=0, pool=0, bias=True, views="-", wviews="-"):
        o = In(w, views=wviews).viewed(torch.zeros(w)).shape[0]
        inputs = [In(x, views=views, low=-1, high=1), In(w, views=wviews, low=-1, high=1)] + ([In([o])] if bias else [])
        case("conv2d", name, inputs, conv(stride, padding, act, pool), [*stride, *padding, act, pool])
    one("plain", [2, 2, 3, 4], [3, 2, 2, 3])
    one("no bias", [1, 2, 4, 3], [2, 2, 3, 2], bias=False)
    one("stride 2", [1, 2, 6, 5], [2, 2, 3, 3], stride=(2, 2))
    one("stride 3", [1, 2, 7, 6], [2, 2, 3, 3], stride=(3, 3), act=1)
    one("padding 1", [1, 2, 4, 3], [2, 2, 3, 3], padding=(1, 1))
    one("uneven", [1, 2, 7, 5], [2, 2, 3, 2], stride=(2, 3), padding=(1, 2))
    one("one by one", [1, 3, 3, 3], [4, 3, 1, 1])
    one("whole picture", [2, 2, 3, 3], [2, 2, 3, 3])
    one("wide kernel", [1, 1, 5, 6], [2, 1, 5, 5], padding=(2, 2))
    one("padding beyond", [1, 1, 2, 2], [1, 1, 2, 2], padding=(2, 2))
    one("one channel", [1, 1, 3, 4], [1, 1, 2, 2])
    one("many channels", [1, 5, 2, 3], [9, 5, 2, 2])
    one("empty batch", [0, 2, 4, 4], [2, 2, 3, 3], act=1, pool=2)
    one("channels last", [2, 3, 4, 3], [2, 3, 2, 2], views="cl")
    one("channels last pooled", [2, 2, 5, 4], [3, 2, 2, 2], views="cl", act=1, pool=2)
    one("sliced", [1, 1, 6, 8], [2, 1, 2, 2], views="s:2,1,6,1;s:3,0,8,2")
    one("permuted", [3, 4, 2, 1], [2, 2, 2, 2], views="p:3,2,1,0")
    one("expanded", [1, 1, 4, 4], [2, 3, 2, 2], views="e:2,3,-1,-1")
    one("weight permuted", [1, 2, 4, 4], [2, 3, 2, 2], wviews="p:1,2,3,0")
    for k in range(4):
        one(f"activation {k}", [1, 1, 4, 4], [2, 1, 3, 3], act=k)
        one(f"activation {k} pool 2", [1, 2, 5, 4], [2, 2, 2, 2], act=k, pool=2)
    one("pool 3", [1, 1, 8, 7], [2, 1, 2, 2], act=1, pool=3)
    one("pool drops the rest", [1, 1, 8, 9], [2, 1, 2, 2], act=2, pool=3, padding=(1, 0))
    one("pool stride no bias", [2, 1, 8, 9], [2, 1, 3, 3], act=3, pool=2, stride=(2, 2), padding=(1, 1), bias=False)

    for op, fn in (("max_pool2d", F.max_pool2d), ("avg_pool2d", F.avg_pool2d)):
        def pool(name, shape, kernel, stride=(0, 0), padding=(0, 0), views="-"):
            s = [a or b for a, b in zip(stride, kernel)]
            case(op, name, [In(shape, views=views)], lambda x: fn(x, kernel, s, padding), [*kernel, *stride, *padding])
        pool("two", [2, 1, 4, 4], (2, 2))
        pool("rest dropped", [1, 1, 5, 7], (2, 3))
        pool("overlapping", [1, 1, 5, 5], (3, 3), (1, 1))
        pool("overlapping padded", [1, 1, 5, 4], (3, 3), (2, 2), (1, 1))
        pool("uneven", [1, 2, 6, 5], (2, 3), (1, 2), (1, 0))
        pool("gaps", [1, 1, 6, 6], (1, 2), (3, 3))
        pool("whole", [2, 2, 3, 3], (3, 3))
        pool("channels last", [1, 3, 4, 2], (2, 2), views="cl")
        pool("transposed", [1, 2, 4, 5], (2, 2), views="t:2,3")
        pool("expanded", [1, 1, 4, 4], (2, 2), views="e:2,2,4,4")
        pool("many channels", [1, 19, 2, 2], (2, 2))
        pool("empty batch", [0, 2, 4, 4], (2, 2))
    case("max_pool2d", "ties", [In([1, 1, 2, 4], values=[1, 1, 0, 2, 1, 1, 2, 2])],
         lambda x: F.max_pool2d(x, 2), [2, 2, 0, 0, 0, 0])
    case("max_pool2d", "nan and infinities", [In([1, 1, 2, 6], values=[1, nan, -inf, -inf, inf, 0, 3, 2, -inf, -inf, 1, 2])],
         lambda x: F.max_pool2d(x, 2), [2, 2, 0, 0, 0, 0])
    case("max_pool2d", "negative at padding", [In([1, 1, 2, 2], values=[-3, -4, -5, -6])],
         lambda x: F.max_pool2d(x, 2, 2, 1), [2, 2, 2, 2, 1, 1])


# --- networks ---

def networks():
    for op, fn in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        for dim in (0, 1, 2, -1, -2):
            case(op, f"dim {dim}", [In([2, 3, 4])], lambda a: fn(a, dim), [dim])
        case(op, "zero-dim", [In([])], lambda a: fn(a, 0), [0])
        case(op, "empty", [In([0, 3])], lambda a: fn(a, 1), [1])
        case(op, "transposed", [In([4, 3], views="t:0,1")], lambda a: fn(a, 1), [1])
        case(op, "expanded", [In([1, 3], views="e:2,3")], lambda a: fn(a, 1), [1])
        case(op, "large", [In([2, 3], values=[1000, 999, -1000, -1000, -1000, -1001])], lambda a: fn(a, 1), [1])
        case(op, "minus infinity", [In([3], values=[-inf, 1, 2])], lambda a: fn(a, 0), [0])
        case(op, "all minus infinity", [In([2], values=[-inf, -inf])], lambda a: fn(a, 0), [0], gradients=False)
        case(op, "nan", [In([2, 2], values=[nan, 1, 1, 2])], lambda a: fn(a, 1), [1], gradients=False)
        case(op, "long", [In([35])], lambda a: fn(a, 0), [0])
    probabilities = lambda shape, **k: In(shape, low=0, high=1, **k)
    bce = F.binary_cross_entropy_with_logits
    case("bce_with_logits", "plain", [In([3, 2]), probabilities([3, 2])], bce)
    case("bce_with_logits", "zero-dim", [In([]), probabilities([])], bce)
    case("bce_with_logits", "column", [In([5, 1]), In([5, 1], values=[1, 0, 1, 1, 0])], bce)
    case("bce_with_logits", "large", [In([8], values=[100, -100, 100, -100, 1000, -1000, 20000, -20000]),
                                      In([8], values=[1, 0, 0, 1, 1, 0, 0, 1])], bce)
    case("bce_with_logits", "small loss", [In([4], values=[16, -16, 30, -30]), In([4], values=[1, 0, 1, 0])], bce)
    case("bce_with_logits", "transposed", [In([2, 3], views="t:0,1"), probabilities([3, 2])], bce)
    case("bce_with_logits", "integer target", [In([3]), In([3], "i64", values=[0, 1, 1])], lambda x, y: bce(x, y.to(x.dtype)))
    case("bce_with_logits", "byte target", [In([3]), In([3], "u8", values=[0, 1, 1])], lambda x, y: bce(x, y.to(x.dtype)))
    case("mse", "plain", [In([3, 2]), In([3, 2])], F.mse_loss)
    case("mse", "zero-dim", [In([]), In([])], F.mse_loss)
    case("mse", "transposed", [In([2, 3], views="t:0,1"), In([3, 2])], F.mse_loss)
    case("mse", "expanded", [In([1, 2], views="e:3,2"), In([3, 1], views="e:3,2")], F.mse_loss)
    labels = lambda values, **k: In([len(values)], "i64", values=values, **k)
    case("cross_entropy", "plain", [In([3, 4]), labels([0, 3, 1])], F.cross_entropy)
    case("cross_entropy", "one class", [In([2, 1]), labels([0, 0])], F.cross_entropy)
    case("cross_entropy", "transposed", [In([4, 3], views="t:0,1"), labels([0, 3, 1])], F.cross_entropy)
    case("cross_entropy", "strided labels", [In([2, 4]), labels([1, 9, 2, 9], views="s:0,0,4,2")], F.cross_entropy)
    case("cross_entropy", "large", [In([2, 3], values=[1000, 0, -1000, 0, 1000, 5]), labels([2, 1])], F.cross_entropy)
    case("cross_entropy", "minus infinity", [In([1, 3], values=[-inf, 1, 2]), labels([2])], F.cross_entropy)
    case("cross_entropy", "expanded", [In([1, 3], views="e:2,3"), labels([2, 0])], F.cross_entropy)
    case("cross_entropy", "many classes", [In([2, 35]), labels([34, 17])], F.cross_entropy)


def still_more_unary():
    floating = lambda a: a if a.is_floating_point() else a.float()
    functions({"abs": torch.abs, "square": torch.square, "sin": torch.sin, "cos": torch.cos, "rsqrt": torch.rsqrt,
               "softplus": lambda a: F.softplus(floating(a)), "floor": torch.floor,
               "round": torch.round, "sign": torch.sign})
    for name, fn in (("abs", torch.abs), ("square", torch.square), ("sign", torch.sign), ("floor", torch.floor)):
        case(name, "negative integers", [In([4], "i32", values=[-5, 0, 5, -2**31])], fn)
        case(name, "wide integers", [In([4], "i64", values=[-5, 0, 5, -2**33])], fn)
    case("round", "halves", [In([6], values=[0.5, 1.5, -0.5, -1.5, 2.5, -0.75])], torch.round)


def two_operands(name, fn, floats=True, low=-2):
    """fn of two, of all kinds of views and dtypes."""
    shapes = (("same shape", In([2, 3], low=low), In([2, 3])), ("row", In([2, 3], low=low), In([3])),
              ("both broadcast", In([2, 1, 3], low=low), In([4, 1])), ("zero-dim", In([], low=low), In([3])),
              ("empty", In([0, 3], low=low), In([3])), ("transposed", In([3, 2], low=low, views="t:0,1"), In([2, 3])),
              ("sliced", In([3, 7], low=low, views="s:1,1,7,2"), In([5, 3], views="s:0,1,4,1")),
              ("expanded", In([1, 3], low=low, views="e:4,-1"), In([4, 1], views="e:4,3")),
              ("channels last", In([2, 3, 2, 2], low=low, views="cl"), In([2, 3, 2, 2])))
    if floats:
        for shape, a, b in shapes:
            case(name, shape, [a, b], fn)
    for dtype in ("u8", "i32", "i64"):
        case(name, dtype, [In([6], dtype), In([6], dtype, values=[0, 1, 2, 3, 4, 5])], fn)
        case(name, f"{dtype} broadcast", [In([2, 3], dtype), In([1], dtype, values=[2])], fn)
    case(name, "mixed", [In([4], "i32", values=[-3, 0, 3, 9]), In([4], "i64", values=[3, 2, 1, 0])], fn)


def with_number(name, numbers, fn, low=-2, dtypes=("f32", "i32", "u8")):
    for n in numbers:
        for dtype in dtypes:
            case(name, f"{dtype} {n}", [In([7], dtype, low=low)], lambda a: fn(a, n), [float(n)])
        case(name, f"transposed {n}", [In([3, 2], low=low, views="t:0,1")], lambda a: fn(a, n), [float(n)])
        case(name, f"empty {n}", [In([0])], lambda a: fn(a, n), [float(n)])
        case(name, f"not finite {n}", [In([5], values=[nan, inf, -inf, 0.0, -0.0])], lambda a: fn(a, n), [float(n)],
             gradients=False)


def pairs():
    floating = lambda a: a if a.is_floating_point() else a.float()
    for name, fn in (("minimum", torch.minimum), ("maximum", torch.maximum)):
        two_operands(name, fn)
        case(name, "bool", [In([4], "b", values=[0, 0, 1, 1]), In([4], "b", values=[0, 1, 0, 1])], fn)
        case(name, "not finite", [In([6], values=[nan, 1, nan, inf, -inf, 2]), In([6], values=[1, nan, nan, 3, 3, inf])],
             fn)
        case(name, "promote", [In([3], "i32"), In([3])], fn)
    two_operands("pow", torch.pow, low=0.25)
    case("pow", "ends", [In([16], values=[0, 0, 0, -0.0, -0.0, 1, nan, inf, inf, -inf, -inf, -inf, -2, -2, -2, 0.5]),
                         In([16], values=[0, 1, -1, 3, -3, nan, 0, 0.25, -0.25, 3, 2, -3, 3, 2, 0.5, inf])], torch.pow,
         gradients=False)
    case("pow", "gradient at zero", [In([4], values=[0, 0, 0, 1]), In([4], values=[0, 1, 2, 0])], torch.pow)
    case("pow", "powers below zero", [In([5], "i32", values=[0, 1, -1, -1, 2]), In([5], "i32", values=[-1, -2, -3, -2, -1])],
         torch.pow)
    with_number("pow_scalar", (2, 3, 0), torch.pow)
    with_number("pow_scalar", (0.5, -0.5, 2.5, -1, -2), torch.pow, low=0.25, dtypes=("f32",))
    case("pow_scalar", "i32 0.5", [In([3], "i32", values=[1, 4, 9])], lambda a: torch.pow(a, 0.5), [0.5])
    with_number("leaky_relu", (0.01, 0.25, -1), lambda a, n: F.leaky_relu(floating(a), n))
    with_number("elu", (1, 0.5), lambda a, n: F.elu(floating(a), n))
    for low, high in ((-1, 1), (0, inf), (-inf, 0.5), (2, 1), (-inf, inf)):
        bounds = [None if abs(b) == inf else b for b in (low, high)]
        fn = torch.clone if bounds == [None, None] else lambda a: torch.clamp(a, *bounds)
        for dtype in ("f32", "i32"):
            if dtype == "f32" or 0.5 not in bounds:
                case("clamp", f"{dtype} {low} {high}", [In([9], dtype)], fn, [low, high])
        case("clamp", f"transposed {low} {high}", [In([3, 2], views="t:0,1")], fn, [low, high])
        case("clamp", f"empty {low} {high}", [In([0, 2])], fn, [low, high])
        case("clamp", f"not finite {low} {high}", [In([4], values=[nan, inf, -inf, 0])], fn, [low, high])
    for name, fn in (("bitwise_and", torch.bitwise_and), ("bitwise_or", torch.bitwise_or),
                     ("bitwise_xor", torch.bitwise_xor)):
        two_operands(name, fn, floats=False)
        case(name, "bool", [In([4], "b", values=[0, 0, 1, 1]), In([4], "b", values=[0, 1, 0, 1])], fn)
        case(name, "transposed", [In([3, 2], "i32", views="t:0,1"), In([2, 3], "i32")], fn)
    for name, fn in (("logical_and", torch.logical_and), ("logical_or", torch.logical_or),
                     ("logical_xor", torch.logical_xor)):
        two_operands(name, fn)
        case(name, "bool", [In([4], "b", values=[0, 0, 1, 1]), In([4], "b", values=[0, 1, 0, 1])], fn)
        case(name, "not finite", [In([4], values=[nan, 0, inf, -0.0]), In([4], values=[0, nan, inf, 0])], fn)
    for dtype in ("u8", "i32", "i64", "b"):
        case("bitwise_not", dtype, [In([4], dtype)], torch.bitwise_not)
    for dtype in CODES:
        case("logical_not", dtype, [In([4], dtype, low=-0.25, high=0.25)], torch.logical_not)
        for name, fn in (("isnan", torch.isnan), ("isfinite", torch.isfinite)):
            case(name, dtype, [In([3], dtype)], fn)
    for name, fn in (("isnan", torch.isnan), ("isfinite", torch.isfinite)):
        case(name, "not finite", [In([5], values=[nan, inf, -inf, 0.0, 1])], fn)
        case(name, "transposed", [In([3, 2], views="t:0,1")], fn)
        case(name, "empty", [In([0, 2])], fn)
        case(name, "zero-dim", [In([])], fn)


def arrange():
    def stack(dim):
        return lambda *t: torch.stack(t, dim)
    for dim in (0, 1, -1, 2):
        case("stack", f"three {dim}", [In([2, 3]), In([3, 2], views="t:0,1"), In([1, 3], views="e:2,3")], stack(dim), [dim])
    case("stack", "zero-dim", [In([]), In([])], stack(0), [0])
    case("stack", "one", [In([3])], stack(1), [1])
    case("stack", "empty", [In([2, 0]), In([2, 0])], stack(1), [1])
    for a in CODES:
        case("stack", f"promote {a}", [In([2], a), In([2], "i32")], stack(0), [0], gradients=False)
    for name, fn in (("split_dim", lambda size, dim: lambda a: torch.split(a, size, dim)[-1]),
                     ("chunk", lambda count, dim: lambda a: torch.chunk(a, count, dim)[-1])):
        for n, dim in ((2, 0), (1, 1), (3, 0), (2, -1)):
            case(name, f"{n} {dim}", [In([3, 4])], fn(n, dim), [n, dim])
            case(name, f"transposed {n} {dim}", [In([4, 3], views="t:0,1")], fn(n, dim), [n, dim])
        case(name, "empty", [In([0, 2])], fn(1, 0), [1, 0])
        case(name, "integers", [In([5], "i64")], fn(2, 0), [2, 0])
    for dtype in CODES:
        case("masked_fill", dtype, [In([5], dtype), In([5], "b")], lambda a, m: a.masked_fill(m, 1), [1])
    for value in (-inf, nan, 2.5):
        case("masked_fill", f"{value}", [In([2, 3]), In([2, 3], "b")], lambda a, m: a.masked_fill(m, value), [value])
        case("masked_fill", f"broadcast {value}", [In([3, 2], views="t:0,1"), In([3], "b")],
             lambda a, m: a.masked_fill(m, value), [value])
        case("masked_fill", f"to the mask {value}", [In([1, 3]), In([2, 1], "b")], lambda a, m: a.masked_fill(m, value), [value])
    case("masked_fill", "empty", [In([0, 3]), In([3], "b")], lambda a, m: a.masked_fill(m, 0), [0])
    case("masked_fill", "zero-dim", [In([]), In([], "b", values=[True])], lambda a, m: a.masked_fill(m, 4), [4])
    case("outer", "plain", [In([3]), In([4])], torch.outer)
    case("outer", "strided", [In([7], views="s:0,1,7,2"), In([1], views="e:3")], torch.outer)
    case("outer", "empty", [In([0]), In([2])], torch.outer)
    case("outer", "promote", [In([2], "i32"), In([3])], torch.outer)
    for shape in ([3, 2], [2], [3, 1], [1], []):
        case("addmm", f"{shape}", [In(shape), In([3, 4]), In([2, 4], views="t:0,1")], torch.addmm)
    case("addmm", "no products", [In([2]), In([3, 0]), In([0, 2])], torch.addmm)
    case("addmm", "empty", [In([2]), In([0, 4]), In([4, 2])], torch.addmm)


def attention():
    def attend(name, q, k, v, mask=None, causal=False, scale=0):
        run = lambda q, k, v, *m: F.scaled_dot_product_attention(q, k, v, m[0] if m else None, is_causal=causal,
                                                                 scale=scale or None)
        with_gradients = mask is None or mask.dtype == "b"
        case("attention", name, [q, k, v] + ([mask] if mask else []), run, [causal, scale], gradients=with_gradients)
    heads = lambda l, s, e, ev: (In([1, 2, l, e]), In([1, 2, s, e]), In([1, 2, s, ev]))
    for l, s, e, ev in ((3, 5, 4, 4), (5, 3, 2, 3), (1, 7, 1, 1), (7, 1, 3, 2), (7, 7, 8, 8)):
        attend(f"{l} {s} {e} {ev}", *heads(l, s, e, ev))
        attend(f"causal {l} {s} {e} {ev}", *heads(l, s, e, ev), causal=True)
    attend("scale", *heads(3, 5, 4, 4), scale=0.3)
    attend("one matrix", In([3, 4]), In([5, 4]), In([5, 2]))
    attend("turned", In([2, 3, 2, 4], views="t:1,2"), In([2, 5, 2, 4], views="t:1,2"), In([2, 2, 4, 5], views="t:2,3"))
    attend("expanded", In([2, 1, 3, 4], views="e:2,2,3,4"), In([1, 2, 5, 4], views="e:2,2,5,4"), In([2, 2, 5, 3]))
    attend("sliced", In([2, 3, 9], views="s:2,1,9,2"), In([2, 5, 4]), In([2, 9, 4], views="s:1,0,9,2"))
    attend("no keys", *heads(3, 0, 4, 2))
    attend("no queries", *heads(0, 3, 4, 2))
    attend("large", In([1, 2, 2], values=[900, -900, 30, 40]), In([1, 2, 2], values=[10, 20, -30, 5]), In([1, 2, 1]))
    allowed = [1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    attend("bool mask", *heads(3, 5, 4, 4), In([3, 5], "b", values=allowed))
    attend("keys' mask", *heads(3, 5, 4, 4), In([1, 1, 1, 5], "b", values=[1, 1, 0, 1, 0]))
    attend("queries' mask", *heads(3, 5, 4, 4), In([1, 2, 3, 1], "b", values=[1, 1, 0, 1, 0, 1]))
    attend("turned mask", *heads(3, 5, 4, 4), In([5, 3], "b", values=[allowed[i * 5 + j] for j in range(5) for i in range(3)], views="t:0,1"))
    attend("added mask", *heads(3, 5, 4, 4), In([2, 3, 5]))
    attend("added infinity", *heads(2, 3, 4, 4), In([2, 3], values=[-inf, 0.5, -inf, -inf, -inf, -inf]))
def taken(parameters, flags):
    """Weight, bias and running statistics of a list that holds those whose bit is set."""
    rest = list(parameters)
    return [rest.pop(0) if flags & bit else None for bit in (1, 2, 4, 8)]


def norms():
    """args: rows: trailing dimensions, epsilon, flags; groups: groups, epsilon, flags; batches: training, momentum,
    epsilon, flags. Flags: 1 a weight follows, 2 a bias, 12 running mean and variance."""
    apart = {"distinct": True, "low": -4, "high": 4}

    def vectors(flags, shape):
        mean = [(3 * i % 7 - 3.5) / 16 for i in range(shape[0])]  # no number of x
        return [In(shape, values=mean if bit == 4 else None, low=0.25 if bit == 8 else -2)
                for bit in (1, 2, 4, 8) if flags & bit]

    def rows(name, x, dims, flags=3, eps=1e-5, label=""):
        shape = [n for n in x.viewed(torch.zeros(x.shape)).shape][-dims:]
        def fn(x, *rest):
            weight, bias, _, _ = taken(rest, flags)
            return F.layer_norm(x, shape, weight, bias, eps) if name == "layer_norm" else F.rms_norm(x, shape, weight, eps)
        case(name, f"{label or x.views} {shape} {flags}", [x] + vectors(flags, shape), fn, [dims, eps, flags])

    for name, all_flags in (("layer_norm", (3, 0, 1, 2)), ("rms_norm", (1, 0))):
        for flags in all_flags:
            rows(name, In([3, 5], **apart), 1, flags)
        rows(name, In([2, 3, 4], **apart), 2, all_flags[0])
        rows(name, In([2, 3, 4], **apart), 3, all_flags[0])
        rows(name, In([7], **apart), 1, all_flags[0])
        rows(name, In([2, 40], **apart), 1, all_flags[0], 0.5)
        rows(name, In([9, 2], **apart), 1, all_flags[0])
        rows(name, In([4, 3], **apart, views="t:0,1"), 1, all_flags[0])
        rows(name, In([3, 9], **apart, views="s:1,1,9,2"), 1, all_flags[0])
        rows(name, In([1, 4], **apart, views="e:3,4"), 1, all_flags[0])
        rows(name, In([0, 3]), 1, all_flags[0], label="no rows")
        rows(name, In([2, 3], values=[1, 1, 1, 0, 0, 0]), 1, all_flags[0], 0.25, label="constant")
    rows("layer_norm", In([2, 4], values=[1024, 1025, 1026, 1027, -3, -2, -1, 0]), 1, label="far off")

    def channels(name, x, numbers, flags, fn, label=""):
        c = x.viewed(torch.zeros(x.shape)).shape[1]
        case(name, f"{label or x.views} {x.shape} {numbers} {flags}".replace("[", "").replace("]", ""),
             [x] + vectors(flags, [c]), fn, numbers + [1e-5, flags])

    def group(x, groups, flags=3, label=""):
        def fn(x, *rest):
            return F.group_norm(x, groups, *taken(rest, flags)[:2])
        channels("group_norm", x, [groups], flags, fn, label)

    def batch(x, training, flags=15, label="", momentum=0.25):
        def fn(x, *rest):
            weight, bias, mean, var = taken(rest, flags)
            mean, var = [None if t is None else t.detach().clone() for t in (mean, var)]
            y = F.batch_norm(x, mean, var, weight, bias, bool(training), momentum, 1e-5)
            return y if mean is None else [y, torch.cat([mean, var])]
        channels("batch_norm", x, [training, momentum], flags, fn, label)

    pictures = lambda views="-": In([2, 4, 3, 2], **apart, views=views)
    for flags in (3, 0, 1, 2):
        group(pictures(), 2, flags)
        for training in (1, 0):
            batch(pictures(), training, flags + 12)
    for views in ("cl", "p:0,1,3,2", "s:2,0,3,2", "p:1,0,2,3"):
        group(pictures(views), 2)
        for training in (1, 0):
            batch(pictures(views), training)
    batch(pictures(), 1, 3)
    batch(pictures("cl"), 1, 0)
    for groups in (1, 4):
        group(pictures(), groups)
        group(pictures("cl"), groups)
    for shape in ([5, 3], [2, 3, 4], [2, 2, 2, 2, 2], [7, 1], [2, 1, 3, 3]):
        if shape != [7, 1]:  # nothing but roundings
            group(In(shape, **apart), 1)
        for training in (1, 0):
            batch(In(shape, **apart), training)
    for training in (1, 0):
        batch(In([3, 5], **apart, views="t:0,1"), training)
        batch(In([4, 2, 3], **apart, views="p:0,2,1"), training)
        batch(In([0, 3, 2, 2]), training, label="no pictures")
    group(In([0, 4, 2, 2]), 2, label="no pictures")
def ints(shape, n, dtype="i64", views="-", low=0):
    """Indices from low to n - 1."""
    count = 1
    for d in shape:
        count *= d
    return In(shape, dtype, values=[rng.randrange(low, n) for _ in range(count)], views=views)


def rows():
    def embedding(padding=None):
        return lambda w, i: F.embedding(i, w, padding)
    for shape in ([4], [2, 3], [], [0], [2, 0], [2, 2, 2]):
        case("embedding", f"{shape}", [In([5, 3]), ints(shape, 5)], embedding(), [0, 0])
    case("embedding", "int32", [In([5, 3]), ints([2, 5], 5, "i32")], embedding(), [0, 0])
    case("embedding", "wide rows", [In([3, 16]), ints([9], 3)], embedding(), [0, 0])
    case("embedding", "one column", [In([9, 1]), ints([12], 9)], embedding(), [0, 0])
    case("embedding", "no columns", [In([2, 0]), ints([3], 2)], embedding(), [0, 0])
    case("embedding", "turned", [In([3, 5], views="t:0,1"), ints([3, 2], 5, views="t:0,1")], embedding(), [0, 0])
    case("embedding", "often", [In([2, 4]), ints([30], 2)], embedding(), [0, 0])
    for padding in (0, 2, -1):
        case("embedding", f"padding {padding}", [In([4, 3]), ints([2, 6], 4)], embedding(padding), [1, padding])
    for dtype in ("b", "u8", "i32", "i64"):
        case("embedding", dtype, [In([3, 2], dtype), ints([4], 3)], embedding(), [0, 0])

    def add(dim):
        return lambda a, i, s: torch.index_add(a, dim, i, s)

    def copy(dim):
        return lambda a, i, s: torch.index_copy(a, dim, i.long(), s)
    for name, fn in (("index_add", add), ("index_copy", copy)):
        few = lambda values, dtype="i64": In([len(values)], dtype, values=values)
        case(name, "rows", [In([4, 3]), few([2, 0]), In([2, 3])], fn(0), [0])
        case(name, "columns", [In([2, 4]), few([3, 0], "i32"), In([2, 2])], fn(1), [1])
        case(name, "middle", [In([2, 3, 2]), few([2, 0]), In([2, 2, 2])], fn(-2), [-2])
        case(name, "wide", [In([3, 8]), few([1, 2]), In([2, 8])], fn(0), [0])
        case(name, "vector", [In([5]), few([4, 1]), In([2])], fn(0), [0])
        case(name, "none", [In([2, 3]), few([]), In([0, 3])], fn(0), [0])
        case(name, "turned", [In([3, 2], views="t:0,1"), few([1, 0]), In([3, 2], views="t:0,1")], fn(0), [0])
        case(name, "strided", [In([4]), In([5], "i64", values=[3, 9, 0, 9, 1], views="s:0,0,5,2"), In([5], views="s:0,0,5,2")],
             fn(0), [0])
        for dtype in ("b", "u8", "i32", "i64"):
            case(name, dtype, [In([3], dtype), few([2, 0]), In([2], dtype)], fn(0), [0])
    case("index_add", "repeated", [In([4, 3]), ints([9], 4), In([9, 3])], add(0), [0])
    case("index_add", "often", [In([2, 2]), ints([40], 2), In([40, 2])], add(0), [0])
    for dtype in ("u8", "i32", "i64"):
        case("index_add", f"repeated {dtype}", [In([3], dtype), ints([9], 3), In([9], dtype)], add(0), [0])

    def put(accumulate):
        return lambda a, i, v: torch.index_put(a, (i.long(),), v, accumulate)
    for accumulate in (False, True):
        for shape in ([2, 3], [3], [1, 3], []):
            case("index_put", f"{shape} {accumulate}", [In([4, 3]), In([2], "i64", values=[3, 1]), In(shape)], put(accumulate),
                 [int(accumulate)])
        case("index_put", f"from the end {accumulate}", [In([4, 3]), In([2], "i32", values=[-1, 1]), In([2, 3])],
             put(accumulate), [int(accumulate)])
        case("index_put", f"index of two dims {accumulate}", [In([5, 2]), In([2, 2], "i64", values=[3, 1, 0, 4]), In([2, 2, 2])],
             put(accumulate), [int(accumulate)])
        case("index_put", f"zero-dim index {accumulate}", [In([3, 2]), In([], "i64", values=[2]), In([2])], put(accumulate),
             [int(accumulate)])
    case("index_put", "repeated", [In([3, 2]), ints([7], 3), In([7, 2])], put(True), [1])


def elements():
    def gather(dim):
        return lambda a, i: torch.gather(a, dim, i.long())
    for dim, shape in ((0, [3, 4]), (1, [3, 2]), (-1, [2, 6]), (0, [5, 2]), (1, [3, 0]), (0, [0, 4])):
        case("gather", f"{dim} {shape}", [In([3, 4]), ints(shape, 3 if dim == 0 else 4)], gather(dim), [dim])
    case("gather", "middle", [In([2, 3, 2]), ints([2, 4, 2], 3)], gather(1), [1])
    case("gather", "smaller", [In([3, 3, 3]), ints([2, 4, 1], 3)], gather(1), [1])
    case("gather", "int32", [In([2, 3]), ints([2, 2], 3, "i32")], gather(1), [1])
    case("gather", "zero-dim", [In([]), In([], "i64", values=[0])], gather(0), [0])
    case("gather", "turned", [In([4, 3], views="t:0,1"), ints([2, 3], 4, views="t:0,1")], gather(1), [1])
    case("gather", "often", [In([2, 3]), ints([2, 70], 3)], gather(1), [1])
    case("gather", "often, one column", [In([2]), ints([80], 2)], gather(0), [0])
    case("gather", "often, columns", [In([3, 2]), ints([70, 2], 3)], gather(0), [0])
    for dtype in ("b", "u8", "i32", "i64"):
        case("gather", dtype, [In([2, 3], dtype), ints([2, 2], 3)], gather(1), [1])

    def scatter(dim):
        return lambda a, i, s: torch.scatter_add(a, dim, i.long(), s)
    for dim, shape in ((0, [3, 4]), (1, [3, 2]), (-1, [3, 6]), (0, [5, 4]), (1, [3, 0]), (0, [0, 4]), (0, [5, 2]), (1, [2, 3])):
        case("scatter_add", f"{dim} {shape}", [In([3, 4]), ints(shape, 3 if dim == 0 else 4), In(shape)], scatter(dim), [dim])
    case("scatter_add", "larger source", [In([3, 4]), ints([2, 3], 4), In([4, 3])],
         lambda *t: scatter(1)(*t).detach(), [1])  # PyTorch has no gradient there
    case("scatter_add", "middle, smaller", [In([2, 3, 2]), ints([1, 4, 1], 3), In([1, 4, 1])], scatter(1), [1])
    case("scatter_add", "int32", [In([2, 3]), ints([2, 2], 3, "i32"), In([2, 2])], scatter(1), [1])
    case("scatter_add", "zero-dim", [In([]), In([], "i64", values=[0]), In([])], scatter(0), [0])
    case("scatter_add", "turned", [In([4, 3], views="t:0,1"), ints([2, 3], 4, views="t:0,1"), In([2, 3], views="t:0,1")],
         scatter(1), [1])
    case("scatter_add", "often", [In([2, 3]), ints([2, 70], 3), In([2, 70], low=-1, high=1)], scatter(1), [1])
    case("scatter_add", "often, columns", [In([3, 2]), ints([70, 2], 3), In([70, 2], low=-1, high=1)], scatter(0), [0])
    for dtype in ("b", "u8", "i32", "i64"):
        case("scatter_add", dtype, [In([2, 3], dtype), ints([2, 5], 3), In([2, 5], dtype)], scatter(1), [1])
    for shape in ([4], [2, 3], [], [0]):
        case("one_hot", f"{shape}", [ints(shape, 5)], lambda i: F.one_hot(i, 5), [5])
    case("one_hot", "int32", [ints([4], 3, "i32")], lambda i: F.one_hot(i.long(), 3), [3])
    case("one_hot", "turned", [ints([3, 2], 4, views="t:0,1")], lambda i: F.one_hot(i, 4), [4])


def arrange_more():
    def pad(before, after, mode="constant", value=0):
        pairs = [n for b, a in reversed(list(zip(before, after))) for n in (b, a)]

        def fn(x):
            if mode == "constant":
                return F.pad(x, pairs, mode, value)
            return F.pad(x[(None,) * len(before)], pairs, mode)[(0,) * len(before)]
        return fn
    def padded(name, shape, before, after, mode="constant", value=0, views="-", dtype="f32"):
        case("pad", f"{name} {mode} {value}", [In(shape, dtype, views=views)], pad(before, after, mode, value),
             [["constant", "reflect", "replicate"].index(mode), value, len(before)] + before + after)
    for value in (0, 1.5):
        padded("last", [2, 3], [1], [2], value=value)
        padded("both", [2, 3], [1, 0], [0, 2], value=value)
        padded("cut", [3, 4], [-1, 1], [0, -2], value=value)
        padded("turned", [3, 2], [1, 2], [2, 1], value=value, views="t:0,1")
    padded("nothing", [2, 3], [0, 0], [0, 0])
    padded("none", [2, 3], [], [])
    padded("to nothing", [2, 3], [0, -3], [0, 0])
    padded("of nothing", [0, 2], [1, 1], [1, 0])
    padded("pictures", [1, 2, 2, 2], [1, 1], [1, 1])
    for mode in ("reflect", "replicate"):
        padded("last", [2, 3], [1], [2], mode)
        padded("both", [3, 4], [2, 1], [1, 3], mode)
        padded("turned", [3, 4], [2, 1], [1, 2], mode, views="t:0,1")
        padded("cut", [4, 4], [-3, 2], [2, -2], mode)
    padded("far", [2, 1], [3, 2], [1, 4], "replicate")
    for dtype in ("b", "u8", "i32", "i64"):
        padded(dtype, [2, 2], [1, 0], [0, 1], dtype=dtype)
    for dims in ([0], [1], [0, 1], [-1], [], [2, 0]):
        shape = [2, 3, 2] if 2 in dims else [2, 3]
        case("flip", f"{dims}", [In(shape)], lambda a: torch.flip(a, dims), [float(d) for d in dims])
    case("flip", "turned", [In([3, 2], views="t:0,1")], lambda a: torch.flip(a, [0]), [0])
    case("flip", "strided", [In([7], views="s:0,1,7,2")], lambda a: torch.flip(a, [0]), [0])
    case("flip", "empty", [In([0, 2])], lambda a: torch.flip(a, [0, 1]), [0, 1])
    for dtype in ("b", "u8", "i32", "i64"):
        case("flip", dtype, [In([4], dtype)], lambda a: torch.flip(a, [0]), [0])
    for shifts, dims in (([1], [0]), ([-1], [1]), ([5], [1]), ([1, 2], [0, 1]), ([0], [0]), ([1, 1], [1, 1])):
        case("roll", f"{shifts} {dims}", [In([3, 4])], lambda a: torch.roll(a, shifts, dims), [len(dims)] + shifts + dims)
    case("roll", "all", [In([2, 3])], lambda a: torch.roll(a, 2), [0, 2])
    case("roll", "turned", [In([3, 2], views="t:0,1")], lambda a: torch.roll(a, 1, 1), [1, 1, 1])
    case("roll", "turned all", [In([3, 2], views="t:0,1")], lambda a: torch.roll(a, -1), [0, -1])
    case("roll", "empty", [In([0, 2])], lambda a: torch.roll(a, 1, 0), [1, 1, 0])
    case("roll", "integers", [In([4], "i64")], lambda a: torch.roll(a, 1, 0), [1, 1, 0])
    for times in ([2], [1], [3, 1], [2, 2], [2, 1, 2], [0, 2]):
        for shape in ([3], [2, 2]):
            if len(times) >= len(shape):
                case("repeat", f"{shape} {times}", [In(shape)], lambda a: a.repeat(times), times)
            case("tile", f"{shape} {times}", [In(shape)], lambda a: torch.tile(a, times), times)
    case("repeat", "zero-dim", [In([])], lambda a: a.repeat(3), [3])
    case("repeat", "itself", [In([])], lambda a: a.repeat([]), [])
    case("repeat", "turned", [In([3, 2], views="t:0,1")], lambda a: a.repeat(2, 2), [2, 2])
    case("repeat", "integers", [In([2], "i32")], lambda a: a.repeat(2, 2), [2, 2])
    for name, fn in (("tril", torch.tril), ("triu", torch.triu)):
        for diagonal in (0, 1, -1, 9, -9):
            case(name, f"{diagonal}", [In([3, 4])], lambda a: fn(a, diagonal), [diagonal])
        case(name, "batches", [In([2, 2, 3])], fn, [0])
        case(name, "turned", [In([3, 2], views="t:0,1")], fn, [0])
        case(name, "not finite", [In([2, 2], values=[nan, inf, -inf, nan])], fn, [0], gradients=False)
        case(name, "empty", [In([0, 2])], fn, [0])
        for dtype in ("b", "u8", "i32", "i64"):
            case(name, dtype, [In([2, 2], dtype)], fn, [0])
    for dim in (0, 1, -1, 2):
        case("cumsum", f"{dim}", [In([2, 3, 4])], lambda a: torch.cumsum(a, dim), [dim])
    case("cumsum", "turned", [In([4, 3], views="t:0,1")], lambda a: torch.cumsum(a, 0), [0])
    case("cumsum", "long", [In([130], low=-1, high=1)], lambda a: torch.cumsum(a, 0), [0], flags="f32")
    case("cumsum", "zero-dim", [In([])], lambda a: torch.cumsum(a, 0), [0])
    case("cumsum", "empty", [In([0, 2])], lambda a: torch.cumsum(a, 0), [0])
    for dtype in ("b", "u8", "i32", "i64"):
        case("cumsum", dtype, [In([2, 3], dtype)], lambda a: torch.cumsum(a, 1), [1])


def order():
    def sort(dim, descending):
        return lambda a: torch.sort(a, dim=dim, descending=descending, stable=True)
    for name, fn in (("sort", lambda *how: sort(*how)), ("argsort", lambda *how: lambda a: sort(*how)(a)[1])):
        for down in (False, True):
            for dim in (0, 1, -1):
                case(name, f"{dim} {down}", [In([3, 5], distinct=True)], fn(dim, down), [dim, int(down)])
            case(name, f"middle {down}", [In([2, 4, 3])], fn(1, down), [1, int(down)])
            case(name, f"equals {down}", [In([40], low=-1, high=1)], fn(0, down), [0, int(down)])
            case(name, f"turned {down}", [In([5, 2], views="t:0,1")], fn(1, down), [1, int(down)])
            case(name, f"not finite {down}", [In([8], values=[nan, 0, -0.0, inf, -inf, nan, 1, 0])], fn(0, down), [0, int(down)],
                 gradients=False)
            case(name, f"zero-dim {down}", [In([])], fn(0, down), [0, int(down)])
            case(name, f"empty {down}", [In([0, 3])], fn(0, down), [0, int(down)])
            case(name, f"empty other {down}", [In([0, 3])], fn(1, down), [1, int(down)])
            for dtype in ("b", "u8", "i32", "i64"):
                case(name, f"{dtype} {down}", [In([2, 9], dtype)], fn(1, down), [1, int(down)])
    for largest in (True, False):
        for k, dim in ((1, 0), (3, -1), (5, 1), (0, 1)):
            case("topk", f"{k} {dim} {largest}", [In([3, 5], distinct=True)], lambda a: torch.topk(a, k, dim, largest),
                 [k, dim, int(largest)])
        case("topk", f"long {largest}", [In([128], distinct=True, low=-6, high=6)], lambda a: torch.topk(a, 4, 0, largest),
             [4, 0, int(largest)])
        case("topk", f"turned {largest}", [In([5, 2], views="t:0,1", distinct=True)], lambda a: torch.topk(a, 2, 1, largest),
             [2, 1, int(largest)])
        case("topk", f"zero-dim {largest}", [In([])], lambda a: torch.topk(a, 1, 0, largest), [1, 0, int(largest)])
        case("topk", f"integers {largest}", [In([6], "i64", values=[3, -9, 7, 0, 100, 5])], lambda a: torch.topk(a, 3, 0, largest),
             [3, 0, int(largest)])
    for right in (False, True):
        search = lambda s, v: torch.searchsorted(s.detach(), v.detach(), right=right)
        line = sorted(In([9]).values)
        case("searchsorted", f"line {right}", [In([9], values=line), In([2, 7])], search, [int(right)])
        case("searchsorted", f"rows {right}", [In([2, 3], values=[-1, 0, 1, 0, 0, 2]), In([2, 4])], search, [int(right)])
        case("searchsorted", f"zero-dim {right}", [In([9], values=line), In([])], search, [int(right)])
        case("searchsorted", f"of nothing {right}", [In([0]), In([3])], search, [int(right)])
        case("searchsorted", f"nothing {right}", [In([4], values=line[:4]), In([0])], search, [int(right)])
        case("searchsorted", f"not finite {right}", [In([5], values=[-inf, 0, 1, inf, nan]), In([5], values=[nan, inf, -inf, 0, -0.0])],
             search, [int(right)])
        for dtype in ("u8", "i32", "i64"):
            case("searchsorted", f"{dtype} {right}", [In([5], dtype, values=[1, 2, 2, 5, 8]), In([6], dtype)], search, [int(right)])


# --- more reductions ---

DIMS = ([0], False), ([1], False), ([-1], True), ([0, 2], False), ([1, 2], True), ([2, 0, 1], False)
LAID = (("permuted", [2, 3, 2], "p:2,0,1", [0, 2]), ("channels last", [2, 3, 2, 2], "cl", [0, 2, 3]),
        ("channels last 2", [2, 3, 2, 2], "cl", [1]), ("expanded", [1, 3], "e:4,3", [0]), ("strided", [7, 3], "s:0,1,7,2", [0]),
        ("0 1 3 of 4", [2, 3, 2, 2], "-", [0, 1, 3]), ("1 3 of 5", [2, 3, 1, 2, 2], "-", [1, 3]), ("long rows", [2, 75], "-", [1]),
        ("long columns", [75, 2], "-", [0]), ("slabs", [2, 5, 9], "-", [1]), ("ones", [2, 1, 3], "-", [1]))


def over_dims(name, fn, args=(), first=(), empty=True, **kinds):
    """fn(a, dims, keepdim), whose cases have `args`, keepdim and the dimensions."""
    label = f"{args[0]:g} " if args else ""
    for d, keep in DIMS:
        case(name, f"{label}{d} {keep}", [In([2, 3, 4], **kinds)], lambda a: fn(a, d, keep), [*args, int(keep), *d])
    for laid, shape, views, d in LAID:
        case(name, label + laid, [In(shape, views=views, **kinds)], lambda a: fn(a, d, False), [*args, 0, *d])
    case(name, label + "zero-dim", [In([], **kinds)], lambda a: fn(a, [0], False), [*args, 0, 0])
    case(name, label + "empty kept", [In([0, 3], **kinds)], lambda a: fn(a, [1], False), [*args, 0, 1])
    if empty:
        case(name, label + "empty reduced", [In([0, 3], **kinds)], lambda a: fn(a, [0], True), [*args, 1, 0])


def least_and_products():
    def min_dim(dim, keep):
        return lambda a: tuple(torch.min(a, dim, keep))
    for shape, view in (([2, 3], "-"), ([3, 2], "t:0,1"), ([7], "s:0,1,7,2"), ([2, 1], "e:2,4"), ([2, 3, 2], "p:2,0,1"), ([], "-")):
        case("min", f"{shape} {view}", [In(shape, views=view, distinct=True)], torch.min)
        case("prod", f"{shape} {view}", [In(shape, views=view)], torch.prod)
    for dtype in ("b", "u8", "i32", "i64"):
        case("min", dtype, [In([2, 5], dtype)], torch.min)
        case("prod", dtype, [In([2, 5], dtype)], torch.prod)
    case("min", "nan", [In([4], values=[1, nan, 0, 2])], torch.min)
    case("min", "ties", [In([5], values=[1, 0, 3, 0, 0])], torch.min)
    case("min", "infinities", [In([3], values=[inf, inf, inf])], torch.min, gradients=False)
    for d, keep in ((0, False), (1, False), (2, True), (-1, False), (-3, True)):
        case("min_dim", f"{d} {keep}", [In([2, 3, 4], distinct=True)], min_dim(d, keep), [int(keep), d])
        case("argmin", f"{d} {keep}", [In([2, 3, 4], distinct=True)], lambda a: torch.argmin(a, d, keep), [int(keep), d])
        case("prod_dim", f"{d} {keep}", [In([2, 3, 4])], lambda a: torch.prod(a, d, keep), [int(keep), d])
    for op, fn in (("min_dim", min_dim(1, False)), ("argmin", lambda a: torch.argmin(a, 1))):
        case(op, "first of ties", [In([3, 4], values=[1, 3, 0, 0, 2, 2, 2, 2, 3, 2, 2, 3])], fn, [0, 1])
        case(op, "nan", [In([2, 4], values=[1, nan, 9, nan, -inf, -inf, inf, 0])], fn, [0, 1])
        case(op, "transposed", [In([3, 4], views="t:0,1", distinct=True)], fn, [0, 1])
        case(op, "empty kept", [In([0, 3])], fn, [0, 1])
        if op == "min_dim":
            case(op, "bool", [In([2, 2], "b", values=[True, False, True, True])], fn, [0, 1])
        case(op, "bytes", [In([2, 2], "u8", values=[200, 100, 3, 3])], fn, [0, 1])
        case(op, "integers", [In([2, 2], "i64", values=[-2, -1, -3, -3])], fn, [0, 1])
        case(op, "long", [In([2, 60], distinct=True, low=-9, high=9)], fn, [0, 1])
    case("prod", "empty", [In([0])], torch.prod)
    case("prod", "long", [In([67], values=[1 if i % 9 else [-2, 0.5][i // 9 % 2] for i in range(67)])], torch.prod)
    for zeros in ([], [2], [1, 3]):
        values = [0 if i in zeros else i - 2.5 for i in range(5)]
        case("prod", f"zeros {len(zeros)}", [In([5], values=values)], torch.prod)
    case("prod", "not finite", [In([3], values=[inf, 2, 1])], torch.prod)
    case("prod", "nan", [In([3], values=[nan, 2, 1])], torch.prod)
    case("prod", "nan and zero", [In([3], values=[nan, 0, 1])], torch.prod, gradients=False)
    zeros = [1, 2, 3, 0, 2, 3, 0, 0, 3, 0, 0, 0]
    case("prod_dim", "zeros in rows", [In([4, 3], values=zeros)], lambda a: torch.prod(a, 1), [0, 1])
    case("prod_dim", "zeros in columns", [In([4, 3], values=zeros)], lambda a: torch.prod(a, 0), [0, 0])
    case("prod_dim", "transposed", [In([3, 4], views="t:0,1")], lambda a: torch.prod(a, 1), [0, 1])
    case("prod_dim", "empty reduced", [In([0, 3])], lambda a: torch.prod(a, 0), [0, 0])
    case("prod_dim", "empty kept", [In([0, 3])], lambda a: torch.prod(a, 1), [0, 1])
    case("prod_dim", "integers", [In([3, 3], "i32")], lambda a: torch.prod(a, 1), [0, 1])


def truths():
    for name, fn in (("any", torch.any), ("all", torch.all)):
        for dtype in CODES:
            for k, values in enumerate(([0, 0, 0], [0, 1, 0], [1, 1, 1])):
                case(name, f"{dtype} {k}", [In([3], dtype, values=values)], fn)
            case(name, f"{dtype} empty", [In([0], dtype, values=[])], fn)
        case(name, "not finite", [In([4], values=[0, nan, -0.0, inf])], fn)
        case(name, "below zero", [In([2], values=[-0.0, 0])], fn)
        case(name, "zero-dim", [In([], "i64", values=[3])], fn)
        over_dims(name + "_dims", fn, dtype="b")
        over_dims(name + "_dims", lambda a, d, keep: fn(a, d, keep), low=-0.25, high=0.25)
    for dtype in CODES:
        case("count_nonzero", dtype, [In([2, 5], dtype)], torch.count_nonzero)
    case("count_nonzero", "not finite", [In([4], values=[0, nan, -0.0, inf])], torch.count_nonzero)
    for d in ([0], [0, 2]):
        case("count_nonzero_dims", f"{d}", [In([2, 3, 2], low=-0.5, high=0.5)], lambda a: torch.count_nonzero(a, d), [0, *d])


def spreads():
    for name, fn in (("var", torch.var), ("std", torch.std)):
        for correction in (1, 0, 0.5, 3):
            case(name, f"{correction}", [In([9])], lambda a: fn(a, correction=correction), [correction])
            case(name, f"transposed {correction}", [In([3, 2], views="t:0,1")], lambda a: fn(a, correction=correction), [correction])
        case(name, "empty", [In([0])], fn, [1], gradients=False)
        case(name, "one", [In([1])], fn, [1])
        case(name, "equals", [In([3], values=[2, 2, 2])], fn, [1])
        case(name, "large", [In([4], values=[4096, 4096.25, 4095.75, 4096.5])], fn, [1])
        case(name, "nan", [In([3], values=[1, nan, 2])], fn, [1])
        case(name, "infinity", [In([3], values=[1, inf, 2])], fn, [1])
        case(name, "nothing left", [In([2], values=[1, 2])], lambda a: fn(a, correction=2), [2])
        for correction in (1, 0):
            over_dims(name + "_dims", lambda a, d, keep: fn(a, d, correction=correction, keepdim=keep), [correction])


def vector_norms():
    def norm(order):
        return lambda a, d=None, keep=False: torch.linalg.vector_norm(a, order, d, keep)
    for order in (2, 1, inf, -inf, 3, 0.5, 1.5, -1, -2, 0):
        case("norm", f"{order}", [In([7], distinct=True)], norm(order), [order])
        case("norm", f"zeros {order}", [In([3], values=[0, 0, 0])], norm(order), [order])
        case("norm", f"some zeros {order}", [In([4], values=[0, 3, -3, 1])], norm(order), [order])
        case("norm", f"not finite {order}", [In([3], values=[1, inf, -2])], norm(order), [order], gradients=False)
        case("norm", f"nan {order}", [In([3], values=[1, nan, -2])], norm(order), [order], gradients=False)
        case("norm", f"transposed {order}", [In([3, 2], views="t:0,1", distinct=True)], norm(order), [order])
        if 0 <= order < inf:
            case("norm", f"empty {order}", [In([0])], norm(order), [order], gradients=False)
    for order in (2, 1, inf, -inf, 3):
        over_dims("norm_dims", norm(order), [order], empty=0 <= order < inf)
    case("dot", "plain", [In([7]), In([7])], torch.dot)
    case("dot", "strided", [In([7], views="s:0,1,7,2"), In([1], views="e:3")], torch.dot)
    case("dot", "long", [In([200]), In([200])], torch.dot)
    case("dot", "empty", [In([0]), In([0])], torch.dot)


def convolutions():
    acts = [lambda y: y, torch.relu, torch.sigmoid, torch.tanh]

    def one(name, x, w, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, act=0, bias=True, views="-", wviews="-"):
        """padding "same": args have -1."""
        inputs = [In(x, views=views, low=-1, high=1), In(w, views=wviews, low=-1, high=1)]
        inputs += [In([inputs[1].viewed(torch.zeros(w)).shape[0]])] if bias else []
        case("conv2d_more", name, inputs, lambda x, w, b=None: acts[act](F.conv2d(x, w, b, stride, padding, dilation, groups)),
             [*stride, *((-1, -1) if padding == "same" else padding), *dilation, groups, act])
    one("dilation", [1, 2, 6, 7], [3, 2, 2, 3], dilation=(2, 2))
    one("dilation apart", [2, 1, 7, 6], [2, 1, 3, 2], dilation=(3, 2), padding=(1, 2), act=1)
    one("dilation of one row", [1, 2, 4, 7], [2, 2, 1, 3], dilation=(5, 3))
    one("dilation and stride", [1, 2, 8, 9], [2, 2, 3, 2], dilation=(2, 3), stride=(2, 2), padding=(1, 1))
    one("dilation 4, stride 6", [1, 1, 13, 12], [2, 1, 2, 2], dilation=(4, 6), stride=(6, 4), padding=(3, 2))
    one("dilation beyond", [1, 1, 3, 2], [1, 1, 2, 3], dilation=(7, 5), padding=(4, 6))
    one("groups", [2, 4, 4, 3], [6, 2, 2, 2], groups=2)
    one("groups, stride", [1, 6, 5, 5], [3, 2, 3, 3], groups=3, stride=(2, 1), padding=(1, 0), act=3)
    one("groups, dilation", [1, 4, 6, 5], [4, 2, 2, 2], groups=2, dilation=(3, 2), padding=(1, 1), bias=False)
    one("depthwise", [2, 3, 4, 5], [3, 1, 3, 3], groups=3, padding=(1, 1))
    one("depthwise, stride", [1, 4, 6, 5], [4, 1, 3, 2], groups=4, stride=(2, 3), padding=(1, 1), act=1)
    one("depthwise, dilation", [1, 3, 7, 6], [3, 1, 3, 2], groups=3, dilation=(2, 3), padding=(2, 1), bias=False)
    one("depthwise, dilation, stride", [1, 2, 8, 7], [2, 1, 2, 3], groups=2, dilation=(3, 2), stride=(2, 2), padding=(2, 3))
    one("depthwise, more filters", [1, 3, 4, 4], [6, 1, 2, 3], groups=3, padding=(0, 1))
    one("depthwise, more filters, stride", [2, 2, 5, 4], [6, 1, 3, 2], groups=2, stride=(2, 2), padding=(1, 0), bias=False)
    one("depthwise, padding beyond", [1, 2, 2, 3], [2, 1, 2, 2], groups=2, padding=(3, 2))
    one("depthwise, many channels", [1, 40, 2, 2], [40, 1, 2, 1], groups=40, padding=(1, 0), bias=False)
    one("depthwise, nineteen", [1, 19, 2, 6], [19, 1, 1, 3], groups=19, padding=(0, 1))
    one("depthwise, last", [1, 3, 4, 4], [3, 1, 3, 3], groups=3, padding=(1, 1), views="cl", act=2)
    one("groups, last", [1, 4, 4, 4], [4, 2, 3, 3], groups=2, padding=(1, 1), views="cl")
    one("dilation, strided", [1, 2, 9, 10], [3, 2, 5, 3], dilation=(2, 1), views="s:2,0,9,2;s:3,1,10,3", wviews="s:2,0,5,2")
    one("same", [1, 2, 4, 5], [3, 2, 3, 3], padding="same")
    one("same, even", [1, 2, 4, 3], [2, 2, 2, 4], padding="same", act=1)
    one("same, dilation", [1, 1, 6, 7], [2, 1, 4, 2], padding="same", dilation=(1, 3))
    one("same, depthwise", [1, 3, 4, 4], [3, 1, 2, 3], padding="same", groups=3)
    one("no pictures", [0, 4, 4, 4], [4, 2, 3, 3], groups=2)
    one("no pictures, depthwise", [0, 4, 4, 4], [4, 1, 3, 3], groups=4)


def transposed():
    def one(name, x, w, stride=(1, 1), padding=(0, 0), more=(0, 0), groups=1, dilation=(1, 1), bias=True, views="-"):
        """args: stride and padding and output padding of rows, then of columns; groups; dilation."""
        inputs = [In(x, views=views, low=-1, high=1), In(w, low=-1, high=1)] + ([In([w[1] * groups])] if bias else [])
        case("conv_transpose2d", name, inputs,
             lambda x, w, b=None: F.conv_transpose2d(x, w, b, stride, padding, more, groups, dilation),
             [stride[0] * 100 + padding[0] * 10 + more[0], stride[1] * 100 + padding[1] * 10 + more[1], groups, *dilation])
    one("plain", [1, 2, 3, 4], [2, 3, 2, 3])
    one("stride", [2, 2, 2, 3], [2, 2, 3, 2], stride=(2, 3))
    one("padding", [1, 2, 4, 3], [2, 3, 3, 3], stride=(2, 2), padding=(1, 1))
    one("output padding", [1, 2, 3, 3], [2, 2, 3, 3], stride=(3, 2), padding=(1, 0), more=(2, 1))
    one("output padding below the dilation", [1, 2, 3, 3], [2, 2, 2, 3], stride=(1, 2), padding=(1, 1), more=(2, 2), dilation=(3, 3))
    one("dilation", [1, 2, 3, 4], [2, 2, 2, 2], dilation=(3, 2), bias=False)
    one("groups", [1, 4, 3, 3], [4, 3, 2, 2], groups=2, stride=(2, 2))
    one("depthwise", [1, 3, 3, 4], [3, 1, 3, 3], groups=3, stride=(2, 2), padding=(1, 1), more=(1, 1))
    one("depthwise, more filters", [1, 2, 3, 3], [2, 2, 2, 3], groups=2)
    one("one by one", [2, 3, 2, 2], [3, 2, 1, 1])
    one("last", [1, 3, 3, 2], [3, 4, 2, 2], stride=(2, 2), views="cl")
    one("padding beyond", [1, 1, 3, 3], [1, 2, 2, 2], padding=(1, 1))
    one("no pictures", [0, 2, 3, 3], [2, 3, 2, 2])


def rows_of_samples():
    def one(name, x, w, stride=1, padding=0, dilation=1, groups=1, act=0, bias=True, views="-"):
        inputs = [In(x, views=views, low=-1, high=1), In(w, low=-1, high=1)] + ([In([w[0]])] if bias else [])
        acts = [lambda y: y, torch.relu]
        case("conv1d", name, inputs, lambda x, w, b=None: acts[act](F.conv1d(x, w, b, stride, padding, dilation, groups)),
             [stride, -1 if padding == "same" else padding, dilation, groups, act])
    one("plain", [2, 2, 7], [3, 2, 3])
    one("stride", [1, 2, 9], [2, 2, 4], stride=3, padding=2, act=1)
    one("dilation", [1, 3, 10], [2, 3, 3], dilation=4, padding=1, bias=False)
    one("groups", [2, 4, 6], [4, 2, 3], groups=2)
    one("depthwise", [1, 5, 8], [5, 1, 4], groups=5, padding=3)
    one("same", [1, 2, 6], [2, 2, 4], padding="same", dilation=3)
    one("turned", [1, 8, 2], [3, 2, 3], views="t:1,2")
    one("no rows", [0, 2, 5], [3, 2, 3])


# --- losses with options ---

REDUCTIONS = "mean", "sum", "none", "batchmean"


def pair_losses():
    def shapes(**kinds):
        return (("plain", [In([2, 3], **kinds), In([2, 3], **kinds)]), ("transposed", [In([3, 2], views="t:0,1", **kinds), In([2, 3], **kinds)]),
                ("expanded", [In([1, 3], views="e:2,3", **kinds), In([2, 3], **kinds)]), ("zero-dim", [In([], **kinds), In([], **kinds)]),
                ("empty", [In([0, 3], **kinds), In([0, 3], **kinds)]),
                ("channels last", [In([1, 2, 2, 2], views="cl", **kinds), In([1, 2, 2, 2], **kinds)]))
    parted = {"mse_loss": [0], "l1_loss": [0], "huber_loss": [1, 0.5, 2.5], "smooth_l1_loss": [1, 0, 0.25, 2]}
    for name, numbers in parted.items():
        for number in numbers:
            more = {"huber_loss": {"delta": number}, "smooth_l1_loss": {"beta": number}}.get(name, {})
            for r in range(3):
                for laid, inputs in shapes():
                    case(name, f"{laid} {number} {REDUCTIONS[r]}", inputs,
                         lambda a, b: getattr(F, name)(a, b, reduction=REDUCTIONS[r], **more), [r, number])
    case("huber_loss", "large", [In([3], values=[1000, -1000, 0]), In([3], values=[0, 0.5, 0])], lambda a, b: F.huber_loss(a, b, delta=1.5), [0, 1.5])
    case("l1_loss", "equal", [In([3], values=[1, 2, 3]), In([3], values=[1, 0, 3])], F.l1_loss, [0, 0])
    for is_log in (0, 1):
        for r in range(4):
            def kl(a, b):
                return F.kl_div(a, b, reduction=REDUCTIONS[r], log_target=bool(is_log))
            for laid, inputs in shapes(**({} if is_log else {"low": 0.25, "high": 3})):
                if laid != "zero-dim" or r < 3:
                    case("kl_div", f"{laid} {is_log} {REDUCTIONS[r]}", inputs, kl, [r, is_log])
    case("kl_div", "zeros", [In([3]), In([3], values=[0, 0.5, -1])], lambda a, b: F.kl_div(a, b.detach(), reduction="none"), [2, 0])


def binary_losses():
    def draw(shape, views="-"):
        n = 1
        for d in shape:
            n *= d
        return In(shape, values=[rng.randint(1, 15) / 16 for _ in range(n)], views=views)
    def bce(name, fn, label, x, y, r, weight=None, pos=None, flags=""):
        extra = [w for w in (weight, pos) if w]
        def call(a, b, *w):
            w = [v.detach() for v in w]
            more = {"weight": w[0]} if weight else {}
            return fn(a, b, reduction=REDUCTIONS[r], **more, **({"pos_weight": w[-1]} if pos else {}))
        case(name, f"{label} {REDUCTIONS[r]}", [x, y, *extra], call, [r, int(bool(weight)), int(bool(pos))], flags)
    for r in range(3):
        for name, fn, x in (("fn_bce", F.binary_cross_entropy, draw), ("fn_bce_with_logits", F.binary_cross_entropy_with_logits, In)):
            bce(name, fn, "plain", x([2, 3]), draw([2, 3]), r)
            bce(name, fn, "transposed", x([3, 2], views="t:0,1"), draw([2, 3]), r)
            bce(name, fn, "weight", x([2, 3]), draw([2, 3]), r, weight=In([3], low=1, high=4))
            bce(name, fn, "weight of each", x([2, 3]), draw([2, 3]), r, weight=In([2, 3], low=1, high=4))
            bce(name, fn, "weight of rows", x([2, 3]), draw([2, 3]), r, weight=In([2, 1], low=1, high=4))
            bce(name, fn, "zero-dim", x([]), draw([]), r)
            bce(name, fn, "empty", x([0, 2]), draw([0, 2]), r)
        logits = F.binary_cross_entropy_with_logits
        bce("fn_bce", F.binary_cross_entropy, "cut", In([4], values=[0, 1, 0, 1]), In([4], values=[0, 1, 1, 0]), r, flags="f32")
        bce("fn_bce_with_logits", logits, "pos", In([2, 3]), draw([2, 3]), r, pos=In([3], low=1, high=4))
        bce("fn_bce_with_logits", logits, "both", In([2, 3]), draw([2, 3]), r, weight=In([2, 1], low=1, high=4), pos=In([3], low=1, high=4))
        bce("fn_bce_with_logits", logits, "large", In([4], values=[12, -12, 90, -90]), In([4], values=[1, 0, 0, 1]), r, flags="f32")


def class_losses():
    def labels(values, shape=None, views="-"):
        return In([len(values)] if shape is None else shape, "i64", views=views, values=values)
    def classes(name, label, x, y, r=0, ignore=None, weight=None, smoothing=0.0):
        def call(a, b, *w):
            more = {"weight": w[0].detach()} if weight else {}
            more |= {} if ignore is None else {"ignore_index": ignore}
            more |= {"label_smoothing": smoothing} if smoothing else {}
            fn = F.nll_loss if name == "fn_nll_loss" else F.cross_entropy
            return fn(a, b, reduction=REDUCTIONS[r], **more)
        case(name, f"{label} {REDUCTIONS[r]}", [x, y, *([weight] if weight else [])], call,
             [r, int(ignore is not None), ignore or 0, smoothing])
    weights = lambda n: In([n], low=0.25, high=3)
    for name in ("fn_nll_loss", "fn_cross_entropy"):
        for r in range(3):
            classes(name, "plain", In([3, 4]), labels([0, 3, 1]), r)
            classes(name, "ignored by default", In([4, 3]), labels([0, -100, 1, -100]), r)
            classes(name, "ignored", In([4, 3]), labels([0, 2, 1, 2]), r, ignore=2)
            classes(name, "ignored zero", In([4, 3]), labels([0, 2, 1, 0]), r, ignore=0)
            classes(name, "ignored below zero", In([3, 40]), labels([39, -1, 17]), r, ignore=-1)
            classes(name, "all ignored", In([2, 3]), labels([1, 1]), r, ignore=1)
            classes(name, "weights", In([3, 4]), labels([0, 3, 1]), r, weight=weights(4))
            classes(name, "weights and ignored", In([4, 3]), labels([0, 2, 1, 2]), r, ignore=2, weight=weights(3))
            classes(name, "places", In([2, 3, 2]), labels([0, 2, 1, 2], [2, 2]), r)
            classes(name, "pictures", In([2, 3, 2, 2], views="cl" if name == "fn_cross_entropy" else "-"), labels([0, 2, 1, 2, -100, 1, 1, 0], [2, 2, 2]), r)
            classes(name, "places and weights", In([2, 3, 2]), labels([0, 2, -100, 2], [2, 2]), r, weight=weights(3))
            classes(name, "transposed", In([4, 3], views="t:0,1"), labels([0, 3, 1]), r)
            classes(name, "strided labels", In([2, 4]), labels([1, 9, 2, 9], views="s:0,0,4,2"), r)
            classes(name, "one sample", In([4]), labels([2], []), r)
            classes(name, "empty", In([0, 3]), labels([], [0]), r)
            classes(name, "no places", In([2, 3, 0]), labels([], [2, 0]), r)
    classes("fn_nll_loss", "minus infinity", In([2, 3], values=[-inf, 1, 2, 0, -inf, 1]), labels([2, 0]))
    name = "fn_cross_entropy"
    for r in range(3):
        for s in (0.1, 1.0):
            classes(name, f"smoothed {s}", In([3, 4]), labels([0, 3, 1]), r, smoothing=s)
            classes(name, f"smoothed and ignored {s}", In([4, 3]), labels([0, 2, 1, 2]), r, ignore=2, smoothing=s)
            classes(name, f"all {s}", In([2, 3, 2]), labels([0, 2, -100, 1], [2, 2]), r, weight=weights(3), smoothing=s)
        for s in (0.0, 0.25):
            soft = lambda shape: In(shape, low=0.25, high=1)
            classes(name, f"probabilities {s}", In([2, 3]), soft([2, 3]), r, smoothing=s)
            classes(name, f"probabilities and weights {s}", In([2, 3, 2]), soft([2, 3, 2]), r, weight=weights(3), smoothing=s)
            classes(name, f"probabilities of one {s}", In([3]), soft([3]), r, smoothing=s)


# --- pooling to sizes, other sizes, places ---

PLACED = ("plain", [2, 2, 5, 7], "-"), ("channels last", [1, 3, 5, 4], "cl"), ("transposed", [1, 2, 4, 5], "t:2,3"), ("expanded", [1, 1, 4, 3], "e:1,2,4,3"), \
    ("no pictures", [0, 2, 4, 5], "-")


def pools_with_options():
    windows = ((2, 2, 2, 2, 0, 0), (3, 3, 2, 2, 1, 1), (3, 2, 2, 3, 1, 0), (2, 3, 3, 2, 0, 1), (5, 4, 4, 3, 2, 2), (5, 5, 2, 2, 0, 0))
    for kh, kw, sh, sw, ph, pw in windows:
        for ceil in (0, 1):
            for laid, shape, views in PLACED:
                if kw == 5 and (not ceil or laid == "expanded"):
                    continue
                label, args = f"{laid} {kh}{kw}{sh}{sw}{ph}{pw} {ceil}", [kh, kw, sh, sw, ph, pw, ceil]
                case("max_pool2d_ceil", label, [In(shape, views=views, low=-8, high=8, distinct=True)],
                     lambda a: F.max_pool2d(a, (kh, kw), (sh, sw), (ph, pw), ceil_mode=bool(ceil)), args + [0])
                for exclude in (0, 1):
                    case("avg_pool2d_ceil", f"{label} {exclude}", [In(shape, views=views, low=0.25, high=4)],
                         lambda a: F.avg_pool2d(a, (kh, kw), (sh, sw), (ph, pw), bool(ceil), not exclude), args + [exclude])


def adaptive_pools():
    for rows, columns in ((1, 1), (2, 2), (3, 5), (5, 1), (0, 3), (7, 9), (4, 0)):
        for laid, shape, views in PLACED:
            if rows * columns * shape[0] * shape[1] <= 256:
                size = (rows or None, columns or None)
                case("adaptive_avg_pool2d", f"{laid} {rows} {columns}", [In(shape, views=views, low=0.25, high=4)], lambda a: F.adaptive_avg_pool2d(a, size), [rows, columns])
                case("adaptive_max_pool2d", f"{laid} {rows} {columns}", [In(shape, views=views, low=-8, high=8, distinct=True)],
                     lambda a: F.adaptive_max_pool2d(a, size), [rows, columns])
    case("adaptive_avg_pool2d", "infinity", [In([1, 1, 1, 5], values=[inf, 1, 2, 3, -inf])], lambda a: F.adaptive_avg_pool2d(a, (1, 3)), [1, 3])
    case("adaptive_max_pool2d", "nan", [In([1, 1, 1, 5], values=[1, nan, 2, 3, 2])], lambda a: F.adaptive_max_pool2d(a, (1, 3)), [1, 3], gradients=False)
    case("adaptive_max_pool2d", "ties", [In([1, 1, 1, 5], values=[2, 2, 2, 2, 2])], lambda a: F.adaptive_max_pool2d(a, (1, 3)), [1, 3])


def upsampled():
    for mode, corners in ((0, 0), (1, 0), (1, 1)):
        more = {"mode": ["nearest", "bilinear"][mode]} | ({"align_corners": bool(corners)} if mode else {})
        for laid, shape, views in PLACED:
            for size in ((1, 1), (5, 8), (3, 2), (6, 7)):
                if size[0] * size[1] * shape[0] * shape[1] <= 256:
                    case("upsample", f"{laid} {size} {mode} {corners}", [In(shape, views=views, low=0.25, high=4)], lambda a: F.interpolate(a, size=size, **more),
                         [*size, 0, 0, mode, corners])
        for scale in ((2, 2), (1.5, 2.5), (0.4, 0.75), (1, 3)):
            for shape in ([1, 2, 3, 4], [1, 1, 1, 2]):
                if shape[2] * scale[0] >= 1:
                    case("upsample", f"{scale} of {shape} {mode} {corners}", [In(shape, low=0.25, high=4)], lambda a: F.interpolate(a, scale_factor=scale, **more),
                         [0, 0, *scale, mode, corners])


def grid_sampled():
    def grid(shape, views="-", beyond=2):
        n = 1
        for d in shape:
            n *= d
        return In(shape, values=[rng.randint(-16 * beyond, 16 * beyond) / 16 + 1 / 64 for _ in range(n)], views=views)
    for nearest in (0, 1):
        for padding, name in enumerate(("zeros", "border", "reflection")):
            for corners in (0, 1):
                def fn(a, g):
                    return F.grid_sample(a, g.detach() if nearest else g, ["bilinear", "nearest"][nearest], name, bool(corners))
                args = [nearest, padding, corners]
                label = f"{name} {nearest} {corners}"
                case("grid_sample", f"plain {label}", [In([2, 2, 3, 4]), grid([2, 3, 2, 2])], fn, args)
                case("grid_sample", f"channels last {label}", [In([1, 3, 4, 3], views="cl"), grid([1, 3, 2, 2])], fn, args)
                case("grid_sample", f"transposed {label}", [In([1, 2, 4, 3], views="t:2,3"), grid([1, 2, 3, 2], views="t:1,2")], fn, args)
                case("grid_sample", f"far {label}", [In([1, 1, 3, 5]), grid([1, 2, 3, 2], beyond=8)], fn, args)
                case("grid_sample", f"one place {label}", [In([1, 2, 1, 1]), grid([1, 2, 2, 2])], fn, args)
                case("grid_sample", f"empty {label}", [In([1, 2, 3, 3]), grid([1, 0, 2, 2])], fn, args)
                case("grid_sample", f"no pictures {label}", [In([0, 2, 3, 3]), grid([0, 1, 2, 2])], fn, args)


def bounded():
    functions({"relu6": F.relu6})
    case("relu6", "gradient at the bounds", [In([6], values=[0, -0.0, 6, 5.96875, 6.03125, -1])], F.relu6)
    case("relu6", "integers beyond", [In([4], "i32", values=[-5, 6, 7, 2**31 - 1])], F.relu6)


if __name__ == "__main__":
    for part in (arith, unary, compare, reduce, views, copies, join, products, pictures, networks, more_unary,
                 still_more_unary, pairs, arrange):
        part()
    there = rng.getstate()
    for part in (attention, norms, rows, elements, arrange_more, order, least_and_products, truths, spreads, vector_norms,
                 convolutions, transposed, rows_of_samples, pair_losses, binary_losses, class_losses, pools_with_options,
                 adaptive_pools, upsampled, grid_sampled, bounded):
        rng.setstate(there)  # so that a part is the same whatever is added in front of it
        part()
