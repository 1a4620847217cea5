"""Golden values for tests/data/colour.c from torchvision's functional (torchvision 0.29, torch 2.15).

    python tests/golden/torchvision_augment.py

Writes torchvision_augment/cases.npy (one row of numbers per case, the columns below) and torchvision_augment/want.npy (the
results of all cases one behind the other, [height, width, channels]). The pictures are made by a formula that the test
repeats. Where a crop's edge decides, which torchvision repeats, want is NaN, but for the picture's own edge.
"""
import pathlib

import numpy as np
import torch
import torchvision.transforms.functional as F
from torchvision.transforms import InterpolationMode

HERE = pathlib.Path(__file__).parent / "torchvision_augment"
COLUMNS = "height width channels top left part_height part_width down right".split()
COLUMNS += [f"jitter{i}" for i in range(4)] + [f"order{i}" for i in range(4)]
COLUMNS += "erase_top erase_left erase_height erase_width mean std".split()
OFF = dict.fromkeys(COLUMNS, 0) | dict(height=9, width=12, channels=3, order1=1, order2=2, order3=3, std=1)
CHANGES = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue]


def picture(height, width, channels):
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    return ((x * 37 + y * 101 + c * 59 + x * y * 7) % 256).astype(np.float32)


def beyond(length, first, part):
    at = (np.arange(length) + 0.5) * part / length - 0.5
    return (at < 0) & (first > 0) | (at > part - 1) & (first + part < length)


def expected(c):
    size = (c["height"], c["width"])
    x = torch.from_numpy(picture(*size, c["channels"])).permute(2, 0, 1) / 255
    edge = np.zeros(size, bool)
    if c["part_height"]:
        part = (c["top"], c["left"], c["part_height"], c["part_width"])
        x = F.resized_crop(x, *part, size, InterpolationMode.BILINEAR, antialias=False)
        edge = beyond(size[0], part[0], part[2])[:, None] | beyond(size[1], part[1], part[3])[None]
    if c["down"] or c["right"]:
        p = max(abs(c["down"]), abs(c["right"]))
        x = F.crop(F.pad(x, p), p - c["down"], p - c["right"], *size)
    for k in range(4):
        change = int(c[f"order{k}"])
        amount = c[f"jitter{change}"]
        if amount:
            x = CHANGES[change](x, amount + (change < 3))
    x = F.normalize(x, [c["mean"]] * c["channels"], [c["std"]] * c["channels"])
    if c["erase_height"]:
        x = F.erase(x, c["erase_top"], c["erase_left"], c["erase_height"], c["erase_width"], torch.zeros(()))
    x = x.permute(1, 2, 0).contiguous().numpy()
    x[edge] = np.nan
    return x


def cases():
    for size in dict(height=9, width=12), dict(height=16, width=16), dict(height=5, width=40):
        yield OFF | size
        yield OFF | size | dict(top=1, left=2, part_height=3, part_width=7)
        yield OFF | size | dict(part_height=size["height"], part_width=5, left=3)
        yield OFF | size | dict(part_height=4, part_width=5)
        yield OFF | size | dict(top=size["height"] - 3, part_height=3, left=size["width"] - 4, part_width=4)
        yield OFF | size | dict(down=2, right=-3)
        yield OFF | size | dict(erase_top=1, erase_left=2, erase_height=3, erase_width=4, mean=0.4, std=0.25)
    for channels in 1, 3:
        for i, amounts in enumerate([(-1, -0.5, -0.3), (0.4, 0.7, 1.5), (1, 1.3, 3)]):
            for which in range(3):
                yield OFF | {"channels": channels, f"jitter{which}": amounts[which], "mean": 0.1 * i, "std": 0.5}
    for turns in -0.5, -0.3, -0.01, 0.1, 0.25, 0.5:
        yield OFF | dict(jitter3=turns)
    generator = np.random.default_rng(1)
    for _ in range(24):
        order = generator.permutation(4)
        amounts = generator.uniform([-0.5, -0.5, -0.5, -0.5], [0.5, 0.5, 0.5, 0.5])
        yield OFF | {f"order{k}": int(order[k]) for k in range(4)} | {f"jitter{k}": amounts[k] for k in range(4)}


rows = list(cases())
HERE.mkdir(exist_ok=True)
np.save(HERE / "cases.npy", np.array([[r[c] for c in COLUMNS] for r in rows], np.float64))
np.save(HERE / "want.npy", np.concatenate([expected(r).ravel() for r in rows]).astype(np.float32))
