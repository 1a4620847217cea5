"""PyTorch's answers to the cases of cases.py."""
import torch
import torch.nn.functional as F

CODES = {"bool": torch.bool, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16,
         "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
NAMES = {dtype: code for code, dtype in CODES.items()}
REDUCTIONS = "mean", "sum", "none", "batchmean"
ACTIVATIONS = [lambda y: y, torch.relu, torch.sigmoid, torch.tanh, F.gelu, lambda y: F.gelu(y, approximate="tanh"), F.silu]


def number(value):
    """As a program in C means it: 2 for an integer, 2.5 for a fraction."""
    return int(value) if value == value and abs(value) < 2**63 and value == int(value) else value


def in_place(op):
    def run(t, a):
        with torch.no_grad():
            op(t, a)
        return [t[0]]
    return run


def named(op):
    return lambda t, a: [op(*t)]


def clamp(t, low, high):
    bounds = [None if b == none else number(b) for b, none in ((low, -float("inf")), (high, float("inf")))]
    return torch.clone(t) if bounds == [None, None] else torch.clamp(t, *bounds)


def batch_norm(a, x, weight=None, bias=None, mean=None, variance=None):
    mean, variance = [None if t is None else t.detach() for t in (mean, variance)]
    return F.batch_norm(x, mean, variance, weight, bias, a["training"], 0.25, a["eps"])


def pad(t, before, after, mode, value):
    pairs = [n for b, a in reversed(list(zip(before, after))) for n in (b, a)]
    if mode == "constant":
        return F.pad(t, pairs, mode, number(value))
    if len(before) > t.dim():
        raise ValueError("more numbers than dimensions")
    few = max(0, len(before) + 1 - t.dim())  # those modes want a dimension in front
    return F.pad(t[(None,) * few], pairs, mode)[(0,) * few]


def all_or(t, dims):
    return dims or list(range(t.dim()))


OPS = {
    "embedding": lambda t, a: [F.embedding(t[1], t[0], a.get("padding"))],
    "index_add": lambda t, a: [torch.index_add(t[0], a["dim"], t[1], t[2])],
    "index_copy": lambda t, a: [torch.index_copy(t[0], a["dim"], t[1], t[2])],
    "index_put": lambda t, a: [torch.index_put(t[0], (t[1],), t[2], a["accumulate"])],
    "gather": lambda t, a: [torch.gather(t[0], a["dim"], t[1])],
    "scatter_add": lambda t, a: [torch.scatter_add(t[0], a["dim"], t[1], t[2])],
    "one_hot": lambda t, a: [F.one_hot(t[0], a["classes"])],
    "pad": lambda t, a: [pad(t[0], a["before"], a["after"], a["mode"], a["value"])],
    "flip": lambda t, a: [torch.flip(t[0], a["dims"])],
    "roll": lambda t, a: [torch.roll(t[0], tuple(a["shifts"]), tuple(a["dims"]))],
    "repeat": lambda t, a: [t[0].repeat(a["dims"])], "tile": lambda t, a: [torch.tile(t[0], a["dims"])],
    "tril": lambda t, a: [torch.tril(t[0], a["diagonal"])], "triu": lambda t, a: [torch.triu(t[0], a["diagonal"])],
    "sort": lambda t, a: list(torch.sort(t[0], dim=a["dim"], descending=a["descending"], stable=True)),
    "argsort": lambda t, a: [torch.argsort(t[0], dim=a["dim"], descending=a["descending"], stable=True)],
    "topk": lambda t, a: list(torch.topk(t[0], a["k"], a["dim"], a["descending"])),
    "searchsorted": lambda t, a: [torch.searchsorted(t[0].detach(), t[1].detach(), right=a["right"])],
    "cumsum": lambda t, a: [torch.cumsum(t[0], a["dim"])],
    "softplus": named(F.softplus), "relu6": named(F.relu6), "leaky_relu": lambda t, a: [F.leaky_relu(t[0], number(a["value"]))],
    "elu": lambda t, a: [F.elu(t[0], number(a["value"]))], "clamp": lambda t, a: [clamp(t[0], a["low"], a["high"])],
    "outer": named(torch.outer), "addmm": named(torch.addmm), "stack": lambda t, a: [torch.stack(t, a["dim"])],
    "masked_fill": lambda t, a: [t[0].masked_fill(t[1], number(a["value"]))],
    "silu": named(F.silu), "gelu": named(F.gelu), "gelu_tanh": named(lambda t: F.gelu(t, approximate="tanh")),
    "where": named(torch.where), "matmul": named(torch.matmul), "sum": named(torch.sum), "mean": named(torch.mean),
    "max": named(torch.max), "mse": named(F.mse_loss), "bce_with_logits": named(F.binary_cross_entropy_with_logits),
    "cross_entropy": named(F.cross_entropy), "contiguous": named(lambda t: t.contiguous()),
    "clone": named(torch.clone), "full": lambda t, a: [torch.full(a["shape"], number(a["value"]), dtype=CODES[a["dtype"]])],
    "sum_dims": lambda t, a: [torch.sum(t[0], dim=tuple(a["dims"]), keepdim=a["keepdim"])],
    "mean_dims": lambda t, a: [torch.mean(t[0], dim=tuple(a["dims"]), keepdim=a["keepdim"])],
    "max_dim": lambda t, a: list(torch.max(t[0], dim=a["dim"], keepdim=a["keepdim"])),
    "argmax": lambda t, a: [torch.argmax(t[0], dim=a["dim"], keepdim=a["keepdim"])],
    "min_dim": lambda t, a: list(torch.min(t[0], dim=a["dim"], keepdim=a["keepdim"])),
    "argmin": lambda t, a: [torch.argmin(t[0], dim=a["dim"], keepdim=a["keepdim"])],
    "prod_dim": lambda t, a: [torch.prod(t[0], dim=a["dim"], keepdim=a["keepdim"])],
    "any_dims": lambda t, a: [torch.any(t[0], dim=all_or(t[0], a["dims"]), keepdim=a["keepdim"])],
    "all_dims": lambda t, a: [torch.all(t[0], dim=all_or(t[0], a["dims"]), keepdim=a["keepdim"])],
    "count_nonzero_dims": lambda t, a: [torch.count_nonzero(t[0], dim=all_or(t[0], a["dims"]))],
    "var": lambda t, a: [torch.var(t[0], correction=a["value"])],
    "std": lambda t, a: [torch.std(t[0], correction=a["value"])],
    "var_dims": lambda t, a: [torch.var(t[0], dim=all_or(t[0], a["dims"]), correction=a["value"], keepdim=a["keepdim"])],
    "std_dims": lambda t, a: [torch.std(t[0], dim=all_or(t[0], a["dims"]), correction=a["value"], keepdim=a["keepdim"])],
    "norm": lambda t, a: [torch.linalg.vector_norm(t[0], a["value"])],
    "norm_dims": lambda t, a: [torch.linalg.vector_norm(t[0], a["value"], all_or(t[0], a["dims"]), a["keepdim"])],
    "linear": lambda t, a: [ACTIVATIONS[a.get("activation", 0)](F.linear(*t))],
    "conv2d": lambda t, a: [F.conv2d(*t, stride=a.get("stride", 1), padding=a.get("padding", 0), dilation=a.get("dilation", 1),
                                      groups=a.get("groups", 1))],
    "conv_transpose2d": lambda t, a: [F.conv_transpose2d(*t, **a)],
    "max_pool2d": lambda t, a: [F.max_pool2d(t[0], a["kernel"], a.get("stride") or None, a.get("padding", 0), ceil_mode=a.get("ceil", False))],
    "avg_pool2d": lambda t, a: [F.avg_pool2d(t[0], a["kernel"], a.get("stride") or None, a.get("padding", 0), a.get("ceil", False),
                                             not a.get("exclude", False))],
    "adaptive_avg_pool2d": lambda t, a: [F.adaptive_avg_pool2d(t[0], a["size"])],
    "adaptive_max_pool2d": lambda t, a: [F.adaptive_max_pool2d(t[0], a["size"])],
    "upsample": lambda t, a: [F.interpolate(t[0], a.get("size"), a.get("scale"), mode=["nearest", "bilinear"][a["mode"]],
                                            align_corners=a["corners"] if a["mode"] else None)],
    "grid_sample": lambda t, a: [F.grid_sample(t[0], t[1].detach() if a["nearest"] else t[1], ["bilinear", "nearest"][a["nearest"]],
                                               ["zeros", "border", "reflection"][a["padding"]], a["corners"])],
    "binary_loss": lambda t, a: [F.binary_cross_entropy(t[0], t[1], *[w.detach() for w in t[2:]], reduction=REDUCTIONS[a["reduction"]])],
    "logits_loss": lambda t, a: [F.binary_cross_entropy_with_logits(t[0], t[1], *[w.detach() for w in t[2:3]], reduction=REDUCTIONS[a["reduction"]],
                                                                    **({"pos_weight": t[3].detach()} if len(t) > 3 else {}))],
    "l1_loss": lambda t, a: [F.l1_loss(*t, reduction=REDUCTIONS[a["reduction"]])],
    "mse_loss": lambda t, a: [F.mse_loss(*t, reduction=REDUCTIONS[a["reduction"]])],
    "huber_loss": lambda t, a: [F.huber_loss(*t, delta=a["number"], reduction=REDUCTIONS[a["reduction"]])],
    "smooth_l1_loss": lambda t, a: [F.smooth_l1_loss(*t, beta=a["number"], reduction=REDUCTIONS[a["reduction"]])],
    "kl_div": lambda t, a: [F.kl_div(*t, log_target=bool(a["number"]), reduction=REDUCTIONS[a["reduction"]])],
    "nll_loss": lambda t, a: [F.nll_loss(*t, ignore_index=a.get("ignore", -100), reduction=REDUCTIONS[a["reduction"]])],
    "class_loss": lambda t, a: [F.cross_entropy(*t, ignore_index=a.get("ignore", -100), reduction=REDUCTIONS[a["reduction"]],
                                                label_smoothing=a.get("smoothing", 0))],
    "softmax": lambda t, a: [torch.softmax(t[0], a["dim"])],
    "log_softmax": lambda t, a: [torch.log_softmax(t[0], a["dim"])],
    "layer_norm": lambda t, a: [F.layer_norm(t[0], a["shape"], *t[1:3], eps=a["eps"])],
    "rms_norm": lambda t, a: [F.rms_norm(t[0], a["shape"], *t[1:2], eps=a["eps"])],
    "group_norm": lambda t, a: [F.group_norm(t[0], a["groups"], *t[1:3], eps=a["eps"])],
    "batch_norm": lambda t, a: [batch_norm(a, *t)],
    "dropout": lambda t, a: [F.dropout(t[0], a["p"])],
    "cat": lambda t, a: [torch.cat(t, a["dim"])],
    "index_select": lambda t, a: [torch.index_select(t[0], a["dim"], t[1])],
    "cast": lambda t, a: [t[0].to(CODES[a["dtype"]])],
    "reshape": lambda t, a: [t[0].reshape(a["shape"])],
    "permute": lambda t, a: [t[0].permute(a["shape"])],
    "expand": lambda t, a: [t[0].expand(a["shape"])],
    "transpose": lambda t, a: [t[0].transpose(*a["dims"])],
    "slice": lambda t, a: [torch.ops.aten.slice(t[0], a["dim"], a["start"], a["stop"], a["step"])],
    "squeeze": lambda t, a: [t[0].squeeze(a["dim"])],
    "unsqueeze": lambda t, a: [t[0].unsqueeze(a["dim"])],
    "flatten_from": lambda t, a: [t[0].flatten(a["dim"])],
    "arange": lambda t, a: [torch.arange(number(a["start"]), number(a["end"]), number(a["step"]), dtype=CODES[a["dtype"]])],
    "fill": in_place(lambda t, a: t[0].fill_(number(a["value"]))),
    "copy": in_place(lambda t, a: t[0].copy_(t[1])),
    "saxpy": in_place(lambda t, a: t[0].add_(t[1], alpha=number(a["value"]))),
}
for name in ("neg exp log sqrt relu sigmoid tanh erf add sub mul div eq ne lt le gt ge abs square rsqrt sin cos floor round sign "
             "isnan isfinite logical_not bitwise_not minimum maximum pow bitwise_and bitwise_or bitwise_xor logical_and "
             "logical_or logical_xor min prod any all count_nonzero dot").split():
    OPS[name] = named(getattr(torch, name))
for name in "add sub mul div pow".split():
    OPS[name + "_scalar"] = lambda t, a, op=getattr(torch, name): [op(t[0], number(a["value"]))]


def answer(t):
    t = t.detach()
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "values": t.reshape(-1).tolist()}


