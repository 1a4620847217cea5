"""paracord bench in PyTorch, in turns with it, and the ratio of their rates (above 1: ours is faster): copies, sums, saxpy and
products of the sizes that paracord bench took.

Usage: bench.py PROGRAM [rounds] [file for the same as JSON] [device]
PROGRAM is the command paracord. Each side's time is taken as paracord bench takes it: warm-up, then batches of at least
4 ms between events (by the clock on a CPU) for 0.3 s, and their median; shown is the median of the rounds. Beside the
ratio stand the spread of each side's rounds, since a difference within them says nothing.
"""
import json
import statistics
import subprocess
import sys
import time

import torch

program = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
target = sys.argv[4] if len(sys.argv) > 4 else "cuda:0"
device = torch.device(target)
TYPES = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
WITHIN = 0.02


def by_events(body, count):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        body()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / count


def by_clock(body, count):
    start = time.perf_counter()
    for _ in range(count):
        body()
    return (time.perf_counter() - start) / count


def seconds(body):
    take = by_events if device.type == "cuda" else by_clock
    take(body, 1)
    count = max(1, min(4000, round(4e-3 / take(body, 1) + 0.5)))
    take(body, count)
    times, begin = [], time.perf_counter()
    while len(times) < 31 and (len(times) < 5 or time.perf_counter() - begin < 0.3):
        times.append(take(body, count))
    return statistics.median(times)


def in_turns(bodies):
    """The bodies one after the other, a go each: what one leaves in a cache is not what the next reads."""
    state = {"at": 0}

    def body():
        state["at"] = (state["at"] + 1) % len(bodies)
        bodies[state["at"]]()

    return body


def transfer(amount, to_host, pinned):
    host = [torch.ones(amount, dtype=torch.uint8, pin_memory=pinned) for _ in range(2)]
    there = [torch.zeros(amount, dtype=torch.uint8, device=device) for _ in range(2)]
    pairs = zip(host, there) if to_host else zip(there, host)
    return in_turns([lambda to=to, other=other: to.copy_(other, non_blocking=True) for to, other in pairs])


def stream(name, amount):
    n = round(amount / (8 if name == "copy.device" else 12))
    a, b, c = (torch.zeros(n, device=device) for _ in range(3))
    return {"copy.device": lambda: c.copy_(a), "add": lambda: a + b, "saxpy": lambda: b.add_(a, alpha=1e-9)}[name]


def product(kind, amount):
    side = round((amount / 2) ** (1 / 3))
    a, b = (torch.randn(side, side, device=device).to(TYPES[kind]) for _ in range(2))
    return lambda: a @ b


def peer_of(name, amount):
    """What PyTorch has for a row: a body, or None."""
    if name in ("copy.to-device", "copy.to-host"):
        return transfer(amount, name == "copy.to-host", True)
    if name in ("copy.device", "add", "saxpy"):
        return stream(name, amount)
    if name.startswith("product."):
        return product(name.split(".")[1], amount)
    return None


def measure(name, amount):
    torch.backends.cuda.matmul.allow_tf32 = name == "product.tf32"
    try:
        body = peer_of(name, round(amount))
        return amount / seconds(body) if body else None
    except RuntimeError as error:  # "not implemented for 'Half'": a type that this PyTorch has not here
        print(f"{name}: PyTorch: {str(error).splitlines()[0]}", file=sys.stderr)
        return None
    finally:
        body = None
        if device.type == "cuda":
            torch.cuda.empty_cache()


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


ours, theirs, limits = {}, {}, {}
for _ in range(rounds):
    rows = "copy.to-device copy.to-host copy.device add saxpy product".split()
    command = [program, "bench", *rows, "--json", "--device", target]
    for row in json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["results"]:
        if row["rate"] is None:
            continue
        name = row["row"]
        rate = measure(name, row["amount"])
        ours.setdefault(name, []).append(row["rate"])
        limits[name] = row["limit"]
        if rate:
            theirs.setdefault(name, []).append(rate)

print(f"{'row':18} {'ours':>10} {'PyTorch':>10} {'ratio':>6} {'ours +-':>8} {'peer +-':>8} {'of limit':>8}")
table, slower = [], []
for name, values in ours.items():
    mine, peers, limit = statistics.median(values), theirs.get(name), limits[name]["rate"]
    other = statistics.median(peers) if peers else None
    ratio = mine / other if other else None
    unit, scale = ("TFLOP/s", 1e-12) if name.startswith("product") else ("GB/s", 1e-9)
    print(f"{name:18} {mine * scale:10.4g} {other * scale if other else float('nan'):10.4g} "
          f"{ratio or float('nan'):6.3f} {spread(values):8.1%} {spread(peers) if peers else float('nan'):8.1%} "
          f"{mine / limit if limit else float('nan'):8.1%}  {unit}")
    table.append(dict(row=name, ours=mine, peer=other, ratio=ratio, limit=limit,
                      unit="FLOP/s" if name.startswith("product") else "B/s"))
    if ratio and ratio < 1 - WITHIN:
        slower.append(name)
print(f"slower than PyTorch by more than {WITHIN:.0%}: {', '.join(slower) or 'none'}")
if len(sys.argv) > 3:
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        json.dump(dict(pytorch=torch.__version__, device=target, rounds=rounds, results=table), file, indent=1)
