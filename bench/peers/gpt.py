"""bench/gpt.c beside PyTorch, in one run: training steps of GPTs. PyTorch's network is GPT-2's with
F.scaled_dot_product_attention, its optimiser the fused AdamW; it runs eager, in a CUDA graph, compiled (with a bare step and with CUDA
graphs), each in a process of its own, and with the vocabulary padded to a multiple of 64 where that is faster; the best counts.

Usage: gpt.py PROGRAM DEVICE [ways] [CASE ...], a CASE as bench.gpt has it: PRECISION:LAYERS:HEADS:WIDTH:VOCABULARY:BATCH:LENGTH
"""
import json
import subprocess
import sys
import time

CASES = ["bf16:12:12:768:50257:16:1024", "bf16:6:6:384:65:64:256", "bf16:6:6:384:65:12:64", "f32:4:4:128:65:12:64"]


def network(torch, layers, heads, width, vocabulary, length):
    from torch import nn
    import torch.nn.functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.c_fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (z.view(b, t, heads, c // heads).transpose(1, 2) for z in self.c_attn(self.ln_1(x)).split(c, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
            x = x + self.c_proj(y)
            return x + self.out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.h, self.ln_f = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(width)

        def forward(self, x, y):
            h = self.wte(x) + self.wpe.weight[:x.shape[1]]
            for block in self.h:
                h = block(h)
            logits = F.linear(self.ln_f(h), self.wte.weight)
            return F.cross_entropy(logits.view(-1, vocabulary), y.view(-1))

    return Net()


def timed(torch, step, way, on_gpu, steps):
    begin = time.perf_counter()
    step()
    if on_gpu:
        torch.cuda.synchronize()
    first = time.perf_counter() - begin
    if way.endswith("graph"):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        once = graph.replay
    else:
        once = step
    for _ in range(3):
        once()
    times = []
    for _ in range(7):
        if on_gpu:
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            once()
        if on_gpu:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / steps * 1e3)
    peak = torch.cuda.max_memory_allocated() * 1e-6 if on_gpu else 0
    print(json.dumps({"step_ms": sorted(times)[3], "first_ms": first * 1e3, "peak_mb": peak}))


def measure(device, way, case, padded):
    import torch
    precision, layers, heads, width, vocabulary, batch, length = case.split(":")
    layers, heads, width, vocabulary, batch, length = map(int, (layers, heads, width, vocabulary, batch, length))
    on_gpu = device.startswith("cuda")
    if precision == "tf32":
        torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    x = (torch.arange(batch * length) * 2654435761 + 12345).remainder(vocabulary).view(batch, length).to(device)
    net = network(torch, layers, heads, width, -(-vocabulary // 64) * 64 if padded else vocabulary, length).to(device)
    adamw = torch.optim.AdamW(net.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True, capturable=on_gpu)
    run = torch.compile(net, mode="max-autotune-no-cudagraphs" if way == "tuned" else None) if way in ("compile", "compile+graph", "tuned") else net

    def step():
        with torch.autocast(device.split(":")[0], torch.bfloat16, enabled=precision == "bf16"):
            loss = run(x, x)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=not way.endswith("graph"))

    timed(torch, step, way, on_gpu, 20 if on_gpu else 5)


def of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"error": (done.stderr or done.stdout)[-400:]}


def compared(case, ours, theirs):
    times = {way: row["step_ms"] for way, row in theirs.items() if "step_ms" in row}
    best = min(times, key=times.get) if times else None
    print(json.dumps({"case": case, "ours": ours, "best": best, "theirs": theirs.get(best), "ratio": times[best] / ours["step_ms"]
                      if best and "step_ms" in ours else None, "all": times,
                      "errors": {way: row["error"] for way, row in theirs.items() if "error" in row}}), flush=True)


def main():
    program, device = sys.argv[1:3]
    ways = (sys.argv[3] if len(sys.argv) > 3 else "eager,graph,compile,compile+graph").split(",")
    for case in sys.argv[4:] or CASES:
        ours = of([program, device, *case.split(":")])
        theirs = {}
        for way in ways:
            for padded in ([False, True] if int(case.split(":")[4]) % 64 else [False]):
                theirs[way + (" padded" if padded else "")] = of([sys.executable, __file__, "--one", device, way, case, str(int(padded))])
        compared(case, ours, theirs)


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        measure(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5] == "1")
    else:
        main()
