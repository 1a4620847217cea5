"""Two answers to one case: how they differ, in words."""
import math

TOLERANCE = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 3e-6, "f64": 1e-12}


def close(a, b, tolerance, scale):
    if a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b)):
        return True
    return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= tolerance * (abs(a) + scale)


def coarsest(case):
    """The tolerance of the dtype with the fewest bits that takes part; functions of integers are float32."""
    dtypes = [t["dtype"] for t in case["in"]] + [a["dtype"] for _, _, a in case["steps"] if "dtype" in a]
    return max(TOLERANCE.get(d, TOLERANCE["f32"]) for d in dtypes + ["f64"])


def values(want, got, tolerance, scale):
    if want is None or got is None:
        return None if want is got else ("gradient", f"PyTorch has {'none' if want is None else 'one'}")
    for key in ("dtype", "shape"):
        if want[key] != got[key]:
            return key, f"PyTorch: {want[key]}, Paracord: {got[key]}"
    tolerance = max(tolerance, TOLERANCE[want["dtype"]]) if want["dtype"] in TOLERANCE else 0
    for i, (a, b) in enumerate(zip(want["values"], got["values"])):
        if not close(a, b, tolerance, scale):
            return "values", f"{want['dtype']} element {i}: PyTorch {a}, Paracord {b}"
    return None


def largest(tensor):
    return max((abs(v) for v in tensor["values"] if math.isfinite(v)), default=0)


def terms(case, want, i):
    """How large the terms are that step i adds up, where they may cancel: binary cross-entropy's logit * target."""
    op, places, _ = case["steps"][i]
    if op != "bce_with_logits":
        return 0
    tensors = case["in"] + [x for step in want[:i] for x in step]
    return math.prod(largest(tensors[place]) for place in places)


def difference(case, want, got):
    """None, or a kind and a sentence."""
    tolerance, scale = coarsest(case) * len(case["steps"]), 0
    for i in range(max(len(want), len(got))):
        a, b = want[i] if i < len(want) else None, got[i] if i < len(got) else None
        no_a, no_b = isinstance(a, dict), isinstance(b, dict)
        if no_a and no_b:
            return None
        if no_a:
            return "PyTorch refuses", a["refused"][:200]
        if no_b:
            return "Paracord refuses", b["refused"]
        gradients = i == len(case["steps"])
        scale = scale if gradients else max(scale, terms(case, want, i))
        if not gradients and len(a) != len(b):
            return "results", f"PyTorch has {len(a)}, Paracord {len(b)}"
        for x, y in zip(a, b):
            scale = max([scale] + [abs(v) for v in x["values"] if math.isfinite(v)]) if x else scale
            found = values(x, y, tolerance * (5 if gradients else 1), scale)
            if found:
                return ("gradient's " if gradients else "") + found[0], (f"step {i}: " if len(case["steps"]) > 1 else "") + found[1]
    return None


def describe(case):
    inputs = ", ".join(f"{t['dtype']}{t['shape']}" + "".join("." + op for op, _ in t["views"]) for t in case["in"])
    steps = "; ".join(f"{op}{places}" + (f" {arguments}" if arguments else "") for op, places, arguments in case["steps"])
    return f"{inputs} -> {steps}"
