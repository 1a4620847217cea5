"""What is asked: every op with every dtype, at shapes where rules differ, and programs drawn from a seed.

A case: "in", tensors of a dtype, shape, values and views (which are ops, applied to it first); "steps", ops of tensors
by number, those of "in" first and each result after them; "grad", whether gradients of the first result of the last
step are compared too.
"""
DTYPES = ["bool", "u8", "i32", "i64", "f16", "bf16", "f32", "f64"]
FLOATS = DTYPES[4:]
SPECIAL = {
    "bool": [0, 1], "u8": [0, 1, 3, 200, 255], "i32": [0, 1, -1, 7, 2**31 - 1, -2**31, -5],
    "i64": [0, -1, 3, 2**40 + 1, 2**53 + 1, -2**63, 2**63 - 1, -7],
    "f16": [0.0, 1.0, -1.5, 2.5, 65504.0, float("inf"), float("-inf"), float("nan"), -0.0, 300.0, -300.0],
}
SPECIAL["bf16"] = [0.0, 1.0, -1.5, 2.5, 2.0**31, 2.0**64, float("inf"), float("-inf"), float("nan"), -0.0, -300.0]
SPECIAL["f32"] = SPECIAL["bf16"] + [2.0**31 - 128, -2.0**31, -2.0**31 - 256, 2.0**63, -2.0**63, 1e30, 255.5, 256.0, -0.5, 3e9]
SPECIAL["f64"] = SPECIAL["f32"] + [1e300, 2.0**31 - 0.5, -2.0**31 - 0.5, 2.0**53 + 2]


def size(shape):
    n = 1
    for k in shape:
        n *= k
    return n


def plain(dtype, n, at=0):
    """Small numbers that every dtype of the kind has, different in every place."""
    if dtype == "bool":
        return [(i * 5 + at) % 3 > 0 for i in range(n)]
    if dtype not in FLOATS:
        return [(i * 7 + at) % 11 + (0 if dtype == "u8" else -4) for i in range(n)]
    return [((i * 13 + at * 5) % 33 - 16) / 8 for i in range(n)]


def special(dtype, n, at=0):
    values = SPECIAL[dtype]
    return [(bool if dtype == "bool" else lambda v: v)(values[(i + at) % len(values)]) for i in range(n)]


def tensor(dtype, shape, views=(), values=plain, at=0):
    return {"dtype": dtype, "shape": list(shape), "values": values(dtype, size(shape), at), "views": list(views)}


def case(name, inputs, op, grad=False, **arguments):
    return {"name": name, "in": inputs, "steps": [[op, list(range(len(inputs))), arguments]], "grad": grad}


TURNED = ["transpose", {"dims": [0, 1]}]
PLACES = [((), []), ((1,), []), ((0,), []), ((5,), []), ((2, 3), []), ((2, 0, 3), []), ((1, 1, 4), []), ((3, 2), [TURNED]),
          ((3, 6), [["slice", {"dim": 1, "start": 1, "stop": 6, "step": 2}]]), ((3, 1), [["expand", {"shape": [2, 3, 4]}]])]


UNARY = ("neg exp log sqrt relu relu6 sigmoid tanh erf silu gelu gelu_tanh sum mean max min prod contiguous clone "
         "abs square rsqrt sin cos softplus floor round sign").split()
TRUTHS = "isnan isfinite logical_not bitwise_not any all count_nonzero".split()


def unary():
    for op in UNARY + TRUTHS:
        for dtype in DTYPES:
            for shape, views in PLACES:
                yield case(op, [tensor(dtype, shape, views)], op, dtype in FLOATS and op in UNARY)
            yield case(op, [tensor(dtype, (len(SPECIAL[dtype]),), values=special)], op)


ORDERS = (2, 1, 0, 3, 0.5, -1, float("inf"), -float("inf"))


