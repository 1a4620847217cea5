"""PyTorch's side of drawn.py: tensors by the formula of bench/drawn/values.c, ops and networks by a case's words."""
import math

import torch
from torch import nn
from torch.nn import functional as F

DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ANY, POSITIVE, TRUTH, TRUTH_OF_NUMBERS = range(4)
KINDS = {"log": [POSITIVE], "sqrt": [POSITIVE], "rsqrt": [POSITIVE], "pow_scalar": [POSITIVE], "pow": [POSITIVE, ANY],
         "div": [ANY, POSITIVE], "prod_dim": [POSITIVE], "where": [TRUTH, ANY, ANY], "bce_with_logits": [ANY, TRUTH_OF_NUMBERS], "logical_and": [TRUTH, TRUTH],
         "masked_fill": [ANY, TRUTH], "kl_div": [ANY, POSITIVE]}
PIECE = 1 << 22


def bits(first, last, at, device):
    h = (torch.arange(first, last, device=device) * 2654435761 + at * 97531) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 2246822519) & 0xFFFFFFFF
    return h ^ (h >> 13)


def number(first, last, at, device):
    return (bits(first, last, at, device) >> 8).float() * 2.0**-23 - 1


def numbers(shape, at, kind, factor, dtype, device):
    n = math.prod(shape)
    out = torch.empty(n, dtype=torch.bool if kind == TRUTH else dtype, device=device)
    for first in range(0, n, PIECE):
        v = number(first, min(n, first + PIECE), at, device)
        v = v.abs() + 0.5 if kind == POSITIVE else v > 0 if kind in (TRUTH, TRUTH_OF_NUMBERS) else v * factor
        out[first:first + PIECE] = v.to(out.dtype)
    return out.reshape(shape)


def tensor(text, at, kind, dtype, device):
    sizes, _, layout = text.partition(":")
    shape, letter = [int(n) for n in sizes.split("x")], layout[:1] or "c"
    how = [0, 3, 1, 2] if letter == "n" else [int(n) for n in layout[1:].split(".") if n]
    base = list(shape)
    if letter in "pn":
        for i, place in enumerate(how):
            base[place] = shape[i]
    if letter == "s":
        base[how[0]] = how[1] + shape[how[0]] * how[2]
    if letter == "e":
        for i in how:
            base[i] = 1
    t = numbers(base, at, kind, 1, dtype, device)
    if letter in "pn":
        return t.permute(how)
    if letter == "s":
        return t[(slice(None),) * how[0] + (slice(how[1], None, how[2]),)]
    return t.expand(shape) if letter == "e" else t


def labels(count, classes, device):
    return bits(0, count, 50, device) % classes


def sums(t):
    """What bench.drawn tells of a tensor: dtype, shape, weighted sum, norm."""
    flat, weighted, squares = t.detach().contiguous().reshape(-1), 0.0, 0.0
    for first in range(0, flat.numel(), PIECE):
        v = flat[first:first + PIECE].double()
        weighted += (number(first, first + v.numel(), 99, t.device).double() * v).sum().item()
        squares += (v * v).sum().item()
    return str(t.dtype).removeprefix("torch."), list(t.shape), weighted, math.sqrt(squares)


ROUNDING = {"f32": 1e-6, "tf32": 1e-3, "f16": 1e-3, "bf16": 8e-3}  # errors of sums


def differences(high, low):
    """By how much weighted sums and norms differ."""
    return {name: max(abs(high[name][i] - low[name][i]) for i in (2, 3)) for name in high}


ACTIVATIONS = {"none": lambda x: x, "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "gelu": F.gelu,
               "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}
LAYERS = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "gelu": nn.GELU,
          "gelu_tanh": lambda: nn.GELU(approximate="tanh"), "silu": nn.SiLU}


