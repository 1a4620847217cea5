#!/usr/bin/env python3
"""keras_check.py PARACORD_BINARY: do Paracord and real Keras agree, in both directions?

1. `paracord train` writes a model.h5; Keras loads it, compiled, and gives the probabilities that `paracord predict
   --json` gives, to 1e-5, of raw pixels; and Keras's own reader restores the optimizer's state. Saved again by Keras,
   the file still says how pictures are prepared and what the classes are called.
2. Keras saves models; `paracord predict` gives the probabilities that Keras gives.

Needs keras (any backend), h5py, pillow and numpy. Pictures are PNG of the model's size, so that neither decoding nor
resizing is in question. Exit code 0 when all agree.
"""
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "torch")

import h5py
import keras
import numpy as np
from PIL import Image

TOLERANCE = 1e-5
SIZE = 32
L = keras.layers


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def make_pictures(folder, per_class=12):
    """Two classes that differ: stripes and noise."""
    random = np.random.default_rng(1)
    paths = []
    for name in ("noise", "stripes"):
        os.makedirs(os.path.join(folder, name))
        for i in range(per_class):
            pixels = random.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
            if name == "stripes":
                pixels[:: 2 + i % 3] //= 4
            paths.append(os.path.join(folder, name, f"{i}.png"))
            Image.fromarray(pixels).save(paths[-1])
    return paths


def load(paths, scale):
    return np.stack([np.asarray(Image.open(p).convert("RGB"), np.float32) for p in paths]) * np.float32(scale)


def paracord_probabilities(binary, model_path, paths):
    """One probability a file: of the second class, as a network with one output gives it."""
    answer = json.loads(run(binary, "predict", model_path, *paths, "--json"))
    rows = answer["predictions"] if isinstance(answer, dict) else answer
    by_file = {row["file"]: row["sigmoid"] for row in rows}
    return np.array([by_file[p] for p in paths])


def agree(what, ours, theirs):
    worst = float(np.abs(ours - theirs).max())
    good = worst <= TOLERANCE
    print(f"{'ok ' if good else 'BAD'} {what}: largest difference {worst:.2e} over {len(ours)} pictures")
    return good


def state_restores(model_path, model):
    """The optimizer's state through Keras's own reader, into an optimizer built for the model. (Keras's load_model for
    .h5 itself builds the optimizer without variables, also for its own files: it restores two numbers of it.)"""
    from keras.src.legacy.saving import legacy_h5_format

    with h5py.File(model_path) as file:
        if "optimizer_weights" not in file:
            print("--  the model has no optimizer state")
            return True
        optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
        optimizer.build(model.trainable_variables)
        values = legacy_h5_format.load_optimizer_weights_from_hdf5_group(file)
        good = len(values) == len(optimizer.variables)
        good = good and all(tuple(v.shape) == tuple(w.shape) for v, w in zip(optimizer.variables, values))
        if good:
            optimizer.set_weights(values)
            good = int(optimizer.iterations) == int(model.optimizer.iterations) > 0
    print(f"{'ok ' if good else 'BAD'} the optimizer's state: {len(values)} variables")
    return good


def says_the_same(binary, path, again):
    """Class names and preparation are in both files."""
    first, second = (json.loads(run(binary, "show", p, "--json")) for p in (path, again))
    good = first["classes"] == second["classes"] == ["noise", "stripes"]
    good = good and first["preparation"]["values"] == second["preparation"]["values"]
    print(f"{'ok ' if good else 'BAD'} class names and preparation, saved again: {second['preparation']}")
    return good


def paracord_to_keras(binary, folder, paths):
    good = True
    for arch in ("article", "two-conv"):
        out = os.path.join(folder, arch)
        run(binary, "train", os.path.join(folder, "pictures"), "--val-split", "0.25", "--arch", arch, "--size", str(SIZE),
            "--epochs", "1", "--batch", "8", "--seed", "1", "--out", out)
        path = os.path.join(out, "model.h5")
        model = keras.models.load_model(path, compile=True)
        theirs = model.predict(load(paths, 1), verbose=0)[:, 0]
        ours = paracord_probabilities(binary, path, paths)
        good &= agree(f"{arch}: written by Paracord, read by Keras", ours, theirs)
        again = os.path.join(out, "again.h5")
        model.save(again)
        good &= agree(f"{arch}: saved again by Keras", paracord_probabilities(binary, again, paths), theirs)
        good &= says_the_same(binary, path, again)
        good &= state_restores(path, model)
    return good


def keras_models():
    inputs = [keras.Input((SIZE, SIZE, 3))]
    yield "valid", [*inputs, L.Conv2D(8, 3, strides=3, activation="relu"), L.MaxPooling2D(2), L.Flatten(),
                    L.Dense(16, activation="relu"), L.Dense(1, activation="sigmoid")]
    yield "same", [*inputs, L.Conv2D(8, 3, padding="same", strides=2), L.ReLU(), L.AveragePooling2D(3, padding="same"),
                   L.Conv2D(4, (2, 3), padding="same", activation="tanh"), L.Flatten(), L.Dropout(0.5), L.Dense(1),
                   L.Activation("sigmoid")]


def keras_to_paracord(binary, folder, paths):
    good = True
    for name, layers in keras_models():
        keras.utils.set_random_seed(2)
        model = keras.Sequential(layers)
        model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
        x = load(paths, 1 / 255)
        model.fit(x, np.arange(len(x)) % 2, epochs=1, verbose=0)
        path = os.path.join(folder, name + ".h5")
        model.save(path)
        theirs = model.predict(x, verbose=0)[:, 0]
        good &= agree(f"{name}: written by Keras, read by Paracord", paracord_probabilities(binary, path, paths), theirs)
    return good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    binary = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        paths = make_pictures(os.path.join(folder, "pictures"))
        good = paracord_to_keras(binary, folder, paths) & keras_to_paracord(binary, folder, paths)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
