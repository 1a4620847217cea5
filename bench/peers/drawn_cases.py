"""Cases of drawn.py: a line of text each, drawn from a seed; docs/drawn.md says what it means.

A case depends on the seed, its number and the kind of device, so one that is left out changes no other. Sizes are
bounded by what a case computes and moves, forward: the backward pass takes some twice as much again.
"""
import random

LIMITS = {"cpu": dict(elements=1 << 20, flops=3e8, step=4e8, parameters=3 << 20, classes=50257),
          "cuda": dict(elements=1 << 25, flops=1e11, step=1e11, parameters=64 << 20, classes=50257)}
UNARY = ("neg exp log sqrt relu sigmoid tanh erf silu gelu gelu_tanh mul_scalar abs square rsqrt sin cos softplus floor round sign "
         "pow_scalar leaky_relu elu clamp").split()
ACTIVATIONS = "none relu relu relu sigmoid tanh gelu gelu_tanh silu".split()


class Drawer:
    def __init__(self, seed, number, kind):
        self.random, self.kind, self.limit = random.Random(f"{kind} {seed} {number}"), kind, dict(LIMITS[kind])
        self.numbers = self.one("f32", "f32", "f16", "bf16", "bf16")
        if kind == "cpu" and self.numbers != "f32":  # few CPUs multiply these quickly
            self.limit.update(flops=self.limit["flops"] / 8, step=self.limit["step"] / 8)

    def one(self, *choices):
        return choices[self.random.randrange(len(choices))]

    def chance(self, p):
        return self.random.random() < p

    def size(self, low, high):
        """A number between, as likely small as large; more often than not a round one."""
        low, high = int(low), max(int(low), int(high))
        n = max(low, min(high, int(low * (high / low) ** self.random.random() + 0.5)))
        if n > 8 and self.chance(0.6):
            step = 1 << (n.bit_length() - self.random.randrange(1, 5))
            n = max(low, min(high, (n + step // 2) // step * step))
        return n

    def shape(self, dims=None, most=None):
        dims = dims or self.random.randrange(1, 5)
        total = self.size(16, most or self.limit["elements"])
        weights = [0.1 + self.random.random() for _ in range(dims)]
        shape = [self.size(max(1, total ** (w / sum(weights)) / 1.2), total ** (w / sum(weights))) for w in weights]
        return shape

    def dtype(self, products=False):
        return self.one("f32", "tf32") if products and self.kind == "cuda" and self.numbers == "f32" else self.numbers

    def layout(self, shape, contiguous=0.5):
        """The letter behind the colon, and what follows it."""
        if self.chance(contiguous):
            return "c"
        kind = self.one(*("ps" if len(shape) > 1 else "s"), *("n" if len(shape) == 4 else ""))
        if kind == "p":
            order = list(range(len(shape)))
            while order == sorted(order):
                order = sorted(order, key=lambda _: self.random.random())
            return "p" + ".".join(map(str, order))
        if kind == "s":
            return f"s{self.random.randrange(len(shape))}.{self.random.randrange(4)}.{self.one(1, 1, 2, 3)}"
        return kind

    def tensor(self, shape, layout=None):
        return "x".join(map(str, shape)) + ":" + (layout or self.layout(shape))

    def op(self, name, dtype=None, both=True, **words):
        words = {k: v for k, v in words.items() if v is not None}
        way = "both" if both and self.chance(0.5) else "fwd"
        return f"op {name} dtype={dtype or self.dtype()} pass={way} " + " ".join(f"{k}={v}" for k, v in words.items())


def shape_of(d, dims, count):
    """With so many dimensions, and about so many elements."""
    shape = d.shape(dims)
    while size_of(shape) > count:
        shape = [max(1, n // 2) if n == max(shape) else n for n in shape]
    return shape


def unary(d):
    return d.op(d.one(*UNARY), x=d.tensor(d.shape()))


def broadcast(d, shape):
    """A second operand: the same shape, or one that broadcasts to it."""
    if d.chance(0.5):
        return d.tensor(shape)
    dims = [i for i in range(len(shape)) if d.chance(0.5)] or [0]
    if d.chance(0.3):
        return d.tensor(shape, "e" + ".".join(map(str, dims)))
    small = [1 if i in dims else n for i, n in enumerate(shape)]
    while len(small) > 1 and small[0] == 1 and d.chance(0.6):
        small.pop(0)
    return d.tensor(small, "c")


def binary(d):
    name, shape = d.one("add", "sub", "mul", "div", "lt", "where", "minimum", "maximum", "pow", "gt", "logical_and", "masked_fill"), d.shape()
    x, y = d.tensor(shape), broadcast(d, shape)
    if d.chance(0.1):
        return d.op(d.one("isnan", "isfinite"), both=False, x=x)
    return d.op(name, both=name not in ("lt", "gt", "logical_and"), x=x, y=y, z=broadcast(d, shape) if name == "where" else None)


def reduction(d):
    shape = d.shape()
    if d.chance(0.1):
        return d.op("max", x=d.tensor(shape))
    if d.chance(0.2):
        return d.op("max_dim", x=d.tensor(shape), dim=d.random.randrange(len(shape)), keep=d.one(0, 1))
    dims = [i for i in range(len(shape)) if d.chance(0.5)]
    return d.op(d.one("sum_dims", "mean_dims"), x=d.tensor(shape), dims=".".join(map(str, dims)) or None, keep=d.one(0, 1))


def more_reductions(d):
    name, shape, keep = d.one("min", "min_dim", "argmin", "prod_dim", "var_dims", "var_dims", "std_dims", "norm_dims", "norm_dims",
                              "any_dims", "all_dims", "dot"), d.shape(), d.one(0, 1)
    if name == "dot":
        shape = d.shape(1)
        return d.op(name, x=d.tensor(shape, d.layout(shape, 0.8)), y=d.tensor(shape, d.layout(shape, 0.8)))
    if name == "min":
        return d.op(name, x=d.tensor(shape))
    if name in ("min_dim", "argmin", "prod_dim"):
        return d.op(name, both=name != "argmin", x=d.tensor(shape), dim=d.random.randrange(len(shape)), keep=keep)
    dims = ".".join(str(i) for i in range(len(shape)) if d.chance(0.5)) or None
    p = {"var_dims": d.one(0, 1), "std_dims": d.one(0, 1), "norm_dims": d.one(1, 2, 2, 2, "inf", 3)}.get(name)
    return d.op(name, both=p is not None, x=d.tensor(shape), dims=dims, keep=keep, p=p)


def along(d):
    shape = d.shape()
    name = d.one("softmax", "log_softmax", "argmax")
    dim = len(shape) - 1 if d.chance(0.6) else d.random.randrange(len(shape))
    return d.op(name, both=name != "argmax", x=d.tensor(shape), dim=dim)


def loss(d):
    if d.chance(0.3):
        shape = d.shape()
        return d.op(d.one("mse", "bce_with_logits", "l1_loss", "huber_loss", "kl_div"), x=d.tensor(shape, "c"), y=d.tensor(shape, "c"))
    classes = d.size(2, d.limit["classes"])
    rows = d.size(1, max(1, min(8192, d.limit["elements"] // classes)))
    return d.op("cross_entropy", x=d.tensor([rows, classes], d.layout([rows, classes], 0.8)))


def side(d, flops, taken):
    return d.size(1, max(1, min(16384 if d.kind == "cuda" else 4096, (flops / 2 / taken) ** 0.5 * 2)))


def matmul(d):
    batch = [] if d.chance(0.5) else [d.size(2, 256)]
    flops, taken = d.limit["flops"], batch[0] if batch else 1
    k = d.size(1, min(8192, (flops / 2 / taken) ** 0.4))
    n = side(d, flops, taken * k)
    m = d.size(1, max(1, min(16384, flops / 2 / taken / k / n)))
    most = d.limit["elements"]
    while taken * max(n * k, k * m, n * m) > most:
        n, k, m = max(1, n // 2), max(1, k // 2), max(1, m // 2)
    turned = "p0.2.1" if batch else "p1.0"
    x, y = (d.tensor(batch + s, d.one("c", "c", turned)) for s in ([n, k], [k, m]))
    if batch and d.chance(0.2):
        y = d.tensor([k, m], d.one("c", "p1.0"))
    return d.op("matmul", d.dtype(True), x=x, y=y)


def linear(d):
    flops = d.limit["flops"]
    k, m = d.size(1, 4096), d.size(1, 4096)
    n = d.size(1, max(1, min(65536, flops / 2 / k / m)))
    while n * max(k, m) > d.limit["elements"]:
        n = max(1, n // 2)
    return d.op("linear", d.dtype(True), x=d.tensor([n, k], "c" if d.chance(0.8) else d.layout([n, k])), y=d.tensor([m, k], "c"),
                z=d.tensor([m], "c") if d.chance(0.7) else None, act=d.one(*ACTIVATIONS))


def conv2d(d):
    kernel, stride = d.one(1, 3, 3, 5, 7), d.one(1, 1, 2)
    pad = d.one(0, kernel // 2, kernel // 2)
    n, c, out, side = d.size(1, 256), d.size(1, 512), d.size(1, 512), d.size(max(kernel, 4), 224)
    pixels = lambda: ((side + 2 * pad - kernel) // stride + 1) ** 2
    while 2 * n * pixels() * out * c * kernel**2 > d.limit["flops"] or n * max(c * side**2, out * pixels()) > d.limit["elements"]:
        if side >= 2 * max(kernel, 8) and d.chance(0.4):
            side //= 2
        elif n > 1 and d.chance(0.5):
            n //= 2
        elif c > out:
            c //= 2
        else:
            out = max(1, out // 2)
    order = d.one("c", "n")
    return d.op("conv2d", d.dtype(True), x=d.tensor([n, c, side, side], order), y=d.tensor([out, c, kernel, kernel], order),
                z=d.tensor([out], "c") if d.chance(0.7) else None, stride=stride, pad=pad, act=d.one("none", "none", "relu", "silu"))


def grouped(d):
    """Each channel alone, groups, taps apart; and led back."""
    name = d.one("conv2d", "conv2d", "conv2d", "conv_transpose2d")
    kernel, stride = d.one(3, 3, 5, 7), d.one(1, 1, 2)
    channels, dilation = 8 * d.size(1, 64), d.one(1, 1, 1, 2, 3) if name == "conv2d" else 1
    groups = d.one(channels, channels, channels, d.one(2, 4, 8), 1)
    pad = d.one(0, dilation * (kernel // 2), dilation * (kernel // 2))
    n, side = d.size(1, 64), d.size(dilation * kernel, 112)
    cost = lambda: n * side**2 * channels
    while n > 1 and (cost() > d.limit["elements"] or 2 * cost() * channels // groups * kernel**2 > d.limit["flops"]):
        n //= 2
    while side >= 2 * dilation * kernel and (cost() > d.limit["elements"] or
                                             2 * cost() * channels // groups * kernel**2 > d.limit["flops"]):
        side //= 2
    order = d.one("c", "n", "n")
    return d.op(name, d.dtype(True), x=d.tensor([n, channels, side, side], order),
                y=d.tensor([channels, channels // groups, kernel, kernel], "c"),
                z=d.tensor([channels], "c") if d.chance(0.5) else None, stride=stride, pad=pad,
                groups=groups, dilation=dilation if dilation > 1 else None)


def pooling(d):
    kernel = d.one(2, 2, 3)
    n, c, h, w = d.size(1, 256), d.size(1, 512), d.size(4, 224), d.size(4, 224)
    while n * c * h * w > d.limit["elements"]:
        n, c = max(1, n // 2), max(1, c // 2)
        if n * c == 1:
            h, w = 4, 4
    return d.op(d.one("max_pool2d", "avg_pool2d"), x=d.tensor([n, c, h, w], d.one("c", "n")), kernel=kernel,
                stride=d.one(kernel, kernel, 1 if kernel == 3 else 2, 2), pad=d.one(0, 0, kernel // 2))


def copying(d):
    name, shape = d.one("contiguous", "clone", "copy", "cast", "copy"), d.shape()
    if name == "copy":
        return d.op(name, both=False, x=d.tensor(shape, d.layout(shape, 0.3)), y=d.tensor(shape))
    if name == "cast":
        dtype = d.dtype()
        return d.op(name, dtype, x=d.tensor(shape), to=d.one(*[t for t in ("f32", "f16", "bf16") if t != dtype]))
    while name == "contiguous" and len(shape) < 2:
        shape = d.shape()
    return d.op(name, both=False, x=d.tensor(shape, d.layout(shape, 0 if name == "contiguous" else 0.3)))


def dropout(d):
    return d.op("dropout", x=d.tensor(d.shape()), p=d.one(0.1, 0.25, 0.5))


def attention(d):
    """Heads of their own, or views of [batch, length, heads, size] as projections give them."""
    batch, heads, length, size = d.size(1, 64), d.one(1, 2, 4, 6, 8, 12, 16), d.size(1, 4096), d.one(8, 16, 32, 64, 64, 80, 128)
    keys = length if d.chance(0.7) else d.size(1, 4096)
    while 4 * batch * heads * length * keys * size > d.limit["flops"] or batch * heads * max(length, keys) * size > d.limit["elements"]:
        if batch * heads > 1 and d.chance(0.5):
            batch, heads = (batch // 2, heads) if batch > 1 else (batch, heads // 2)
        else:
            length, keys = max(1, length // 2), max(1, keys // 2)
    order = d.one("c", "p0.2.1.3", "p0.2.1.3")
    x, y, z = (d.tensor([batch, heads, n, size], order) for n in (length, keys, keys))
    return d.op("attention", x=x, y=y, z=z, causal=d.one(0, 1, 1))


def norm(d):
    name, shape = d.one("layer_norm", "layer_norm", "rms_norm", "batch_norm", "batch_norm", "group_norm"), d.shape()
    rows = name in ("layer_norm", "rms_norm")
    if not rows:
        shape = d.shape(d.one(2, 4, 4, 4) if name == "batch_norm" else 4)
        shape[0] = max(shape[0], 2)
    layout = d.layout(shape, 0.8) if rows else d.one("c", "n") if len(shape) == 4 else "c"
    vector = lambda p: d.tensor([shape[-1 if rows else 1]], "c") if d.chance(p) else None
    groups = d.one(*[g for g in (1, 2, 4, 8, 32) if shape[1] % g == 0]) if name == "group_norm" else None
    y = vector(0.9)
    return d.op(name, x=d.tensor(shape, layout), y=y, z=vector(0.9) if y and name != "rms_norm" else None, groups=groups)


def indexed(d):
    """Rows or elements by indices of the formula that labels have; running sums; order."""
    name = d.one("embedding", "embedding", "gather", "cumsum", "sort", "topk", "argsort", "index_select", "index_add", "scatter_add")
    shape = d.shape()
    dim = len(shape) - 1 if d.chance(0.6) else d.random.randrange(len(shape))
    if name in ("cumsum", "sort", "argsort"):
        return d.op(name, both=name != "argsort", x=d.tensor(shape), dim=dim)
    if name in ("index_select", "index_add"):
        part = list(shape)
        part[dim] = d.size(1, max(1, min(4 * shape[dim], d.limit["elements"] * shape[dim] // size_of(shape))))
        return d.op(name, x=d.tensor(shape), y=d.tensor(part) if name == "index_add" else None, dim=dim, index=part[dim])
    if name == "scatter_add":
        part = [d.size(1, n) if i != dim else d.size(1, 2 * n) for i, n in enumerate(shape)]
        return d.op(name, x=d.tensor(shape), y=d.tensor(part), dim=dim, index="x".join(map(str, part)))
    if name == "topk":
        return d.op(name, x=d.tensor(shape), dim=dim, k=d.size(1, shape[dim]))
    if name == "gather":
        index = list(shape)
        index[dim] = d.one(1, d.size(1, 4 * shape[dim]))
        while index[dim] > 1 and size_of(index) > d.limit["elements"]:
            index[dim] //= 2
        return d.op(name, x=d.tensor(shape), dim=dim, index="x".join(map(str, index)))
    columns = d.size(1, 2048)
    rows = d.size(1, max(1, min(d.limit["classes"], 2 * d.limit["elements"] // columns)))
    index = d.shape(d.one(1, 2), max(16, d.limit["elements"] // columns))
    return d.op(name, x=d.tensor([rows, columns], "c"), index="x".join(map(str, index)))


def arranged(d):
    """The same elements, or parts of them, at other places."""
    name, shape = d.one("flip", "roll", "repeat", "tril", "triu", "cat", "stack", "pad"), d.shape(d.random.randrange(2, 5))
    dim = d.random.randrange(len(shape))
    if name == "flip":
        return d.op(name, x=d.tensor(shape), dims=".".join(str(i) for i in range(len(shape)) if d.chance(0.5)) or dim)
    if name == "roll":
        return d.op(name, x=d.tensor(shape), dim=dim, k=d.size(1, shape[dim]))
    if name == "repeat":
        times = [d.one(1, 1, 2, 3) for _ in shape]
        shape = shape_of(d, len(shape), d.limit["elements"] // size_of(times))
        return d.op(name, x=d.tensor(shape), dims=".".join(map(str, times)))
    if name in ("tril", "triu"):
        return d.op(name, x=d.tensor(shape), k=d.one(-1, 0, 0, 0, 1))
    if name == "pad":
        most, mode = [max(1, min(n - 1, 8)) for n in shape[-2:]], d.one(0, 0, 1, 2) if len(shape) > 2 and min(shape[-2:]) > 1 else 0
        return d.op(name, x=d.tensor(shape), dims=".".join(str(d.size(1, n)) for n in most), k=mode)
    second = list(shape)
    if name == "cat":
        second[dim] = d.size(1, 2 * shape[dim])
    return d.op(name, x=d.tensor(shape), y=d.tensor(second), dim=dim)


def sampled(d):
    """Pictures of another size, or read at places."""
    name = d.one("upsample_nearest", "upsample_bilinear", "grid_sample", "adaptive_avg_pool2d", "adaptive_max_pool2d")
    n, c, h, w = d.size(1, 64), d.size(1, 256), d.size(2, 224), d.size(2, 224)
    if name.startswith("adaptive"):
        rows, columns = d.size(1, min(h, 14)), d.size(1, min(w, 14))
    else:
        rows, columns = (2 * h, 2 * w) if d.chance(0.5) else (d.size(2, 448), d.size(2, 448))
    while n * c * max(h * w, rows * columns) > d.limit["elements"]:
        if c > 1 and d.chance(0.5):
            c //= 2
        elif n > 1:
            n //= 2
        elif c == 1:
            h, w, rows, columns = max(2, h // 2), max(2, w // 2), max(1, rows // 2), max(1, columns // 2)
    x = d.tensor([n, c, h, w], d.one("c", "n"))
    if name == "grid_sample":
        return d.op(name, x=x, y=d.tensor([n, rows, columns, 2], "c"))
    return d.op(name, x=x, dims=f"{rows}.{columns}")


def size_of(shape):
    size = 1
    for n in shape:
        size *= n
    return size


def flops_of(layers, shape):
    """Of a forward pass, with the elements of all layers' results and the parameters; None where a layer does not fit."""
    shape, flops, elements, parameters = list(shape), 0, 0, 0
    for word, (kind, *numbers) in layers:
        if kind == "c":
            out, kernel, stride, pad = numbers
            parameters += out * (shape[1] * kernel**2 + 1)
            sides = [(n + 2 * pad - kernel) // stride + 1 for n in shape[2:]]
            if min(sides) < 1:
                return None
            flops += 2 * shape[0] * out * shape[1] * kernel**2 * sides[0] * sides[1]
            shape = [shape[0], out] + sides
        elif kind == "p":
            shape = shape[:2] + [(n - numbers[0]) // numbers[0] + 1 for n in shape[2:]]
            if min(shape) < 1:
                return None
        elif kind == "f":
            shape = [shape[0], shape[1] * shape[2] * shape[3]]
        elif kind == "l":
            parameters += numbers[0] * (shape[1] + 1)
            flops += 2 * shape[0] * shape[1] * numbers[0]
            shape = [shape[0], numbers[0]]
        elements += size_of(shape)
    return flops, elements, parameters


def convolutions(d, count):
    layers, channels = [], d.size(4, 64)
    act = d.one("relu", "relu", "relu", "gelu", "silu", "tanh")
    while len(layers) < count:
        kernel = d.one(1, 3, 3, 3, 5, 7)
        stride = d.one(1, 1, 1, 2)
        layers.append((f"c{channels}k{kernel}s{stride}p{kernel // 2}:{act}", ("c", channels, kernel, stride, kernel // 2)))
        if d.chance(0.35):
            layers.append((d.one("mp", "mp", "ap") + "2", ("p", 2)))
            channels = min(512, channels * 2)
    return layers + [("f", "f")]


def network(d):
    while True:
        count, pictures = d.random.randrange(2, 21), d.chance(0.7)
        act = d.one("relu", "relu", "relu", "gelu", "gelu_tanh", "sigmoid", "tanh", "silu")
        heads = d.random.randrange(0, min(3, count)) if pictures else count - 1
        layers = convolutions(d, max(1, count - heads - 1)) if pictures else []
        width = d.size(8, 4096 if d.kind == "cuda" else 1024)
        for _ in range(heads):
            if d.chance(0.2):
                layers.append((f"d{d.one(0.1, 0.25, 0.5)}", ("d",)))
            layers.append((f"l{width}:{act}", ("l", width)))
            width = d.size(8, 2 * width) if d.chance(0.3) else width
        loss = d.one("ce", "ce", "ce", "bce", "mse")
        out = {"ce": d.size(2, 1000), "bce": 1, "mse": d.size(1, 64)}[loss]
        layers.append((f"l{out}", ("l", out)))
        batch, side = d.size(1, 512), d.size(8, 224)
        shape = [batch, d.one(1, 3, 3), side, side] if pictures else [batch, d.size(4, 4096)]
        dtype, optimizer = d.dtype(True).replace("bf16", "f16").replace("f16", "bf16"), d.one("adam", "adam", "sgd")
        while True:
            cost = flops_of(layers, shape)
            if not cost or cost[2] > d.limit["parameters"]:
                break
            if cost[0] <= d.limit["step"] and cost[1] <= 4 * d.limit["elements"]:
                words = " ".join(word for word, _ in layers)
                return f"net dtype={dtype} loss={loss} opt={optimizer} x={d.tensor(shape, 'n' if pictures else 'c')} {words}"
            if shape[0] == 1:
                break
            shape[0] //= 2


FAMILIES = [(4, unary), (4, binary), (5, reduction), (5, more_reductions), (4, along), (3, loss), (5, matmul), (4, linear), (7, conv2d),
            (4, pooling), (5, copying), (2, dropout), (5, attention), (4, norm), (3, indexed), (25, network), (4, grouped), (4, arranged), (3, sampled)]


def draw(seed, number, kind):
    d = Drawer(seed, number, kind)
    at = d.random.randrange(sum(weight for weight, _ in FAMILIES))
    for weight, family in FAMILIES:
        if at < weight:
            return family(d)
        at -= weight


def parse(text):
    """The words of a line: kind, name of the op, keys, layers."""
    words = text.split()
    keys = dict(w.split("=", 1) for w in words if "=" in w)
    plain = [w for w in words if "=" not in w]
    return plain[0], plain[1] if plain[0] == "op" else None, keys, plain[1:]