def op_of(name, keys, act=None):
    """The op as a function of the inputs; `act` in place of its activation."""
    dim, keep = int(keys.get("dim", 0)), keys.get("keep") == "1"
    dims = [int(n) for n in keys["dims"].split(".")] if "dims" in keys else None
    kernel, stride, pad = (int(keys.get(k, d)) for k, d in (("kernel", 1), ("stride", 1), ("pad", 0)))
    groups, k = int(keys.get("groups", 1)), int(keys.get("k", 0))
    act, p = act or ACTIVATIONS[keys.get("act", "none")], float(keys.get("p", 0))
    to, both = DTYPES.get(keys.get("to")), keys.get("pass") == "both"
    return {
        "neg": torch.neg, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "relu": torch.relu, "sigmoid": torch.sigmoid,
        "tanh": torch.tanh, "erf": torch.erf, "silu": F.silu, "gelu": F.gelu, "gelu_tanh": ACTIVATIONS["gelu_tanh"],
        **{op: getattr(torch, op) for op in "abs square rsqrt sin cos floor round sign minimum maximum pow".split()},
        "softplus": F.softplus, "relu6": F.relu6, "pow_scalar": lambda x: torch.pow(x, 2.5), "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
        "elu": F.elu, "clamp": lambda x: torch.clamp(x, -0.5, 0.5),
        "mul_scalar": lambda x: x * 1.5, "max": torch.max, "contiguous": lambda x: x.contiguous(), "clone": torch.clone,
        "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "lt": torch.lt, "where": torch.where,
        "mse": F.mse_loss, "bce_with_logits": F.binary_cross_entropy_with_logits, "matmul": torch.matmul,
        "cross_entropy": F.cross_entropy, "softmax": lambda x: torch.softmax(x, dim),
        "log_softmax": lambda x: torch.log_softmax(x, dim), "sum_dims": lambda x: torch.sum(x, dims, keepdim=keep),
        "mean_dims": lambda x: torch.mean(x, dims, keepdim=keep),
        "max_dim": (lambda x: torch.max(x, dim, keepdim=keep).values) if both else (lambda x: torch.amax(x, dim, keepdim=keep)),
        "embedding": lambda x, at: F.embedding(at, x), "gather": lambda x, at: torch.gather(x, dim, at),
        "cumsum": lambda x: torch.cumsum(x, dim), "sort": lambda x: torch.sort(x, dim=dim, stable=True).values,
        "topk": lambda x: torch.topk(x, int(keys["k"]), dim).values,
        "argmax": lambda x: torch.argmax(x, dim, keepdim=keep), "argmin": lambda x: torch.argmin(x, dim, keepdim=keep),
        "min_dim": (lambda x: torch.min(x, dim, keepdim=keep).values) if both else (lambda x: torch.amin(x, dim, keepdim=keep)),
        "min": torch.min, "prod_dim": lambda x: torch.prod(x, dim, keepdim=keep), "dot": torch.dot,
        "var_dims": lambda x: torch.var(x, dims, correction=p, keepdim=keep),
        "std_dims": lambda x: torch.std(x, dims, correction=p, keepdim=keep),
        "norm_dims": lambda x: torch.linalg.vector_norm(x, p, dims, keep),
        "any_dims": lambda x: torch.any(x, dims or list(range(x.dim())), keep),
        "all_dims": lambda x: torch.all(x, dims or list(range(x.dim())), keep),
        "max_pool2d": lambda x: F.max_pool2d(x, kernel, stride, pad), "avg_pool2d": lambda x: F.avg_pool2d(x, kernel, stride, pad),
        "linear": lambda x, w, b=None: act(F.linear(x, w, b)),
        "conv2d": lambda x, w, b=None: act(F.conv2d(x, w, b, stride, pad, int(keys.get("dilation", 1)), groups)),
        "conv_transpose2d": lambda x, w, b=None: F.conv_transpose2d(x, w, b, stride, pad, 0, groups),
        "layer_norm": lambda x, w=None, b=None: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
        "rms_norm": lambda x, w=None: F.rms_norm(x, x.shape[-1:], w, 1e-6),
        "group_norm": lambda x, w=None, b=None: F.group_norm(x, int(keys.get("groups", 1)), w, b, 1e-5),
        "batch_norm": lambda x, w=None, b=None: F.batch_norm(x, None, None, w, b, True, 0, 1e-5),
        "copy": lambda x, y: y.copy_(x), "cast": lambda x: x.to(to), "dropout": lambda x: F.dropout(x, p),
        "gt": torch.gt, "logical_and": torch.logical_and, "isnan": torch.isnan, "isfinite": torch.isfinite,
        "l1_loss": F.l1_loss, "huber_loss": lambda x, y: F.huber_loss(x, y, delta=0.5),
        "kl_div": lambda x, y: F.kl_div(x, y, reduction="batchmean"), "argsort": lambda x: torch.sort(x, dim=dim, stable=True).indices,
        "flip": lambda x: torch.flip(x, dims), "roll": lambda x: torch.roll(x, k, dim), "repeat": lambda x: x.repeat(dims),
        "tril": lambda x: torch.tril(x, k), "triu": lambda x: torch.triu(x, k), "cat": lambda x, y: torch.cat([x, y], dim),
        "stack": lambda x, y: torch.stack([x, y], dim),
        "pad": lambda x: F.pad(x, [dims[1], dims[1], dims[0], dims[0]], ["constant", "reflect", "replicate"][k]),
        "masked_fill": lambda x, y: x.masked_fill(y, 0.5), "index_select": lambda x, at: torch.index_select(x, dim, at),
        "index_add": lambda x, at, y: torch.index_add(x, dim, at, y), "scatter_add": lambda x, at, y: torch.scatter_add(x, dim, at, y),
        "upsample_nearest": lambda x: F.interpolate(x, size=dims, mode="nearest"),
        "upsample_bilinear": lambda x: F.interpolate(x, size=dims, mode="bilinear"),
        "grid_sample": lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, dims), "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, dims),
        "attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=keys.get("causal") == "1"),
    }[name]