def along():
    for dtype in DTYPES:
        for shape, views in PLACES:
            for dim in (0, -1, 1, -2, 3):
                t = [tensor(dtype, shape, views)]
                grad = dtype in FLOATS
                for op in "softmax log_softmax".split():
                    yield case(op, t, op, grad, dim=dim)
                for op in "squeeze unsqueeze flatten_from".split():
                    yield case(op, t, op, grad, dim=dim)
                for keepdim in (False, True):
                    yield case("max_dim", t, "max_dim", grad, dim=dim, keepdim=keepdim)
                    yield case("argmax", t, "argmax", dim=dim, keepdim=keepdim)
                    yield case("min_dim", t, "min_dim", grad, dim=dim, keepdim=keepdim)
                    yield case("argmin", t, "argmin", dim=dim, keepdim=keepdim)
                    yield case("prod_dim", t, "prod_dim", grad, dim=dim, keepdim=keepdim)
            for dims in ([], [0], [-1], [0, 1], [0, -1], [1, 0], [2, 0], [0, 0]):
                for op in ("sum_dims", "mean_dims"):
                    yield case(op, [tensor(dtype, shape, views)], op, dtype in FLOATS, dims=dims, keepdim=len(dims) == 1)
                for op in ("any_dims", "all_dims"):
                    yield case(op, [tensor(dtype, shape, views)], op, dims=dims, keepdim=len(dims) == 1)
                yield case("count_nonzero_dims", [tensor(dtype, shape, views)], "count_nonzero_dims", dims=dims)
                for op, values in (("var_dims", (0, 1, 1.5)), ("std_dims", (0, 1)), ("norm_dims", ORDERS)):
                    for value in values:
                        yield case(op, [tensor(dtype, shape, views)], op, dtype in FLOATS and value != 0, value=value, dims=dims,
                                   keepdim=len(dims) == 1)
        many = [tensor(dtype, (len(SPECIAL[dtype]),), values=special)]
        for op in ("softmax", "log_softmax"):
            yield case(op, many, op, dim=0)
        yield case("argmax", many, "argmax", dim=0, keepdim=False)
        yield case("max_dim", many, "max_dim", dim=0, keepdim=False)
        yield case("argmin", many, "argmin", dim=0, keepdim=False)
        for op in ("min", "prod", "any", "all", "count_nonzero"):
            yield case(op, many, op)
        for value in ORDERS:
            yield case("norm", many, "norm", value=value)
        for op in ("var", "std"):
            yield case(op, many, op, value=1)


PAIRS = [((), ()), ((), (3,)), ((3,), ()), ((1,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0,), (1,)), ((0,), ()),
         ((2, 3), (2, 3)), ((2, 3), (3, 2)), ((2, 0), (2, 1)), ((1, 2, 3), (2, 3))]


PAIRED = ("add sub mul div eq ne lt le gt ge mse bce_with_logits minimum maximum pow "
          "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor").split()


