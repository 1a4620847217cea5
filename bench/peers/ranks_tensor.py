"""A GPT cut up among ranks as Megatron-LM does it (Shoeybi and others 2019), in plain PyTorch: the peer of bench.gpt with
BENCH_TENSOR. Heads, inner numbers and rows of the table are cut; two sums over the ranks a block in each direction.
"""
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as together
import torch.nn.functional as F
from torch import nn


def groups(parts):
    """The ranks that have one network, and those that have the same part of others."""
    n, rank = dist.get_world_size(), dist.get_rank()
    tensor = data = None
    for first in range(0, n, parts):
        made = dist.new_group(list(range(first, first + parts)))
        tensor = made if first <= rank < first + parts else tensor
    for part in range(parts):
        made = dist.new_group(list(range(part, n, parts)))
        data = made if rank % parts == part else data
    return tensor, data


def added(x, group):
    return together.wait_tensor(together.all_reduce(x, "sum", group))


class Copy(torch.autograd.Function):
    """Into layers that are cut: gradients are summed."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return added(gradient.contiguous(), ctx.group), None


class Sum(torch.autograd.Function):
    """Out of layers that are cut."""
    @staticmethod
    def forward(ctx, x, group):
        return added(x.contiguous(), group)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Loss(torch.autograd.Function):
    """The mean of cross-entropies of logits whose classes are cut."""
    @staticmethod
    def forward(ctx, logits, labels, first, group):
        logits = logits.float()
        top = together.wait_tensor(together.all_reduce(logits.amax(1), "max", group))
        e = (logits - top[:, None]).exp_()
        total = added(e.sum(1), group)
        here = (labels >= first) & (labels < first + logits.shape[1])
        place = torch.where(here, labels - first, 0)
        own = torch.where(here, logits.gather(1, place[:, None])[:, 0] - top, 0.)
        own = added(own, group)
        ctx.save_for_backward(e.div_(total[:, None]), place, here)
        return (total.log() - own).mean()

    @staticmethod
    def backward(ctx, gradient):
        p, place, here = ctx.saved_tensors
        p = p.scatter_add(1, place[:, None], -here[:, None].to(p.dtype))
        return p * (gradient / p.shape[0]), None, None, None


def network(group, layers, heads, width, vocabulary, length):
    n, part = dist.get_world_size(group), dist.get_rank(group)
    rows = -(-vocabulary // n)
    first, own = part * rows, min(rows, vocabulary - part * rows)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width // n), nn.Linear(width // n, width, bias=False)
            self.c_fc, self.out = nn.Linear(width, 4 * width // n), nn.Linear(4 * width // n, width, bias=False)
            self.b_proj, self.b_out = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))

        def forward(self, x):
            b, t, c = x.shape
            y = self.c_attn(Copy.apply(self.ln_1(x), group))
            q, k, v = (z.view(b, t, heads // n, c // heads).transpose(1, 2) for z in y.split(c // n, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c // n)
            x = x + (Sum.apply(self.c_proj(y), group) + self.b_proj)
            y = F.gelu(self.c_fc(Copy.apply(self.ln_2(x), group)), approximate="tanh")
            return x + (Sum.apply(self.out(y), group) + self.b_out)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(own, width), nn.Embedding(length, width)
            self.h, self.ln_f = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(width)

        def forward(self, x, y):
            here = (x >= first) & (x < first + own)
            tokens = self.wte(torch.where(here, x - first, 0)) * here[..., None]
            h = Sum.apply(tokens, group) + self.wpe.weight[:x.shape[1]]
            for block in self.h:
                h = block(h)
            logits = F.linear(Copy.apply(self.ln_f(h), group), self.wte.weight)
            return Loss.apply(logits.view(-1, own), y.view(-1), first, group)

    return Net()


def clipper(group):
    """Clip by the norm of the whole network: what is cut counts in every rank, the rest once."""
    def clip(net):
        cut = [p for k, p in net.named_parameters() if any(w in k for w in ("c_attn", "c_fc", "c_proj", "out.", "wte"))]
        ids = {id(p) for p in cut}
        whole = [p for p in net.parameters() if id(p) not in ids]
        squares = torch.stack([g.norm() for g in (p.grad for p in cut)]).square().sum()
        squares = added(squares, group) + torch.stack([p.grad.norm() for p in whole]).square().sum()
        factor = (1 / (squares.sqrt() + 1e-6)).clamp(max=1)
        torch._foreach_mul_([p.grad for p in net.parameters()], factor)
    return clip