def gradients(leaves, result):
    weights = torch.tensor([((7 * i + 3) % 11 - 5) / 4 for i in range(result.numel())], dtype=result.dtype)
    result.backward(weights.reshape(result.shape))
    return [answer(leaf.grad) if leaf.grad is not None else None for leaf in leaves]


def run(case):
    """A list: for each step its results; then, where the case asks, the inputs' gradients; {"refused"} ends it."""
    answers, leaves, tensors = [], [], []
    try:
        for given in case["in"]:
            leaf = torch.tensor(given["values"], dtype=CODES[given["dtype"]]).reshape(given["shape"])
            if case["grad"] and leaf.is_floating_point():
                leaf.requires_grad_()
            leaves.append(leaf)
            for op, arguments in given["views"]:
                leaf = OPS[op]([leaf], arguments)[0]
            tensors.append(leaf)
        for op, places, arguments in case["steps"]:
            results = OPS[op]([tensors[i] for i in places], arguments)
            tensors += results
            answers.append([answer(t) for t in results + (leaves[:1] if op in ("copy", "saxpy", "fill") else [])])
        if case["grad"]:
            answers.append(gradients(leaves, results[0]))
    except (RuntimeError, IndexError, ValueError, TypeError) as e:
        answers.append({"refused": str(e).split("\n")[0]})
    return answers


class Running:
    """A program while it is drawn: its tensors so far."""

    def __init__(self, case):
        self.tensors = []
        for given in case["in"]:
            leaf = torch.tensor(given["values"], dtype=CODES[given["dtype"]]).reshape(given["shape"])
            self.tensors.append(leaf.requires_grad_() if case["grad"] and leaf.is_floating_point() else leaf)
        self.last = None

    def inputs(self):
        return [answer(t) for t in self.tensors]

    def attempt(self, op, places, arguments, is_good):
        """The results as answers, kept; None where PyTorch refuses, or they are not good."""
        try:
            results = OPS[op]([self.tensors[i] for i in places], arguments)
        except (RuntimeError, IndexError, ValueError, TypeError):
            return None
        answers = [answer(t) for t in results]
        if not is_good(answers, self.tensors):
            return None
        self.tensors += results
        self.last = results[0]
        return answers

    def has_gradient(self):
        return self.last is not None and self.last.requires_grad