class Op:
    """An op with its inputs: `body(compiled)` is a go of it."""
    formats = [None]

    def __init__(self, name, keys, device):
        self.name, self.keys, self.function = name, keys, op_of(name, keys)
        dtype, kinds = DTYPES[keys["dtype"]], KINDS.get(name, [])
        self.inputs, self.leaves, both = [], [], keys.get("pass") == "both"
        for i, key in enumerate("xyz"):
            if key not in keys:
                continue
            kind = kinds[i] if i < len(kinds) else ANY
            t = tensor(keys[key], i + 1, kind, dtype, device)
            if both and kind in (ANY, POSITIVE):
                t = t.detach().requires_grad_()
                self.leaves.append(("d" + key, t))
            self.inputs.append(t)
        if name == "cross_entropy":
            self.inputs.append(labels(*self.inputs[0].shape, device))
        # PyTorch's CPU adds up the gradients of layer_norm's parameters in 16 bits, and is some percent off after thousands of rows
        self.wide = name == "layer_norm" and device.type == "cpu" and dtype.itemsize == 2
        if "index" in keys:
            shape, dim = [int(n) for n in keys["index"].split("x")], int(keys.get("dim", 0))
            at = labels(math.prod(shape), self.inputs[0].shape[dim], device).reshape(shape)
            self.inputs.insert(1, at)
        self.gradient = None
        if both:
            with torch.no_grad():
                y = self.function(*self.inputs)
                self.gradient = torch.empty_like(y).copy_(numbers(list(y.shape), 9, ANY, 1, y.dtype, device))

    def results(self):
        y = self.function(*[t.float() if self.wide else t for t in self.inputs])
        return self.told(y.to(self.inputs[0].dtype) if self.wide else y, self.leaves, self.gradient)

    def exact(self, device=None):
        """In float64, where the inputs are or elsewhere: what both sides' sums are but for rounding."""
        wide = [(t.detach().double() if t.is_floating_point() else t).to(device or t.device) for t in self.inputs]
        leaves = [(name, wide[next(i for i, t in enumerate(self.inputs) if t is leaf)]) for name, leaf in self.leaves]
        for _, leaf in leaves:
            leaf.requires_grad_()
        return self.told(self.function(*wide), leaves, self.gradient.to(wide[0]) if leaves else None)

    def spread(self):
        """As of networks, where a ReLU follows; its arguments are shifted by a part of their norm."""
        if self.keys.get("act") != "relu" or not self.leaves:
            return {}
        found = []
        for shift in (ROUNDING[self.keys["dtype"]], -ROUNDING[self.keys["dtype"]]):
            function = op_of(self.name, self.keys, lambda y: torch.relu(y + shift * y.detach().float().square().mean().sqrt().to(y)))
            found.append(self.told(function(*self.inputs), self.leaves, self.gradient))
        return differences(*found)

    @staticmethod
    def told(y, leaves, gradient):
        """The sums of the result and, by their leaves' names, of its gradients."""
        found = {"result": sums(y)}
        if leaves:
            grads = torch.autograd.grad(y, [leaf for _, leaf in leaves], gradient)
            found.update((name, sums(grad)) for (name, _), grad in zip(leaves, grads))
        return found

    def body(self, compiled, recorded, memory):
        plain = self.function
        function = torch.compile(lambda *inputs: plain(*inputs), dynamic=False, fullgraph=True) if compiled else plain
        inputs, leaves, gradient = self.inputs, [leaf for _, leaf in self.leaves], self.gradient
        if leaves:
            return lambda: leave_gradients(function(*inputs), leaves, gradient)
        return lambda: function(*inputs)


def leave_gradients(y, leaves, gradient):
    """In the leaves, as a program gets them: memory of their own, where autograd.grad gives back `gradient` itself."""
    for leaf in leaves:
        leaf.grad = None
    torch.autograd.backward(y, gradient)


def layer_of(word, shape):
    """The modules of a word such as c32k3s1p1:relu, and the shape behind them."""
    with torch.device("meta"):
        layers = modules_of(word, shape)
        with torch.no_grad():
            return layers, list(nn.Sequential(*layers)(torch.empty(shape)).shape)


