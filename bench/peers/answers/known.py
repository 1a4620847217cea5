"""Which row of docs/pytorch.md a difference is."""
FLOATS = ("f16", "bf16", "f32", "f64")
FAILS, REFUSES = "Paracord refuses", "PyTorch refuses"
PICTURES = ("conv2d", "conv_transpose2d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "upsample")


def failing_step(case, want, got):
    """The first step whose answers differ, and the dtypes and shapes of its operands."""
    tensors = [None] * len(case["in"])
    for i, (op, places, arguments) in enumerate(case["steps"]):
        a, b = want[i] if i < len(want) else None, got[i] if i < len(got) else None
        if isinstance(a, dict) or isinstance(b, dict) or [(x["dtype"], x["shape"]) for x in a] != [(x["dtype"], x["shape"]) for x in b]:
            break
        tensors += a
    else:
        op, places, arguments = case["steps"][-1]
    operands = []
    for place in places:
        t = case["in"][place] if place < len(case["in"]) else tensors[place]
        operands.append(t)
    return op, operands, arguments


def of_values(case, op, operands, arguments, text):
    if op.endswith("_scalar") and operands[0]["dtype"] in ("f16", "bf16"):
        return "half-numbers"
    if op == "dropout" and arguments["p"] == 1:
        return "dropout"
    if op == "gelu" and "PyTorch nan, Paracord inf" in text:
        return "gelu-of-infinity"
    if op == "upsample" and ("PyTorch nan, Paracord inf" in text or "PyTorch nan, Paracord -inf" in text):
        return "resized-infinities"
    if op == "bce_with_logits" and ("PyTorch inf" in text or "Paracord inf" in text):
        return "infinite-logits"
    if op == "fill" and "dropout" in [step[0] for step in case["steps"]]:
        return "dropout"
    return "in-place" if op in ("copy", "saxpy") and "step" in text else None


def of_refused(op, operands, arguments, text):
    dtypes = [t["dtype"] for t in operands]
    if op in ("matmul", "addmm", "dot", "linear") + PICTURES and "floating" in text and not set(dtypes) & set(FLOATS):
        return "floating-products"
    if op in PICTURES + ("linear", "cross_entropy"):
        return "bias-of-the-result" if "bias of shape" in text else "pictures-in-batches"
    if op == "copy" and "expanded" in text:
        return "in-place"
    if op in ("gather", "scatter_add") and 0 in operands[1]["shape"] and "must be int64" in text:
        return "empty-index"
    if op == "topk" and arguments["k"] == 0 and not operands[0]["shape"]:
        return "topk-nothing"
    if op in ("roll", "repeat", "tile", "searchsorted") and 0 in operands[0]["shape"] + operands[-1]["shape"]:
        return "nothing-moved"
    if op == "cat" and [0] in [t["shape"] for t in operands]:
        return "cat-nothing"
    if op.endswith("_norm") and set(dtypes) - set(FLOATS):
        return "norm-dtypes"
    if op == "batch_norm" and 0 in operands[0]["shape"]:
        return "empty-norms"
    if op == "mse" and "they must be the same" in text:
        return "mse-shapes"
    if op == "sign" and dtypes == ["bool"]:
        return "bool-signs"
    return {"arange": "whole-arange", "saxpy": "like-saxpy", "where": "bool-conditions", "expand": "expand-new"}.get(op)


def of_computed(op, operands, arguments):
    dtypes = [t["dtype"] for t in operands]
    if op in ("silu", "gelu", "gelu_tanh", "softmax", "log_softmax", "argmax", "argmin", "max_dim", "sub", "sub_scalar", "bce_with_logits",
              "softplus", "leaky_relu", "elu", "pow") and set(dtypes) - set(FLOATS):
        return "integers-as-float"
    if op in ("full", "fill", "saxpy", "pow_scalar", "clamp", "leaky_relu", "elu") and any(
            abs(v) > 255 or v < 0 for v in arguments.values() if isinstance(v, (int, float))):
        return "large-numbers"
    if op in ("index_copy", "one_hot") and "i32" in dtypes:
        return "int32-indices"
    if op == "scatter_add" and operands[1]["shape"] != operands[2]["shape"]:
        return "sources-beyond"
    if op == "pad":
        return "large-numbers" if arguments["mode"] == "constant" else "pad-modes"
    if op == "roll" and not operands[0]["shape"]:
        return "nothing-moved"
    if op in ("addmm", "dot") and dtypes[0] != dtypes[1]:
        return "sums-promote"
    if op in PICTURES and 0 in operands[0]["shape"] + operands[-1]["shape"]:
        return "no-channels"
    if op in ("group_norm", "batch_norm") and 0 in operands[0]["shape"]:
        return "empty-norms"
    return "in-place" if op in ("copy", "saxpy") else None


def row(case, want, got, difference):
    kind, text = difference
    op, operands, arguments = failing_step(case, want, got)
    if kind == FAILS:
        return of_refused(op, operands, arguments, text)
    if kind == REFUSES:
        return of_computed(op, operands, arguments)
    if kind == "gradient's values" and op in ("var_dims", "std_dims") and arguments["value"] > 1:
        return "less-than-nothing"
    if kind == "values":
        return of_values(case, op, operands, arguments, text)
    if kind == "dtype" and op in ("softmax", "log_softmax"):
        return "integers-as-float"
    if kind == "dtype" and op == "bce_with_logits":
        return "bce-dtype"
    if kind == "shape" and op == "conv2d":
        return "no-channels"
    return None
