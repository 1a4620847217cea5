"""bench/loader.c in torchvision with torch's DataLoader, in turns with it, and the ratio.

Usage: python loader.py PROGRAM FOLDER [rounds] [threads]
FOLDER has class folders of JPEG files. Each round runs our program once, then the peers over one epoch behind the first; shown
are medians over the rounds of the CPU time of all threads and workers per picture, which other work on the machine disturbs
least, and of the pictures per second that passed. Ours decodes every picture anew; "kept" is what it does unless told.
"""
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader
from torchvision import datasets, io, transforms
from torchvision.transforms import v2

program, folder = sys.argv[1], sys.argv[2]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
workers = int(sys.argv[4]) if len(sys.argv) > 4 else 2
torch.set_num_threads(1)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

PLAIN = transforms.Compose(
    [transforms.Resize((64, 64)), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
RECIPE = transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.4, 0.4, 0.4),
    transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
PLAIN_V2 = v2.Compose(
    [v2.Resize((64, 64), antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)])
RECIPE_V2 = v2.Compose([
    v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.4, 0.4),
    v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])


def tensor_of(path):
    return io.decode_image(path, io.ImageReadMode.RGB)


def processor(pid):
    """CPU seconds of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def epoch(transform, **how):
    data = datasets.ImageFolder(folder, transform, **how)
    loader = DataLoader(data, 32, shuffle=True, num_workers=workers, persistent_workers=True)
    for _ in loader:
        pass
    iterator = loader._iterator
    pids = ["self"] + [w.pid for w in iterator._workers]
    cpu, wall = sum(map(processor, pids)), time.perf_counter()
    for _ in loader:
        pass
    return (sum(map(processor, pids)) - cpu) / len(data), (time.perf_counter() - wall) / len(data)


peers = [("loader.plain", "PIL", lambda: epoch(PLAIN)), ("loader.plain", "v2", lambda: epoch(PLAIN_V2, loader=tensor_of)),
         ("loader.recipe", "PIL", lambda: epoch(RECIPE)),
         ("loader.recipe", "v2", lambda: epoch(RECIPE_V2, loader=tensor_of))]
ours, theirs = {}, {}
for _ in range(rounds):
    lines = subprocess.run([program, folder, str(workers)], check=True, capture_output=True, text=True).stdout
    for name, cpu, wall in map(str.split, lines.splitlines()):
        ours.setdefault(name, []).append((float(cpu), float(wall)))
    for name, peer, body in peers:
        theirs.setdefault((name, peer), []).append(body())


def median(pairs):
    return [statistics.median(p[i] for p in pairs) for i in range(2)]


print(f"{'piece':16} {'ours us':>9} {'peer us':>9} {'ratio':>6} {'ours /s':>9} {'peer /s':>9}  peer")
for (name, peer), pairs in list(theirs.items()) + [(("loader.kept", p), theirs["loader.recipe", p]) for p in ("PIL", "v2")]:
    (a, at), (b, bt) = median(ours[name]), median(pairs)
    print(f"{name:16} {a * 1e6:9.1f} {b * 1e6:9.1f} {b / a:6.2f} {1 / at:9.0f} {1 / bt:9.0f}  {peer}")