def modules_of(word, shape):
    name, _, act = word.partition(":")
    if name[0] == "c":
        out, kernel, stride, pad = (int(n) for n in name[1:].replace("k", " ").replace("s", " ").replace("p", " ").split())
        layer = nn.Conv2d(shape[1], out, kernel, stride, pad)
    elif name[:2] in ("mp", "ap"):
        layer = (nn.MaxPool2d if name[0] == "m" else nn.AvgPool2d)(int(name[2:]))
    elif name == "f":
        layer = nn.Flatten()
    elif name[0] == "d":
        layer = nn.Dropout(float(name[1:]))
    elif name[0] == "l":
        layer = nn.Linear(shape[1], int(name[1:]))
    else:
        return [LAYERS[act]()]
    return [layer] + ([LAYERS[act]()] if act and act != "none" else [])


class Net:
    """A network with its training step."""

    def __init__(self, keys, words, device):
        self.keys, self.words, self.device = keys, words, device
        self.formats = [torch.contiguous_format] + ([torch.channels_last] if ":n" in keys["x"] else [])
        self.sixteen = keys["dtype"] == "bf16"

    def make(self, memory):
        self.x = tensor(self.keys["x"], 1, ANY, torch.float32, self.device)
        layers, shape = [], list(self.x.shape)
        for word in self.words:
            modules, shape = layer_of(word, shape)
            layers += modules
        self.net = nn.Sequential(*layers).to_empty(device=self.device)
        for i, p in enumerate(self.net.parameters()):
            factor = math.sqrt(6 / math.prod(p.shape[1:])) if p.dim() > 1 else 0.1
            p.data.copy_(numbers(list(p.shape), 100 + i, ANY, factor, torch.float32, self.device))
        if len(self.formats) > 1:
            self.net, self.x = self.net.to(memory_format=memory), self.x.contiguous(memory_format=memory)
        self.loss = {"ce": F.cross_entropy, "bce": F.binary_cross_entropy_with_logits, "mse": F.mse_loss}[self.keys["loss"]]
        self.y = (labels(*shape, self.device) if self.keys["loss"] == "ce" else
                  numbers(shape, 50, TRUTH if self.keys["loss"] == "bce" else ANY, 1, torch.float32, self.device).float())
        options = {"fused": True}
        if self.keys["opt"] == "adam":
            options.update({"capturable": True} if self.device.type == "cuda" else {})
            self.optimizer = torch.optim.Adam(self.net.parameters(), 1e-4, **options)
        else:
            self.optimizer = torch.optim.SGD(self.net.parameters(), 1e-3, momentum=0.9, **options)

    def forward(self, cached=True):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.sixteen, cache_enabled=cached):
            out = self.net(self.x)
            return out, self.loss(out, self.y)

    def results(self, shift=0.0):
        self.make(self.formats[-1])
        self.net.eval()
        with torch.no_grad():
            for p in self.net.parameters():
                if p.dim() == 1:
                    p += shift
        out, loss = self.forward()
        loss.backward()
        found = {"result": sums(out), "loss": sums(loss),
                 "gradients": sums(torch.cat([p.grad.reshape(-1) for p in self.net.parameters()]))}
        self.optimizer.step()
        with torch.no_grad():
            found["after"] = sums(self.forward()[1])
        return found

    def exact(self):
        """Without matrix units or 16 bits, which a deep network's gradients may be some tens of percent off by."""
        sixteen, self.sixteen = self.sixteen, False
        units = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        try:
            return self.results()
        finally:
            self.sixteen = sixteen
            torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = units

    def spread(self):
        """By how much weighted sums and norms differ between biases a rounding error higher and lower. Where a ReLU's argument is
        next to 0, its sign is up to the order of a sum, and the gradient of a picture's unit is there or not."""
        shift = ROUNDING[self.keys["dtype"]]
        return differences(self.results(shift), self.results(-shift))

    def body(self, compiled, recorded, memory):
        self.make(memory)
        optimizer, x, y, net, loss_of = self.optimizer, self.x, self.y, self.net, self.loss

        def loss_of_net(x, y):
            return loss_of(net(x), y)

        function = torch.compile(loss_of_net, dynamic=False) if compiled else loss_of_net
        device, sixteen = self.device.type, self.sixteen

        def step():
            with torch.autocast(device, torch.bfloat16, enabled=sixteen, cache_enabled=not recorded):
                loss = function(x, y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return step


def case_of(parsed, device):
    kind, name, keys, words = parsed
    tf32 = keys["dtype"] == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.manual_seed(1)
    return Op(name, keys, device) if kind == "op" else Net(keys, words, device)