def binary():
    for a in DTYPES:
        for b in DTYPES:
            for op in PAIRED:
                for x, y in PAIRS:
                    grad = (a in FLOATS or b in FLOATS) and op in "add sub mul div minimum maximum pow mse bce_with_logits".split()
                    right = tensor(b, y, at=1)
                    left = tensor(a, x)
                    if op == "div" and grad:
                        right["values"] = [v or 1 for v in right["values"]]
                    if op == "pow" and grad:
                        left["values"] = [abs(v) or 1 for v in left["values"]]
                    yield case(op, [left, right], op, grad)
                n = len(SPECIAL[a]) * len(SPECIAL[b])
                x, y = special(a, n), [special(b, 1, i // len(SPECIAL[a]))[0] for i in range(n)]
                if op not in ("mse", "bce_with_logits"):
                    yield case(op, [{"dtype": a, "shape": [n], "values": x, "views": []},
                                    {"dtype": b, "shape": [n], "values": y, "views": []}], op)
            for c in DTYPES if a == b else ["bool"]:
                for x, y in PAIRS:
                    yield case("where", [tensor(c, (3,)), tensor(a, x), tensor(b, y, at=1)], "where", a in FLOATS and c == "bool")


NUMBERS = [0, 1, 2, -3, 0.5, -2.5, 300, -1, -300, 2**31, 2**53, 1e10, 1e30, 1e300, -1e30, float("inf"), float("nan"), 1e-3]


def numbers():
    for dtype in DTYPES:
        for value in NUMBERS:
            for op in "add_scalar sub_scalar mul_scalar div_scalar pow_scalar leaky_relu elu".split():
                for t in (tensor(dtype, (2, 3)), tensor(dtype, ()), tensor(dtype, (len(SPECIAL[dtype]),), values=special)):
                    yield case(op, [t], op, value=value)
            for other in NUMBERS[:8] + [float("-inf"), float("inf")]:
                yield case("clamp", [tensor(dtype, (len(SPECIAL[dtype]),), values=special)], "clamp", low=other, high=value)
            yield case("clamp", [tensor(dtype, (2, 3))], "clamp", dtype in FLOATS, low=value, high=float("inf"))
            yield case("fill", [tensor(dtype, (2, 3))], "fill", value=value)
            yield case("full", [], "full", shape=[2], value=value, dtype=dtype)
            yield case("saxpy", [tensor(dtype, (3,)), tensor(dtype, (3,), at=2)], "saxpy", value=value)
        for start, end, step in ((0, 5, 1), (0, 2, 0.5), (0.5, 5, 1), (5, 0, -2), (0, 5, -1), (0, 0, 1), (0, 1, 0.1), (-3, 3, 1.5),
                                 (0, 5, 0), (250, 260, 1), (2**31 - 2, 2**31 + 2, 1), (0, float("nan"), 1), (1, 2.5, 1), (-0.7, 2, 1)):
            yield case("arange", [], "arange", start=start, end=end, step=step, dtype=dtype)


def casts():
    for a in DTYPES:
        for b in DTYPES:
            for shape, views in PLACES:
                yield case("cast", [tensor(a, shape, views)], "cast", a in FLOATS and b in FLOATS, dtype=b)
            yield case("cast", [tensor(a, (len(SPECIAL[a]) * 3,), values=special)], "cast", dtype=b)
            for x, y in PAIRS:
                yield case("copy", [tensor(a, x), tensor(b, y, at=1)], "copy")
            yield case("copy", [tensor(a, (len(SPECIAL[b]),)), tensor(b, (len(SPECIAL[b]),), values=special)], "copy")
            yield case("saxpy", [tensor(a, (3,)), tensor(b, (3,))], "saxpy", value=2)
            yield case("saxpy", [tensor(a, (2, 3)), tensor(b, (3,))], "saxpy", value=2)
        for shape in ((3, 1), (0, 1)):
            wide = tensor(a, shape, [["expand", {"shape": [shape[0], 3]}]])
            yield case("copy", [wide, tensor(a, (3,))], "copy")
            yield case("fill", [wide], "fill", value=1)


def views():
    for dtype in ("f32", "i64", "bool"):
        grad = dtype in FLOATS
        for shape, before in PLACES:
            t = [tensor(dtype, shape, before)]
            for to in ([], [-1], [0], [1], [1, -1], [0, -1], [6], [3, 2], [2, 3], [-1, -1], [2, -1, 2], [9]):
                yield case("reshape", t, "reshape", grad, shape=to)
                yield case("expand", t, "expand", grad, shape=to)
                yield case("permute", t, "permute", grad, shape=to)
            for dims in ([0, 0], [0, 1], [-1, 0], [2, 0], [0, 5]):
                yield case("transpose", t, "transpose", grad, dims=dims)
            for dim, start, stop, step in ((0, 0, 2, 1), (0, 1, 9, 2), (-1, -2, 2**62, 1), (0, 3, 1, 1), (1, 0, 1, 1), (0, 0, 2, 0),
                                           (0, -9, -1, 1), (0, 0, 2, -1)):
                yield case("slice", t, "slice", grad, dim=dim, start=start, stop=stop, step=step)


def picking():
    for dtype in DTYPES:
        for index in DTYPES[:5]:
            for shape, before in PLACES:
                for dim in (0, -1, 1):
                    for places in ((2,), (0,), (), (1, 2), (1,)):
                        yield case("index_select", [tensor(dtype, shape, before), tensor(index, places, values=lambda d, n, at: [0] * n)],
                                   "index_select", dtype in FLOATS, dim=dim)
        for other in DTYPES:
            for x, y in PAIRS:
                for dim in (0, -1, 1):
                    yield case("cat", [tensor(dtype, x), tensor(other, y, at=1)], "cat", dtype in FLOATS or other in FLOATS, dim=dim)
        for shape, before in PLACES:
            yield case("cat", [tensor(dtype, shape, before)], "cat", dim=0)


def by_index():
    """Indices within what there is: what is beyond is refused by both, on a GPU later."""
    some = lambda n: lambda d, count, at: [(3 * i + at) % max(n, 1) for i in range(count)]
    for dtype in DTYPES:
        grad = dtype in FLOATS
        for index in DTYPES[:5]:
            for shape, places in (((3, 2), (4,)), ((3, 2), (2, 2)), ((3, 2), ()), ((3, 2), (0,)), ((3,), (2,)), ((3, 0), (2,)), ((1, 1), (1, 1, 1))):
                at = tensor(index, places, values=some(shape[0]))
                yield case("embedding", [tensor(dtype, shape), at], "embedding", grad)
                yield case("embedding", [tensor(dtype, shape), at], "embedding", grad, padding=-1)
            for shape, places, rows in (((3, 2), (2,), (2, 2)), ((3, 2), (), (1, 2)), ((3, 2), (0,), (0, 2)), ((3,), (2,), (2,)), ((), (1,), ()),
                                        ((), (), ()), ((), (1,), (1,)), ((3, 2), (2,), (2, 1)), ((3, 2), (2,), (3, 2))):
                at = tensor(index, places, values=some(shape[0] if shape else 1))
                for op in ("index_add", "index_copy"):
                    yield case(op, [tensor(dtype, shape), at, tensor(dtype, rows, at=1)], op, grad, dim=0)
            for shape, places in (((3, 2), (3, 2)), ((3, 2), (1, 2)), ((3, 2), (5, 1)), ((3, 2), (0, 2)), ((3, 2), (3, 3)), ((3,), (2,)), ((), ()),
                                  ((), (1,)), ((3, 2), (2,)), ((0, 2), (0, 2)), ((3, 2), (2, 0))):
                at = tensor(index, places, values=some(shape[0] if shape else 1))
                yield case("gather", [tensor(dtype, shape), at], "gather", grad, dim=0)
                yield case("scatter_add", [tensor(dtype, shape), at, tensor(dtype, places, at=1)], "scatter_add", grad, dim=0)
                yield case("scatter_add", [tensor(dtype, shape), at, tensor(dtype, (4, 3), at=1)], "scatter_add", grad, dim=0)
            yield case("one_hot", [tensor(index, (2, 2), values=some(3))], "one_hot", classes=4)
        for other in DTYPES:
            rows = [tensor(dtype, (3, 2)), tensor("i64", (2,), values=some(3)), tensor(other, (2, 2), at=1)]
            yield case("index_add", rows, "index_add", dim=0)
            yield case("index_copy", rows, "index_copy", dim=0)
        for values in ((2, 2), (2,), (1, 2), (), (3, 2)):
            for accumulate in (False, True):
                rows = [tensor(dtype, (3, 2)), tensor("i64", (2,), values=lambda d, n, at: [-1, 1]), tensor(dtype, values, at=1)]
                yield case("index_put", rows, "index_put", grad, accumulate=accumulate)


def moved():
    for dtype in DTYPES:
        grad = dtype in FLOATS
        for shape, before in PLACES:
            t = [tensor(dtype, shape, before)]
            for dim in (0, -1, 1):
                yield case("cumsum", t, "cumsum", grad, dim=dim)
            for dims in ([], [0], [-1], [0, 1], [0, 0], [2]):
                yield case("flip", t, "flip", grad, dims=dims)
            for shifts, dims in (([1], []), ([1], [0]), ([-2, 5], [0, 1]), ([1], [0, 1]), ([], []), ([1], [3])):
                yield case("roll", t, "roll", grad, shifts=shifts, dims=dims)
            for times in ([2], [1, 2], [2, 0], [2, 1, 2], [], [-1]):
                yield case("repeat", t, "repeat", grad, dims=times)
                yield case("tile", t, "tile", grad, dims=times)
            for diagonal in (0, 1, -1, 5, -5):
                for op in ("tril", "triu"):
                    yield case(op, t, op, grad, diagonal=diagonal)
            for mode in ("constant", "reflect", "replicate"):
                for front, behind in (([1], [2]), ([0], [0]), ([1, 1], [0, 2]), ([-1], [1]), ([], [])):
                    for value in (0, 1.5, -1) if mode == "constant" else (0,):
                        yield case("pad", t, "pad", grad, before=front, after=behind, mode=mode, value=value)


def ordered():
    apart = lambda d, n, at: [i * 7 % n if d != "bool" else i % 2 for i in range(n)]  # no two are equal, but for bools
    for dtype in DTYPES:
        grad = dtype in FLOATS
        many = {"dtype": dtype, "shape": [3 * len(SPECIAL[dtype])], "values": special(dtype, 3 * len(SPECIAL[dtype])), "views": []}
        for down in (False, True):
            for op in ("sort", "argsort"):
                for shape, before in PLACES:
                    for dim in (0, -1, 1):
                        yield case(op, [tensor(dtype, shape, before)], op, grad and op == "sort", dim=dim, descending=down)
                yield case(op, [many], op, dim=0, descending=down)
            for shape, k, dim in (((5,), 2, 0), ((5,), 0, 0), ((5,), 6, 0), ((), 1, 0), ((), 0, 0), ((2, 3), 2, -1), ((3, 2), 1, 0), ((0, 2), 0, 0),
                                  ((2, 0), 1, 1), ((5,), -1, 0), ((5,), 1, 1)):
                if dtype != "bool":
                    yield case("topk", [tensor(dtype, shape, values=apart)], "topk", grad, k=k, dim=dim, descending=down)
            for x, v in (((4,), (3,)), ((4,), (2, 3)), ((4,), ()), ((2, 3), (2, 2)), ((2, 3), (3, 2)), ((), (2,)), ((0,), (2,)), ((3,), (0,))):
                line = tensor(dtype, x, values=lambda d, n, at: sorted(plain(d, n, at)) if len(x) < 2 else [i % 3 for i in range(n)])
                yield case("searchsorted", [line, tensor(dtype, v, at=1)], "searchsorted", right=down)
        for other in DTYPES:
            yield case("searchsorted", [tensor(dtype, (1,)), tensor(other, (3,), at=2)], "searchsorted", right=False)


def arranged():
    for a in DTYPES:
        for value in NUMBERS[:8]:
            for x, mask in (((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 1)), ((), ()), ((0, 2), (2,)), ((2,), (3,))):
                yield case("masked_fill", [tensor(a, x), tensor("bool", mask)], "masked_fill", a in FLOATS, value=value)
        for b in DTYPES:
            yield case("masked_fill", [tensor(a, (3,)), tensor(b, (3,))], "masked_fill", value=1)
            grad = a in FLOATS or b in FLOATS
            for x, y in PAIRS:
                yield case("outer", [tensor(a, x), tensor(b, y, at=1)], "outer", grad)
                yield case("dot", [tensor(a, x), tensor(b, y, at=1)], "dot", grad and a == b)
                for dim in (0, -1, 1, 2):
                    yield case("stack", [tensor(a, x), tensor(b, y, at=1)], "stack", grad, dim=dim)
            yield case("outer", [tensor(a, (3,)), tensor(b, (2,), at=1)], "outer", grad)
            yield case("dot", [tensor(a, (3,)), tensor(b, (3,), at=1)], "dot", grad and a == b)
            for c, x, y in (((3, 4), (3, 2), (2, 4)), ((4,), (3, 2), (2, 4)), ((), (3, 2), (2, 4)), ((3, 1), (3, 2), (2, 4)), ((4,), (3, 0), (0, 4)),
                            ((4,), (3,), (3, 4)), ((2, 3, 4), (3, 2), (2, 4)), ((3,), (3, 2), (2, 4)), ((3, 4), (3, 2), (3, 4))):
                yield case("addmm", [tensor(b, c, at=2), tensor(a, x), tensor(a, y, at=1)], "addmm", grad and a == b)


def products():
    shapes = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((), (3,)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
              ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (4, 3, 2)), ((3,), (2, 3, 2)), ((2, 2, 3), (3,)), ((2, 3), (2, 3)), ((0,), (0,))]
    for a in DTYPES:
        for b in DTYPES:
            for x, y in shapes:
                yield case("matmul", [tensor(a, x), tensor(b, y, at=1)], "matmul", a in FLOATS and a == b)
            for x, w in (((2, 3), (4, 3)), ((3,), (4, 3)), ((2, 2, 3), (4, 3)), ((0, 3), (4, 3)), ((2, 0), (4, 0)), ((2, 3), (0, 3)),
                         ((2, 3), (3,)), ((2, 3), (4, 2)), ((), (1, 1))):
                for bias in (None, (4,), (1,), (), (2, 4), (1, 4), (3,)):
                    if a != b and bias != (4,):
                        continue
                    inputs = [tensor(a, x), tensor(b, w, at=1)] + ([tensor(a, bias, at=2)] if bias is not None else [])
                    yield case("linear", inputs, "linear", a in FLOATS and a == b)
            yield case("cross_entropy", [tensor(a, (3, 4)), tensor(b, (3,), values=lambda d, n, at: [1] * n)], "cross_entropy", a in FLOATS)
        for x, y in (((4,), ()), ((0, 4), (0,)), ((3, 1), (3,)), ((3, 4), (2,)), ((2, 4, 3), (2, 3)), ((2, 0), (2,))):
            yield case("cross_entropy", [tensor(a, x), tensor("i64", y, values=lambda d, n, at: [0] * n)], "cross_entropy", a in FLOATS)


def pictures():
    for dtype in DTYPES:
        grad = dtype in FLOATS
        for x, w in (((2, 3, 5, 6), (4, 3, 3, 3)), ((0, 3, 5, 5), (4, 3, 3, 3)), ((3, 5, 5), (4, 3, 3, 3)), ((1, 3, 2, 2), (4, 3, 3, 3)),
                     ((1, 0, 5, 5), (4, 0, 3, 3)), ((1, 3, 5, 5), (0, 3, 3, 3)), ((1, 2, 5, 5), (4, 3, 3, 3)), ((1, 3, 5, 5), (4, 3, 1, 2))):
            for bias in (None, (4,), (1,), (2, 4), ()):
                for how in ({}, {"stride": 2, "padding": 1}):
                    inputs = [tensor(dtype, x), tensor(dtype, w, at=1)] + ([tensor(dtype, bias, at=2)] if bias is not None else [])
                    yield case("conv2d", inputs, "conv2d", grad, **how)
        for x, w in (((2, 4, 7, 6), (4, 2, 3, 2)), ((2, 4, 7, 6), (4, 1, 3, 3)), ((2, 4, 7, 6), (8, 1, 2, 3)), ((0, 4, 7, 6), (4, 2, 3, 3)),
                     ((1, 4, 7, 6), (3, 2, 3, 3)), ((1, 4, 7, 6), (4, 4, 3, 3)), ((1, 4, 2, 2), (4, 2, 3, 3))):
            for how in ({"groups": 2}, {"groups": 4, "stride": 2, "padding": 1}, {"dilation": 2}, {"groups": 2, "dilation": [2, 1], "padding": 2},
                        {"groups": 4, "padding": "same"}, {"groups": 2, "padding": "same", "dilation": [1, 3]}, {"groups": 3}):
                yield case("conv2d", [tensor(dtype, x), tensor(dtype, w, at=1)], "conv2d", grad, **how)
        for x, w in (((2, 4, 3, 4), (4, 2, 3, 2)), ((1, 4, 5, 4), (4, 1, 2, 3)), ((0, 4, 3, 3), (4, 3, 3, 3)), ((1, 3, 4, 4), (4, 2, 3, 3))):
            for how in ({}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2}, {"groups": 4, "stride": [1, 2]}, {"dilation": 2},
                        {"output_padding": 1}, {"dilation": 2, "output_padding": 1}, {"padding": 4}):
                for bias in (None, (2,), (4,)):
                    inputs = [tensor(dtype, x), tensor(dtype, w, at=1)] + ([tensor(dtype, bias, at=2)] if bias else [])
                    yield case("conv_transpose2d", inputs, "conv_transpose2d", grad, **how)
        for shape in ((2, 3, 5, 6), (3, 5, 6), (0, 3, 4, 4), (2, 0, 4, 4), (1, 1, 1, 1), (5, 6), (1, 1, 0, 4)):
            for how in ({"kernel": 2}, {"kernel": 3, "stride": 1, "padding": 1}, {"kernel": 2, "padding": 2}, {"kernel": [1, 3], "stride": [2, 1]}):
                for op in ("max_pool2d", "avg_pool2d"):
                    yield case(op, [tensor(dtype, shape)], op, grad, **how)
        for shape, before in PLACES:
            for p in (0, 1, -0.5, 1.5):
                yield case("dropout", [tensor(dtype, shape, before)], "dropout", grad, p=p)
        many = [tensor(dtype, (1, 1, 1, len(SPECIAL[dtype])), values=special)]
        for op in ("max_pool2d", "avg_pool2d"):
            yield case(op, many, op, kernel=[1, 2])


