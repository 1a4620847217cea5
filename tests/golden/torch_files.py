#!/usr/bin/env python3
"""Makes the files of torch/: what torch.save writes, for tests/io/torch_file.c.

    python3 torch_files.py

new.pth and old.pth have the same state dict in today's form and in that of before PyTorch 1.6: numbers that follow from their
places, in each dtype; tensors that share a storage; a parameter; an empty one, and one without dimensions. protocol4.pth and
old4.pth have it as pickles of another protocol; unsigned.pth has the dtypes that came later. nested.pth has several networks in
dictionaries, one more time each way: settings.pth beside what only has the name of one and what torch.load takes besides, twice.pth under two names of which each
could be it; parallel.pth has the names that DataParallel gives, turned.pth tensors in other orders than C's. pieces.pth has
some that do not lie in one piece, empty.pth one without numbers that begins behind its storage, and negated.pth one that is to be
negated. The others are refused: round.pth, whose dictionaries
contain each other, and keyed.pth, of tensors without names; a whole network, and a pickle that would have Python run a command.
"""
import collections
import io
import os
import pathlib
import pickle
import zipfile

import torch

folder = pathlib.Path(__file__).parent / "torch"
folder.mkdir(exist_ok=True)


def numbers(shape, dtype):
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(count) % 7 - 2 * (dtype not in (torch.uint8, torch.bool))).reshape(shape).to(dtype)


def state():
    made = collections.OrderedDict()
    for name in ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"):
        made["of." + name] = numbers((2, 3), getattr(torch, name))
    rows = numbers((4, 5), torch.float32)
    made["rows.all"], made["rows.last"], made["rows.again"] = rows, rows[2:], rows
    made["parameter"] = torch.nn.Parameter(numbers((3,), torch.float32))
    made["empty"] = torch.empty(0, 4)
    made["scalar"] = torch.tensor(5)
    return made


torch.save(state(), folder / "new.pth")
torch.save(state(), folder / "old.pth", _use_new_zipfile_serialization=False)
torch.save({"epoch": 3, "rate": 0.5, "steps": 1 << 40, "name": "run", "none": None, "model": state(), "list": [1, "a", True]},
           folder / "training.pth")
torch.save(state(), folder / "protocol4.pth", pickle_protocol=4)
torch.save(state(), folder / "old4.pth", pickle_protocol=4, _use_new_zipfile_serialization=False)
late = {name: (torch.arange(6) % 7).reshape(2, 3).to(getattr(torch, name)) for name in ("uint16", "uint32", "uint64", "complex64")}
torch.save(late | {"last": late["uint32"][1:]}, folder / "unsigned.pth")
beside = {"counter": collections.Counter({30: 1}), "device": torch.device("cuda:0"), "dtype": torch.float32,
          "layout": torch.strided, "size": torch.Size([1, 2]), "set": {1, 2}, "bytes": b"ab", "more": bytearray(b"ab"), "complex": 1j}
net = {"0.weight": numbers((2, 3), torch.float32), "0.bias": numbers((2,), torch.float32)}
torch.save({"epoch": 3, "generator": net, "other": {"body": net, "": numbers((1,), torch.float32)},
            "optimizer": {"state": {0: {"step": torch.tensor(5.), "exp_avg": numbers((2, 3), torch.float32)}},
                          "param_groups": [{"lr": 0.1, "params": [0]}]},
            "list": [numbers((3,), torch.float32), 1, [numbers((2,), torch.float32)]]}, folder / "nested.pth")
torch.save({"model": {"layers": 3}, "state_dict": net, "optimizer": {"state": {0: net}}, "beside": beside}, folder / "settings.pth")
torch.save({"model": net, "state_dict": net}, folder / "twice.pth")
torch.save({"module." + name: value for name, value in net.items()}, folder / "parallel.pth")
torch.save({(1, 2): net}, folder / "keyed.pth")
around = {"0.weight": net["0.weight"]}
around["around"] = around
torch.save(around, folder / "round.pth")
torch.save({"negated": torch._neg_view(numbers((4,), torch.float32)), "sound": numbers((3,), torch.float32)}, folder / "negated.pth")
torch.save({"turned": numbers((4, 5), torch.float32).t(),
            "last": numbers((2, 4, 5, 3), torch.float32).permute(0, 3, 1, 2),
            "one": numbers((5, 1, 4), torch.int16).permute(2, 1, 0), "empty": torch.empty(0, 4).t()}, folder / "turned.pth")
torch.save({"every.second": numbers((8,), torch.float32)[::2], "columns": numbers((4, 6), torch.float32)[1:, 1:3],
            "expanded": numbers((3, 1), torch.int64).expand(3, 4), "wider": numbers((4, 6), torch.int16)[::2, 1::2].t(),
            "nothing": numbers((4, 6), torch.float32)[:, 6::2], "sound": numbers((3,), torch.float32)}, folder / "pieces.pth")
torch.save({"sound": numbers((3,), torch.float32), "empty": torch.empty(0, 3)[:, 1]}, folder / "empty.pth")
torch.save(torch.nn.Linear(2, 2), folder / "network.pth")


class Harm:
    def __reduce__(self):
        return os.system, ("echo harm > /tmp/paracord-harm",)


data = io.BytesIO()
pickle.Pickler(data, 2).dump({"weight": Harm()})
with zipfile.ZipFile(folder / "harm.pth", "w") as archive:
    archive.writestr("harm/data.pkl", data.getvalue())
with zipfile.ZipFile(folder / "packed.pth", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("packed/data.pkl", data.getvalue())

# Seeds of tests/fuzz/torch.c: pickles alone, which it puts into an archive, and two small files.
seeds = folder.parent.parent / "fuzz/corpus/torch"
one = torch.arange(24, dtype=torch.float32)
small = collections.OrderedDict(weight=one[:6].reshape(3, 2), bias=one[6:9])


def pickled(value):
    data = io.BytesIO()
    torch.save(value, data)
    with zipfile.ZipFile(data) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))


for name, value in (("state", small), ("network", torch.nn.Linear(2, 3)),
                    ("parameter", {name: torch.nn.Parameter(t) for name, t in small.items()}),
                    ("training", {"epoch": 3, "lr": 0.5, "state_dict": small, "list": [1, None, True, "a"], "n": 1 << 40})):
    (seeds / f"{name}.pkl").write_bytes(pickled(value))
torch.save({name: t.half() for name, t in small.items()}, seeds / "half.pth")
torch.save({"weight": one[:6].reshape(3, 2).double(), "bias": torch.tensor(1.)}, seeds / "old.pth",
           _use_new_zipfile_serialization=False)
