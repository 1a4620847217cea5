"""PyTorch's DistributedDataParallel and NCCL beside paracord bench collective, bench.vision and bench.gpt: a process a GPU.

Usage: python ranks.py RANKS [collective] [vision NETWORK BATCH SIZE CLASSES] [gpt LAYERS HEADS WIDTH VOCABULARY BATCH LENGTH]
[tensor PARTS] [compile]
With tensor, PARTS neighbours have one GPT among them (ranks_tensor.py) and RANKS / PARTS such networks learn together.
Lines of JSON of rank 0.
"""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def say(**what):
    if dist.get_rank() == 0:
        print(json.dumps(what), flush=True)


def rounds(work, times, inner):
    found = []
    for _ in range(times):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(inner):
            work()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - start) / inner)
    return statistics.median(found)


def collective(largest=1 << 30):
    n = dist.get_world_size()
    size = 4096
    while size <= largest:
        t = torch.ones(size // 4, device="cuda")
        inner = 200 if size <= 1 << 20 else 20 if size <= 1 << 26 else 3
        dist.all_reduce(t, op=dist.ReduceOp.MAX)
        call = rounds(lambda: dist.all_reduce(t, op=dist.ReduceOp.MAX), 9, inner)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(20):
                dist.all_reduce(t, op=dist.ReduceOp.MAX)
        captured = rounds(graph.replay, 9, max(1, inner // 20)) / 20
        say(bytes=size, call_us=call * 1e6, graph_us=captured * 1e6,
            bus_gb_per_second=2 * (n - 1) / n * size / min(call, captured) * 1e-9)
        size *= 4


def article():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(3, 32, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3200, 128), nn.ReLU(),
                         nn.Linear(128, 1))


def vision(name, batch, size, classes, compiled):
    import torchvision
    rank = dist.get_rank()
    net = article() if name == "article" else getattr(torchvision.models, name)(num_classes=classes)
    net = net.cuda().to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.arange(batch, device="cuda") * 2654435761 % classes
    if name == "article":
        labels = torch.zeros(batch, 1, device="cuda")
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits if name == "article" else torch.nn.functional.cross_entropy

    def measure(net):
        sgd = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True) if name == "article" else \
            torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)

        def step():
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=name != "article"):
                loss = loss_of(net(x).float(), labels)
            sgd.zero_grad(set_to_none=True)
            loss.backward()
            sgd.step()

        for _ in range(12):
            step()
        return rounds(step, 7, 10)

    alone = measure(torch.compile(net) if compiled else net)
    ddp = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank])
    together = measure(torch.compile(ddp) if compiled else ddp)
    say(network=name, batch=batch, compiled=compiled, alone_ms=alone * 1e3, ranks_ms=together * 1e3,
        pictures_per_second=dist.get_world_size() * batch / together, scaling=alone / together)


def gpt(layers, heads, width, vocabulary, batch, length, parts, compiled):
    from gpt import network
    torch.set_float32_matmul_precision("high")
    x = (torch.arange(batch * length, device="cuda") * 2654435761 + 12345).view(batch, length) % vocabulary

    def measure(net, clip):
        adamw = torch.optim.AdamW(net.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

        def step():
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = net(x, x)
            adamw.zero_grad(set_to_none=True)
            loss.backward()
            clip(net)
            adamw.step()

        for _ in range(12):
            step()
        return rounds(step, 7, 10)

    if parts == 1:
        net, data, clip = network(torch, layers, heads, width, vocabulary, length).cuda(), None, norm_of_all
    else:
        import ranks_tensor
        tensor, data = ranks_tensor.groups(parts)
        net = ranks_tensor.network(tensor, layers, heads, width, vocabulary, length).cuda()
        clip = ranks_tensor.clipper(tensor)
    alone = measure(torch.compile(net) if compiled else net, clip)
    ddp = torch.nn.parallel.DistributedDataParallel(net, device_ids=[dist.get_rank()], gradient_as_bucket_view=True,
                                                    process_group=data)
    together = measure(torch.compile(ddp) if compiled else ddp, clip)
    say(layers=layers, batch=batch, tensor=parts, compiled=compiled, alone_ms=alone * 1e3, ranks_ms=together * 1e3,
        tokens_per_second=dist.get_world_size() // parts * batch * length / together, scaling=alone / together)


def norm_of_all(net):
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1)


def main(rank, size, words, start):
    torch.cuda.set_device(rank)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.backends.cudnn.benchmark = True
    dist.init_process_group("nccl", rank=rank, world_size=size, device_id=torch.device("cuda", rank))
    dist.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()
    say(first_all_reduce_s=time.time() - start)
    if "collective" in words:
        collective()
    if "vision" in words:
        i = words.index("vision")
        vision(words[i + 1], *map(int, words[i + 2:i + 5]), "compile" in words)
    if "gpt" in words:
        i = words.index("gpt")
        parts = int(words[words.index("tensor") + 1]) if "tensor" in words else 1
        gpt(*map(int, words[i + 1:i + 7]), parts, "compile" in words)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(main, args=(int(sys.argv[1]), sys.argv[2:], time.time()), nprocs=int(sys.argv[1]))