def resized():
    for dtype in DTYPES:
        grad = dtype in FLOATS
        for shape in ((2, 3, 5, 6), (3, 5, 6), (0, 3, 4, 4), (1, 1, 1, 1)):
            for size in ([1, 1], [2, 3], [3, 4], [7, 6]):
                for op in ("adaptive_avg_pool2d", "adaptive_max_pool2d"):
                    yield case(op, [tensor(dtype, shape)], op, grad, size=size)
                for mode, corners in ((0, False), (1, False), (1, True)):
                    yield case("upsample", [tensor(dtype, shape)], "upsample", grad, size=size, mode=mode, corners=corners)
            for scale in ([1.3, 0.5], [2.2, 1.1], [0.7, 3], [1, 1.5]):
                for mode, corners in ((0, False), (1, False), (1, True)):
                    yield case("upsample", [tensor(dtype, shape)], "upsample", grad, scale=scale, mode=mode, corners=corners)
            for how in ({"kernel": 2}, {"kernel": 3, "stride": 2, "padding": 1}, {"kernel": [1, 3], "stride": [2, 2]}):
                for exclude in (False, True):
                    for op in ("max_pool2d", "avg_pool2d"):
                        yield case(op, [tensor(dtype, shape)], op, grad, **how, ceil=True, exclude=exclude)


