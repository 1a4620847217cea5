"""Who should do a convolution: layers to measure, and the table that bench/ways.c makes of them.

    ways.py layers SEED N          N layers of each dtype, of the networks and calls that drawn_cases.py draws
    ways.py table FILE             geometric means over the best way, for each dtype and product
    ways.py tree FILE [LEAST]      a decision tree for each, at least LEAST (8) products a leaf: what rule.c was made from

A process keeps 768 shapes, so give ways.c at most 250 layers at a time, with XDG_CACHE_HOME in an empty folder.
"""
import math
import random
import re
import sys

import drawn_cases

WAYS = ("ours", "as is", "padded", "planes")
LINE = re.compile(r".* (forward|input|weights) (float32|float16|bfloat16)(/tf32)? x (\d+) (\d+) (\d+) (\d+) w (\d+) (\d+) (\d+) "
                  r"stride (\d+) \d+ padding (\d+) \d+.*: ours (\S+) us, cuDNN's(.*)")


def layers_of(text):
    kind, name, keys, words = drawn_cases.parse(text)
    dtype, x = keys["dtype"], [int(n) for n in keys["x"].split(":")[0].split("x")]
    if kind == "op" and name == "conv2d":
        o, _, kernel, _ = (int(n) for n in keys["y"].split(":")[0].split("x"))
        yield dtype, *x, o, kernel, int(keys["stride"]), int(keys["pad"]), int(keys["act"] == "relu")
    if kind == "op" or len(x) != 4:
        return
    n, c, h, w = x
    for word in words:
        name, _, act = word.partition(":")
        if name[0] == "c":
            o, kernel, stride, pad = (int(i) for i in re.findall(r"\d+", name))
            yield dtype, n, c, h, w, o, kernel, stride, pad, int(act == "relu")
            c, h, w = o, (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1
        elif name[:2] in ("mp", "ap"):
            h, w = h // int(name[2:]), w // int(name[2:])


def draw_layers(seed, count):
    found = {}
    for number in range(100 * count):
        for layer in layers_of(drawn_cases.draw(seed, number, "cuda")):
            found.setdefault(layer[0], {})[layer] = None
        if len(found) == 4 and min(len(of) for of in found.values()) >= 2 * count:
            break
    for of in found.values():
        for layer in random.Random(seed).sample(list(of), min(count, len(of))):
            print(*layer)


class Product:
    def __init__(self, found):
        self.direction, dtype, tf32, *numbers, ours, others = found.groups()
        self.kind = "TF32" if tf32 else "float32" if dtype == "float32" else "16 bits"
        n, c, h, w, o, kh, kw, stride, pad = (int(i) for i in numbers)
        places = n * ((h + 2 * pad - kh) // stride + 1) * ((w + 2 * pad - kw) // stride + 1)
        taps = kh * kw
        self.features = {"c": c, "o": o, "taps": taps, "stride": stride, "places": places, "picture": h * w,
                         "work": places * o * c * taps, "depth": (o if self.direction == "input" else c) * taps,
                         "numbers": n * h * w * c + places * o, "weights": c * o * taps}
        self.times = {"ours": float(ours)}
        for way, time in re.findall(r", (padded |planes |)1: ([^,\s]+)", others):
            self.times[way.strip() or "as is"] = float(time)
        for way, same in (("padded", "as is"), ("ours", "padded")):  # padding of whole channels; no kernels of ours
            if not math.isfinite(self.times.get(way, math.inf)):
                self.times[way] = self.times.get(same, math.inf)
        best = min(self.times.values())
        self.costs = [min(2.5, math.log(self.times.get(way, math.inf) / best)) for way in WAYS]


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [Product(found) for found in map(LINE.match, lines) if found]


def groups(products):
    for key in sorted({(p.kind, p.direction) for p in products}):
        yield *key, [p for p in products if (p.kind, p.direction) == key]


def sums(products):
    return [sum(p.costs[i] for p in products) for i in range(len(WAYS))]


def best_split(products, least):
    """The feature and its bound between two values that leave the smallest costs, and these."""
    best = (min(sums(products)) - 0.5, None, 0)
    for feature in products[0].features:
        ordered = sorted(products, key=lambda p: p.features[feature])
        left, right = [0.0] * len(WAYS), sums(products)
        for i, p in enumerate(ordered[:-least]):
            left = [a + b for a, b in zip(left, p.costs)]
            right = [a - b for a, b in zip(right, p.costs)]
            low, high = p.features[feature], ordered[i + 1].features[feature]
            if i + 1 >= least and low != high and min(left) + min(right) < best[0]:
                best = (min(left) + min(right), feature, math.sqrt(max(low, 0.5) * high))
    return best


def grow(products, least, depth, indent):
    cost, feature, bound = best_split(products, least) if depth and len(products) >= 2 * least else (0, None, 0)
    if not feature:
        costs = sums(products)
        way = min(range(len(WAYS)), key=costs.__getitem__)
        print(f"{indent}{WAYS[way]}: {len(products)} products, {math.exp(costs[way] / len(products)):.3f}")
        return
    print(f"{indent}{feature} <= {bound:.6g}")
    grow([p for p in products if p.features[feature] <= bound], least, depth - 1, indent + "  ")
    grow([p for p in products if p.features[feature] > bound], least, depth - 1, indent + "  ")


def main(what, *rest):
    if what == "layers":
        return draw_layers(int(rest[0]), int(rest[1]))
    for kind, direction, products in groups(read(rest[0])):
        print(kind, direction, len(products), *(f"{way} {math.exp(cost / len(products)):.2f}"
                                                for way, cost in zip(WAYS, sums(products))))
        if what == "tree":
            grow(products, int(rest[1]) if len(rest) > 1 else 8, 5, "  ")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("layers", "table", "tree"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
