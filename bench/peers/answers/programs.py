"""Programs drawn from a seed: tensors of any dtypes, shapes and views, and a chain of ops that PyTorch takes.

What jumps (a comparison, a maximum's place, a fraction made an integer) is asked of exact numbers only, and steps that
make last bits large (a quotient by nearly 0) are left out, so that what differs afterwards differs for a reason.
"""
import random

UNARY = ("neg exp log sqrt relu relu6 sigmoid tanh erf silu gelu gelu_tanh sum mean max contiguous clone abs square rsqrt sin cos "
         "softplus floor round sign isnan isfinite logical_not bitwise_not min any all count_nonzero").split()
VIEWS = "reshape permute transpose slice squeeze unsqueeze expand flatten_from".split()
ALONG = "softmax log_softmax max_dim argmax min_dim argmin prod_dim sum_dims mean_dims any_dims var_dims norm_dims".split()
PAIRS = ("add sub mul div eq ne lt le gt ge matmul mse bce_with_logits cat copy saxpy minimum maximum pow bitwise_and bitwise_or "
         "bitwise_xor logical_and logical_or logical_xor").split()
OTHERS = "where cast fill dropout index_select linear conv2d max_pool2d avg_pool2d scalar cross_entropy".split()
KEEPS = set(VIEWS + "neg relu max min max_dim min_dim any all any_dims count_nonzero contiguous clone where cat copy fill index_select max_pool2d abs floor round sign "
            "minimum maximum clamp".split())
JUMPS = set("eq ne lt le gt ge max min max_dim min_dim argmax argmin any all any_dims count_nonzero max_pool2d floor round sign abs minimum maximum logical_not logical_and "
            "logical_or logical_xor clamp leaky_relu elu".split())
MOST = 2000  # elements; and the largest magnitude


def any_shape(r):
    return [r.choice([1, 1, 2, 3, 4, 5, 0 if r.random() < 0.1 else 6]) for _ in range(r.choice([0, 1, 1, 2, 2, 3, 4]))]


def related(r, shape):
    """One that may broadcast with it."""
    new = [1 if r.random() < 0.25 else k for k in shape]
    return new[r.randrange(len(new) + 1):] if r.random() < 0.3 else new


def any_input(r, shape):
    dtype = r.choice("bool u8 i32 i64 f16 bf16 f32 f32 f32 f64".split())
    count = 1
    for k in shape:
        count *= k
    low = 0 if dtype in ("bool", "u8") else -16
    values = [r.randint(low, 1 if dtype == "bool" else 16) / (8 if dtype[0] in "f" or dtype == "bf16" else 1) for _ in range(count)]
    values = [bool(v) if dtype == "bool" else int(v) if dtype[0] in "ui" else v for v in values]
    return {"dtype": dtype, "shape": shape, "values": values, "views": []}


