"""The loss that `paracord gpt train` reaches on a text beside PyTorch's at the same settings, with several seeds: GPT-2's initialisation,
AdamW (0.9, 0.99) with a decay of 0.1 on matrices, clipping, 100 steps of warm-up, half a cosine to a tenth of the rate. Each draws its own weights
and stretches; the text held out (its last tenth) is the same, and losses on it are means of 40 batches after the last step.

Usage: gpt_loss.py PARACORD TEXT [--device cuda:0] [--precision bf16] [--steps 1000] [--batch 64] [--size mini] [--seeds 3]
"""
import argparse
import json
import math
import re
import subprocess
import tempfile

import torch

import gpt

SIZES = {"nano": (4, 4, 128, 64), "micro": (6, 6, 192, 128), "mini": (6, 6, 384, 256)}


def ours(a, seed):
    with tempfile.TemporaryDirectory() as folder:
        words = [a.paracord, "gpt", "train", a.text, "-s", a.size, "-n", a.steps, "-b", a.batch, "-d", a.device, "--seed", seed, "--precision",
                 "bf16" if a.precision == "bf16" else "float32", "--test-every", a.steps, "--test-batches", 40, "--sample", 0, "-o", folder + "/net"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        found = re.search(r"done in .*test loss ([0-9.]+)", done.stdout)
        if not found:
            raise SystemExit(done.stdout + done.stderr)
        return float(found.group(1))


def theirs(a, seed):
    layers, heads, width, context = SIZES[a.size]
    text = open(a.text, encoding="utf-8", errors="replace").read()
    letters = sorted(set(text))
    number = {c: i for i, c in enumerate(letters)}
    tokens = torch.tensor([number[c] for c in text], device=a.device)
    cut = int(len(tokens) * 0.9)
    torch.manual_seed(seed)
    net = gpt.network(torch, layers, heads, width, len(letters), context)
    for name, p in net.named_parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, 0, 0.02 / math.sqrt(2 * layers) if name.endswith(("c_proj.weight", "out.weight")) else 0.02)
        elif name.endswith("bias"):
            torch.nn.init.zeros_(p)
    net.to(a.device)
    kinds = [[p for p in net.parameters() if (p.dim() > 1) == matrix] for matrix in (True, False)]
    adamw = torch.optim.AdamW([{"params": kinds[0], "weight_decay": 0.1}, {"params": kinds[1], "weight_decay": 0.0}], lr=1e-3, betas=(0.9, 0.99),
                              fused=True)

    def loss_on(part):
        at = torch.randint(len(part) - context - 1, (a.batch, 1), device=a.device) + torch.arange(context + 1, device=a.device)
        with torch.autocast(a.device.split(":")[0], torch.bfloat16, enabled=a.precision == "bf16"):
            return net(part[at[:, :-1]], part[at[:, 1:]].contiguous())

    warm = min(100, a.steps // 10)
    for step in range(a.steps):
        share = (step - warm) / max(1, a.steps - warm)
        rate = 1e-3 * (step + 1) / warm if step < warm else 1e-4 + 9e-4 * 0.5 * (1 + math.cos(math.pi * share))
        for group in adamw.param_groups:
            group["lr"] = rate
        loss = loss_on(tokens[:cut])
        adamw.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adamw.step()
    with torch.no_grad():
        return sum(loss_on(tokens[cut:]).item() for _ in range(40)) / 40


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("paracord")
    parse.add_argument("text")
    parse.add_argument("--device", default="cuda:0")
    parse.add_argument("--precision", default="bf16")
    parse.add_argument("--size", default="mini")
    for name, value in (("--steps", 1000), ("--batch", 64), ("--seeds", 3)):
        parse.add_argument(name, type=int, default=value)
    a = parse.parse_args()
    rows = [{"seed": seed, "ours": ours(a, seed), "pytorch": theirs(a, seed)} for seed in range(1, a.seeds + 1)]
    for row in rows:
        print(json.dumps(row))
    print(json.dumps({"mean_ours": sum(r["ours"] for r in rows) / len(rows), "mean_pytorch": sum(r["pytorch"] for r in rows) / len(rows)}))


if __name__ == "__main__":
    main()