def sampled():
    """Places between -1.5 and 1.5 that none of the sums rounds to an edge."""
    for dtype in FLOATS:
        for x, places in (((2, 2, 3, 4), (2, 3, 2, 2)), ((1, 1, 1, 1), (1, 2, 2, 2)), ((0, 2, 3, 3), (0, 2, 2, 2)), ((1, 2, 3, 3), (2, 2, 2, 2))):
            grid = tensor(dtype, places, values=lambda d, n, at: [(i * 37 % 97 - 48) / 32 + 1 / 128 for i in range(n)])
            for nearest in (0, 1):
                for padding in range(3):
                    for corners in (False, True):
                        yield case("grid_sample", [tensor(dtype, x), grid], "grid_sample", dtype in FLOATS[2:], nearest=nearest, padding=padding, corners=corners)


def losses():
    for dtype in FLOATS:
        for reduction in range(3):
            for shape in ((), (3,), (2, 3), (0, 3)):
                inside = lambda d, n, at: [((i * 5 + at) % 15 + 0.5) / 16 for i in range(n)]
                four = [tensor(dtype, shape, values=inside, at=at) for at in range(4)]
                for n in (2, 3):
                    yield case("binary_loss", four[:n], "binary_loss", False, reduction=reduction)
                for n in (2, 3, 4):
                    yield case("logits_loss", four[:n], "logits_loss", False, reduction=reduction)
            for shape in ((), (3,), (2, 3), (0, 3)):
                pair = [tensor(dtype, shape), tensor(dtype, shape, at=1)]
                for op in ("l1_loss", "mse_loss"):
                    yield case(op, pair, op, True, reduction=reduction)
                for op in ("huber_loss", "smooth_l1_loss"):
                    yield case(op, pair, op, True, reduction=reduction, number=0.5)
                yield case("kl_div", pair, "kl_div", True, reduction=reduction, number=1)
            for x, y in (((3, 4), (3,)), ((4,), ()), ((0, 4), (0,)), ((2, 4, 3), (2, 3)), ((3, 4), (2,)), ((2, 4, 2, 2), (2, 2, 2))):
                labels = tensor("i64", y, values=lambda d, n, at: [i % 3 for i in range(n)])
                for how in ({}, {"ignore": 0}, {"ignore": 1}):
                    for op in ("nll_loss", "class_loss"):
                        yield case(op, [tensor(dtype, x), labels], op, True, reduction=reduction, **how)
                    yield case("class_loss", [tensor(dtype, x), labels], "class_loss", True, reduction=reduction, smoothing=0.25, **how)