def view(r, op, shape):
    dims, n = range(len(shape)), len(shape)
    dim = r.randrange(-n, n) if n else 0
    if op == "reshape":
        rest = list(shape)
        if n > 1 and r.random() < 0.6:
            i = r.randrange(n - 1)
            rest[i:i + 2] = [rest[i] * rest[i + 1]]
        elif n and max(shape) % 2 == 0:
            i = rest.index(max(shape))
            rest[i:i + 1] = [2, rest[i] // 2]
        return {"shape": rest}
    if op == "permute":
        return {"shape": r.sample(dims, n)}
    if op == "transpose":
        return {"dims": [dim, r.randrange(n) if n else 0]}
    if op == "slice":
        size = shape[dim] if n else 0
        return {"dim": dim, "start": r.randint(-1, size), "stop": r.randint(0, size + 1), "step": r.randint(1, 3)}
    if op == "expand":
        return {"shape": r.choice([[], [2]]) + [r.randint(1, 3) if k == 1 else k for k in shape]}
    return {"dim": dim}


def along(r, op, n):
    dim = r.randrange(-n, n) if n else 0
    keeps = {"keepdim": r.random() < 0.5}
    if op in ("sum_dims", "mean_dims", "any_dims", "var_dims", "norm_dims"):
        more = {"value": r.choice([0, 1] if op == "var_dims" else [1, 2])} if op in ("var_dims", "norm_dims") else {}
        return {"dims": r.sample(range(n), r.randint(0, n)), **keeps, **more}
    return {"dim": dim} if op in ("softmax", "log_softmax") else {"dim": dim, **keeps}


def other(r, op, tensors, pick):
    """Operands and arguments, or None where there are none that go together."""
    if op == "scalar":
        if r.random() < 0.2:
            return "clamp", [pick()], {"low": r.choice([-1, 0, 0.5]), "high": r.choice([0, 1, 2, float("inf")])}
        name = r.choice("add_scalar sub_scalar mul_scalar div_scalar leaky_relu elu".split())
        return name, [pick()], {"value": r.choice([0.5, 2, -3, 1.25, 7])}
    if op == "where":
        conditions = [i for i, t in enumerate(tensors) if t.dtype == "bool"]
        return (op, [r.choice(conditions), pick(), pick()], {}) if conditions else None
    if op == "cast":
        return op, [pick()], {"dtype": r.choice("bool u8 i32 i64 f16 bf16 f32 f64".split())}
    if op == "fill":
        return op, [pick()], {"value": r.choice([0, 1, 3])}
    if op == "dropout":
        return op, [pick()], {"p": 0}
    if op in ("index_select", "cross_entropy"):
        places = [i for i, t in enumerate(tensors) if t.dtype in (("i64",) if op == "cross_entropy" else ("i32", "i64"))]
        return (op, [pick(), r.choice(places)], {"dim": 0} if op == "index_select" else {}) if places else None
    if op in ("linear", "conv2d"):
        return op, [pick() for _ in range(r.choice([2, 3]))], {}
    return op, [pick()], {"kernel": r.randint(1, 3), "stride": r.randint(1, 2), "padding": 0}


def step(r, tensors):
    def pick():
        return len(tensors) - 1 if r.random() < 0.4 else r.randrange(len(tensors))

    op = r.choice(r.choice([UNARY, VIEWS, ALONG, PAIRS, PAIRS, OTHERS]))
    if op in UNARY:
        return op, [pick()], {}
    if op in VIEWS + ALONG:
        i = pick()
        return op, [i], view(r, op, tensors[i].shape) if op in VIEWS else along(r, op, len(tensors[i].shape))
    if op in PAIRS:
        arguments = {"cat": {"dim": 0}, "saxpy": {"value": r.choice([2, -3])}}.get(op, {})
        return op, [pick(), pick()], arguments
    return other(r, op, tensors, pick)


def within(t, low, high):
    return all(low < v < high for v in t.values)


def is_tame(op, arguments, operands):
    """Whether last bits stay last bits, and both sides take it (known.py has what only one takes)."""
    last = operands[-1]
    if (op in JUMPS or (op == "cast" and arguments["dtype"][0] in "ui") or arguments.get("dtype") == "bool") and \
            not all(t.exact for t in operands):
        return False
    if op in ("log", "sqrt", "rsqrt"):
        return within(last, 0.1, MOST)
    if op == "pow":
        return within(operands[0], 0.1, 50) and within(last, -3, 3) and operands[0].is_float and last.dtype != "bool"
    if op == "sign":
        return last.dtype != "bool" and last.exact
    if op in ("sin", "cos"):
        return within(last, -50, 50)
    if op == "exp":
        return within(last, -8, 8)
    if op == "div":
        return all(abs(v) > 0.1 for v in last.values)
    if op in ("mse", "bce_with_logits"):
        return operands[0].shape == last.shape and operands[0].is_float and last.dtype == operands[0].dtype
    if op in ("saxpy", "copy"):
        return op == "copy" or (operands[0].shape == last.shape and operands[0].dtype == last.dtype != "bool")
    if op in ("matmul", "linear", "conv2d", "max_pool2d", "avg_pool2d", "cross_entropy"):
        ranks = {"conv2d": 4, "max_pool2d": 4, "avg_pool2d": 4, "cross_entropy": 2}
        return operands[0].is_float and 0 not in operands[0].shape + last.shape and \
            len(operands[0].shape) == ranks.get(op, len(operands[0].shape))
    return True


class Known:
    """What the next steps need to know about a tensor."""

    def __init__(self, answer, exact):
        self.dtype, self.shape, self.values, self.exact = answer["dtype"], answer["shape"], answer["values"], exact
        self.is_float = self.dtype[0] == "f" or self.dtype == "bf16"


def is_good(answers, tensors):
    return all(len(a["values"]) <= MOST and all(-MOST < v < MOST for v in a["values"]) for a in answers) and len(tensors) < 20


def draw(r, torch_side):
    base = any_shape(r)
    case = {"name": "program", "steps": [], "grad": r.random() < 0.6,
            "in": [any_input(r, base if r.random() < 0.5 else related(r, base)) for _ in range(r.randint(2, 4))]}
    running = torch_side.Running(case)
    tensors = [Known(a, True) for a in running.inputs()]
    for _ in range(60):
        drawn = step(r, tensors)
        if not drawn or (case["grad"] and drawn[0] in ("copy", "saxpy", "fill")):
            continue
        op, places, arguments = drawn
        operands = [tensors[i] for i in places]
        if not is_tame(op, arguments, operands):
            continue
        answers = running.attempt(op, places, arguments, is_good)
        if answers is None:
            continue
        case["steps"].append([op, places, arguments])
        exact = all(t.exact for t in operands) and (op in KEEPS or not Known(answers[0], True).is_float)
        if op in ("copy", "saxpy", "fill"):
            return case  # what else it changed is not followed
        tensors += [Known(a, exact) for a in answers]
        if len(case["steps"]) == 8:
            break
    case["grad"] = case["grad"] and running.has_gradient()
    return case


def drawn(seed, count, torch_side):
    for i in range(count):
        case = draw(random.Random(seed * 1000003 + i), torch_side)
        if case["steps"]:
            yield case
