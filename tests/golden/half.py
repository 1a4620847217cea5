#!/usr/bin/env python3
"""Makes half.txt: what PyTorch makes of 16-bit numbers on the CPU.

    python3 half.py > half.txt

    promote A B RESULT                              torch.promote_types, all pairs
    op NAME DTYPE OUT_DTYPE in ... in ... out ...   shape:bits,bits,... of each input and the result, bits in hexadecimal
    autocast NAME DTYPE                             the dtype of an op's result under torch.autocast("cpu", bfloat16)
    scaler START INTERVAL gradient:scale ...        torch.amp.GradScaler: the scale after a step with that gradient
    train DTYPE losses ...                          a network under autocast (bfloat16), 20 steps of SGD; its weights and
                                                    pictures are sines, as in ops/half.c
"""
import torch
import torch.nn.functional as F

CODES = {"b": torch.bool, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16,
         "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
NAMES = {dtype: code for code, dtype in CODES.items()}
generator = torch.Generator().manual_seed(11)


def bits(t):
    t = t.detach().contiguous()
    view = {2: torch.int16, 4: torch.int32}[t.element_size()]
    mask = {2: 0xFFFF, 4: 0xFFFFFFFF}[t.element_size()]
    shape = ",".join(map(str, t.shape)) or "()"
    return shape + ":" + ",".join("%x" % (v & mask) for v in t.view(view).reshape(-1).tolist())


def normal(dtype, *shape, scale=1.0):
    return (torch.randn(*shape, generator=generator) * scale).to(dtype)


def op(name, inputs, fn):
    out = fn(*inputs)
    print("op", name, NAMES[inputs[0].dtype], NAMES[out.dtype], *["in " + bits(t) for t in inputs], "out", bits(out))


for a in CODES:
    for b in CODES:
        print("promote", a, b, NAMES[torch.promote_types(CODES[a], CODES[b])])

for dtype in (torch.float16, torch.bfloat16):
    x, y = normal(dtype, 48, scale=2), normal(dtype, 48, scale=2)
    op("add", (x, y), torch.add)
    op("sub", (x, y), torch.sub)
    op("mul", (x, y), torch.mul)
    op("div", (x, y), torch.div)
    op("exp", (x,), torch.exp)
    op("log", (x.abs(),), torch.log)
    op("sqrt", (x.abs(),), torch.sqrt)
    op("sigmoid", (x,), torch.sigmoid)
    op("tanh", (x,), torch.tanh)
    op("relu", (x,), torch.relu)
    op("neg", (x,), torch.neg)
    op("add_scalar", (x,), lambda t: t + 0.1)
    op("mul_scalar", (x,), lambda t: t * 0.3)
    op("div_scalar", (x,), lambda t: t / 3)
    op("to_f32", (x,), lambda t: t.float())
    z = torch.cat([torch.randn(40, generator=generator) * 10.0 ** torch.randint(-9, 7, (40,), generator=generator),
                   torch.tensor([float("inf"), -float("inf"), 65519.0, 65520.0, 3.4e38, 6e-8, 2.9e-8, -0.0])])
    op("from_f32_" + NAMES[dtype], (z,), lambda t: t.to(dtype))
    op("sum", (normal(dtype, 300),), torch.sum)
    op("mean", (normal(dtype, 300),), torch.mean)
    op("sum_rows", (normal(dtype, 6, 20),), lambda t: t.sum(1))
    op("max", (x,), torch.max)
    op("softmax", (normal(dtype, 4, 16, scale=3),), lambda t: torch.softmax(t, 1))
    op("log_softmax", (normal(dtype, 4, 16, scale=3),), lambda t: torch.log_softmax(t, 1))
    op("matmul", (normal(dtype, 6, 40), normal(dtype, 40, 5)), torch.matmul)
    op("linear", (normal(dtype, 6, 40), normal(dtype, 5, 40), normal(dtype, 5)), F.linear)
    op("conv2d", (normal(dtype, 1, 2, 6, 6), normal(dtype, 3, 2, 3, 3), normal(dtype, 3)), F.conv2d)
    op("max_pool2d", (normal(dtype, 1, 2, 6, 6),), lambda t: F.max_pool2d(t, 2))
    op("avg_pool2d", (normal(dtype, 1, 2, 6, 6),), lambda t: F.avg_pool2d(t, 2))
    op("mse", (normal(dtype, 24), normal(dtype, 24)), F.mse_loss)

with torch.autocast("cpu", dtype=torch.bfloat16):
    f, h = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bfloat16)
    picture, kernel = torch.ones(1, 2, 3, 3), torch.ones(2, 2, 3, 3)
    labels = torch.zeros(2, dtype=torch.int64)
    for name, out in (("matmul", f @ f), ("linear", F.linear(f, f)), ("conv2d", F.conv2d(picture, kernel)),
                      ("relu_half", torch.relu(h)), ("tanh", torch.tanh(f)), ("add", h + f),
                      ("mse", F.mse_loss(h, h)), ("bce_with_logits", F.binary_cross_entropy_with_logits(h, f))):
        print("autocast", name, NAMES[out.dtype])

parameter = torch.nn.Parameter(torch.ones(1))
sgd = torch.optim.SGD([parameter], lr=0.0)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
pairs = []
for g in (1, 2, 3, float("inf"), 1, 1, 1, float("nan"), float("-inf"), 2, 1, 4, 1, 1, 1):
    parameter.grad = None
    scaler.scale(parameter * g).backward()
    scaler.step(sgd)
    scaler.update()
    pairs.append(f"{g}:{scaler.get_scale():g}")
print("scaler", 1024, 3, *pairs)


def waves(n, factor):
    return torch.sin(torch.arange(1, n + 1, dtype=torch.float64) * factor).float()


for code in ("f32", "bf16"):
    w1 = (waves(16 * 12, 0.7) * 0.3).reshape(16, 12).requires_grad_()
    b1 = (waves(16, 1.3) * 0.1).requires_grad_()
    w2 = (waves(3 * 16, 0.9) * 0.3).reshape(3, 16).requires_grad_()
    x, target = waves(20 * 12, 0.37).reshape(20, 12), torch.arange(20) % 3
    sgd = torch.optim.SGD([w1, b1, w2], lr=0.2)
    losses = []
    for _ in range(20):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=code == "bf16"):
            loss = F.cross_entropy(F.linear(torch.tanh(F.linear(x, w1, b1)), w2), target)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append("%.6g" % loss.item())
    print("train", code, *losses)