SHARED = [["transpose", [0], {"dims": [0, 1]}], ["slice", [0], {"dim": 0, "start": 1, "stop": 4, "step": 1}],
          ["slice", [0], {"dim": 0, "start": 0, "stop": 3, "step": 1}], ["slice", [0], {"dim": 1, "start": 0, "stop": 4, "step": 2}],
          ["slice", [0], {"dim": 1, "start": 1, "stop": 4, "step": 2}], ["slice", [0], {"dim": 1, "start": 1, "stop": 3, "step": 1}],
          ["slice", [0], {"dim": 0, "start": 2, "stop": 3, "step": 1}]]


def shared():
    """Two views of one tensor, one written from the other."""
    for op, arguments in (("copy", {}), ("saxpy", {"value": 2})):
        for i in range(len(SHARED) + 1):
            for k in range(len(SHARED) + 1):
                yield {"name": op + " of shared memory", "in": [tensor("f32", (4, 4))], "grad": False,
                       "steps": SHARED + [[op, [i, k], arguments]]}


NORMED = [((5,), [], (5,)), ((2, 3), [], (2, 3)), ((2, 4, 3), [], (2, 4, 3)), ((2, 4, 3, 2), [], (2, 4, 3, 2)), ((0, 4, 2), [], (0, 4, 2)),
          ((2, 0, 3), [], (2, 0, 3)), ((1, 4), [], (1, 4)), ((4, 2), [TURNED], (2, 4)),
          ((3, 1), [["expand", {"shape": [2, 3, 4]}]], (2, 3, 4)), ((3, 2, 2, 4), [["permute", {"shape": [0, 3, 1, 2]}]], (3, 4, 2, 2)),
          ((3, 6), [["slice", {"dim": 1, "start": 1, "stop": 6, "step": 2}]], (3, 3))]


def norms():
    """Normalisations of rows and of channels, with and without parameters; what they refuse, too."""
    for dtype in DTYPES:
        for base, views, shape in NORMED:
            x, grad = tensor(dtype, base, views), dtype in FLOATS
            for rows in ([shape[-1]], list(shape[-2:]), [shape[-1] + 1]):
                vectors = [tensor(dtype, rows, at=i) for i in (1, 2)]
                for n in range(3):
                    yield case("layer_norm", [x] + vectors[:n], "layer_norm", grad, shape=rows, eps=0.25)
                for n in range(2):
                    yield case("rms_norm", [x] + vectors[:n], "rms_norm", grad, shape=rows, eps=0.25)
            vectors = [tensor(dtype, shape[1:2], at=i) for i in (1, 2, 3)]
            vectors.append(tensor(dtype, shape[1:2], values=lambda d, k, at: [True if d == "bool" else 2] * k))
            for n in (0, 1, 2):
                for groups in (1, 2):
                    yield case("group_norm", [x] + vectors[:n], "group_norm", grad, groups=groups, eps=0.25)
            for n in (0, 1, 2, 4):
                for training in (True, False):
                    yield case("batch_norm", [x] + vectors[:n], "batch_norm", grad, training=training, eps=0.25)


def odd_numbers():
    """Infinities and NaN where numbers are summed."""
    for dtype in FLOATS:
        n = len(SPECIAL[dtype])
        column, line = tensor(dtype, (n, 1), values=special), tensor(dtype, (1, n), values=special, at=3)
        yield case("matmul", [column, line], "matmul")
        yield case("matmul", [line, tensor(dtype, (n, 2), values=special, at=1)], "matmul")
        yield case("linear", [column, tensor(dtype, (4, 1)), tensor(dtype, (4,), values=special, at=5)], "linear", activation=1)
        zeros = tensor(dtype, (n,), values=lambda d, k, at: [0] * k)
        for loss in ("mse", "bce_with_logits"):
            for i in range(n):
                yield case(loss, [tensor(dtype, (1,), values=special, at=i), tensor(dtype, (1,), at=4)], loss)
        yield case("cross_entropy", [column, tensor("i64", (n,), values=lambda d, k, at: [0] * k)], "cross_entropy")
        for p in (0, 1):
            yield case("dropout", [tensor(dtype, (n,), values=special)], "dropout", p=p)
        yield case("where", [tensor("bool", (n,)), tensor(dtype, (n,), values=special), zeros], "where")
        for i in range(n):
            yield case("cross_entropy", [tensor(dtype, (2, 3), values=special, at=i), tensor("i64", (2,), values=lambda d, k, at: [1, 2])],
                       "cross_entropy")
            yield case("softmax", [tensor(dtype, (2, 3), values=special, at=i)], "softmax", dim=1)
            yield case("log_softmax", [tensor(dtype, (3, 2), values=special, at=i)], "log_softmax", dim=0)


ALL = [shared, odd_numbers, unary, along, binary, numbers, casts, views, picking, arranged, products, pictures, norms, by_index, moved, ordered,
       resized, sampled, losses]


def systematic():
    for part in ALL:
        yield from part()
