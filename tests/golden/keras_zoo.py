#!/usr/bin/env python3
"""keras_zoo.py FOLDER SEED [COUNT] [--small]: draws networks, as people put them together, and what real Keras answers.

For each network FOLDER has NAME.h5 or NAME.keras, NAME_x.npy (pictures n, height, width, channels) and NAME_y.npy
(answers), and FOLDER/list names them with the layers that were drawn. Weights are random, moving means and variances
too. `test.io.keras_zoo FOLDER` compares what Paracord answers. The golden ones of tests/golden/keras_zoo are
`keras_zoo.py keras_zoo 12 9 --small`.

`keras_zoo.py FOLDER --again` then loads what `test.io.keras_zoo FOLDER` wrote of each, with Keras, and compares.

Every network has something of each kind: an input (grey or colour, square or not), a preparation or none, a body (a
chain, residual blocks, branches that are joined, a model inside the model), an end (softmax, sigmoid, logits). Needs
keras 3 with any backend.
"""
import os
import sys
import zipfile

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np

L = keras.layers


class Draw:
    def __init__(self, seed, small):
        self.random = np.random.default_rng(seed)
        self.small = small
        self.words = []

    def one(self, *options):
        return options[int(self.random.integers(len(options)))]

    def some(self, chance):
        return self.random.random() < chance

    def word(self, text):
        self.words.append(text)


ACTIVATIONS = ["relu", "sigmoid", "tanh", "linear", "elu", "selu", "gelu", "silu", "softplus", "softsign", "relu6",
               "leaky_relu", "hard_sigmoid", "hard_silu", "exponential", "mish", "hard_tanh", "log_sigmoid"]


def activation_layer(d):
    kind = d.one("name", "relu", "relu6", "relu_slope", "threshold", "leaky", "elu", "prelu", "softmax")
    d.word("Activation:" + kind)
    if kind == "name":
        return L.Activation(d.one(*ACTIVATIONS))
    return {"relu": lambda: L.ReLU(), "relu6": lambda: L.ReLU(max_value=6.0),
            "relu_slope": lambda: L.ReLU(max_value=2.0, negative_slope=0.1),
            "threshold": lambda: L.ReLU(threshold=0.3, negative_slope=0.05),
            "leaky": lambda: L.LeakyReLU(negative_slope=0.15), "elu": lambda: L.ELU(alpha=0.7),
            "prelu": lambda: L.PReLU(shared_axes=d.one(None, [1, 2])), "softmax": lambda: L.Softmax()}[kind]()


def channels(d):
    return d.one(2, 4) if d.small else d.one(4, 6, 8, 12)


def convolution(d, x, stride=True):
    size = d.one(1, 2, 3, (3, 1), (2, 3), 5)
    h, w = size if isinstance(size, tuple) else (size, size)
    if x.shape[1] < 2 * h or x.shape[2] < 2 * w:
        size = 1
    kind = d.one("conv", "conv", "conv", "groups", "dilated", "depthwise", "separable")
    padding = d.one("same", "valid")
    strides = d.one(1, 2, (2, 1)) if stride and min(x.shape[1:3]) > 6 else 1
    options = dict(padding=padding, strides=strides, use_bias=d.some(0.7), activation=d.one(None, *ACTIVATIONS[:9]))
    if kind == "depthwise" and isinstance(strides, tuple):
        options["strides"] = 1
    if kind == "separable" and isinstance(strides, tuple):
        options["strides"] = 1
    d.word(kind)
    if kind == "dilated":
        options["strides"], options["dilation_rate"] = 1, d.one(2, (1, 2), 3)
        options["padding"] = "same"
    if kind == "groups":
        groups = d.one(*[g for g in (2, 3, 4) if x.shape[3] % g == 0] or [1])
        return L.Conv2D(groups * d.one(1, 2), size, groups=groups, **options)(x)
    if kind == "depthwise":
        return L.DepthwiseConv2D(size, depth_multiplier=d.one(1, 1, 2), **options)(x)
    if kind == "separable":
        return L.SeparableConv2D(channels(d), size, depth_multiplier=d.one(1, 2), **options)(x)
    return L.Conv2D(channels(d), size, **options)(x)


def pool(d, x):
    if min(x.shape[1:3]) < 4:
        return x
    kind = d.one(L.MaxPooling2D, L.AveragePooling2D)
    d.word(kind.__name__)
    return kind(d.one(2, 3, (2, 1)), strides=d.one(None, 1, 2), padding=d.one("valid", "same"))(x)


def frame(d, x):
    kind = d.one("pad", "pad", "crop", "up")
    d.word("frame:" + kind)
    if kind == "pad":
        return L.ZeroPadding2D(d.one(1, (2, 1), ((0, 1), (2, 0))))(x)
    if kind == "crop" and min(x.shape[1:3]) > 4:
        return L.Cropping2D(d.one(1, (1, 0), ((1, 0), (0, 2))))(x)
    return L.UpSampling2D(d.one((1, 2), 2))(x) if max(x.shape[1:3]) < 12 else x


def small_step(d, x):
    kind = d.one("norm", "norm", "norm", "activation", "activation", "drop", "layer_norm", "frame", "pool")
    if kind == "norm":
        d.word("BatchNormalization")
        return L.BatchNormalization(epsilon=d.one(1e-3, 1e-5), center=d.some(0.8), scale=d.some(0.8))(x)
    if kind == "activation":
        return activation_layer(d)(x)
    if kind == "drop":
        layer = d.one(L.Dropout(0.3), L.SpatialDropout2D(0.2), L.GaussianNoise(0.1), L.GaussianDropout(0.1))
        d.word(layer.__class__.__name__)
        return layer(x)
    if kind == "layer_norm":
        d.word("LayerNormalization")
        return L.LayerNormalization()(x)
    return frame(d, x) if kind == "frame" else pool(d, x)


def chain(d, x, n):
    for _ in range(n):
        x = convolution(d, x)
        for _ in range(d.one(0, 1, 1, 2)):
            x = small_step(d, x)
    return x


def residual(d, x):
    d.word("residual")
    y = L.Conv2D(x.shape[3], 3, padding="same", use_bias=False)(x)
    y = L.BatchNormalization()(y)
    y = L.ReLU()(y)
    y = L.Conv2D(x.shape[3], d.one(1, 3), padding="same")(y)
    y = L.BatchNormalization()(y)
    join = d.one(L.Add, L.Add, L.Subtract, L.Average, L.Maximum, L.Minimum, L.Multiply)
    d.word(join.__name__)
    return L.Activation("relu")(join()([y, x]))


def branches(d, x):
    d.word("Concatenate")
    parts = [L.Conv2D(channels(d), k, padding="same", activation="relu")(x) for k in (1, 3)]
    if d.some(0.5):
        parts.append(L.AveragePooling2D(3, strides=1, padding="same")(x))
    if d.some(0.3):
        parts.append(x)
    return L.Concatenate(axis=d.one(-1, 3))(parts)


def squeeze(d, x):
    """Squeeze and excitation: a weight for every channel."""
    d.word("squeeze")
    s = d.one(L.GlobalAveragePooling2D, L.GlobalMaxPooling2D)(keepdims=True)(x)
    s = L.Dense(2, activation="relu")(s)
    return L.Multiply()([x, L.Dense(x.shape[3], activation="sigmoid")(s)])


def inner(d, x):
    """A model in the model, called once or twice."""
    d.word("model inside")
    i = keras.Input(x.shape[1:])
    y = L.Conv2D(x.shape[3], 3, padding="same")(i)
    y = L.BatchNormalization()(y)
    if d.some(0.5):
        y = L.Add()([y, L.Conv2D(x.shape[3], 1)(i)])
        model = keras.Model(i, L.ReLU()(y))
    else:
        model = keras.Sequential([keras.Input(x.shape[1:]), L.Conv2D(x.shape[3], 3, padding="same"),
                                  L.BatchNormalization(), L.Activation("silu")])
    if d.some(0.4):
        model.trainable = False
    x = model(x)
    return model(x) if d.some(0.5) else x


def shared(d, x):
    d.word("shared")
    layer = L.Conv2D(x.shape[3], 3, padding="same", activation="tanh")
    return layer(layer(x))


def arithmetic(d, x):
    d.word("arithmetic")
    y = keras.ops.relu6(x * 2.0 + 0.25)
    return keras.ops.gelu(1.0 - y, approximate=True) + x / 3.0


def graph(d, x, ops):
    for _ in range(d.one(1, 2) if d.small else d.one(2, 3, 4)):
        kinds = [residual, residual, branches, squeeze, inner, shared] + ([arithmetic] if ops else [])
        x = d.one(*kinds)(d, x)
        if d.some(0.4):
            x = small_step(d, x)
    return x


def prepare(d, x, shape):
    kind = d.one("none", "none", "rescaling", "offset", "normalization", "both", "given")
    d.word("prepare:" + kind)
    if kind in ("rescaling", "both"):
        x = L.Rescaling(1 / 255)(x)
    if kind == "offset":
        x = L.Rescaling(1 / 127.5, offset=-1)(x)
    if kind in ("normalization", "both"):
        layer = L.Normalization()
        layer.adapt(d.random.uniform(0, 255 if kind == "normalization" else 1, (8, *shape)).astype("f4"))
        x = layer(x)
    if kind == "given":
        x = L.Normalization(mean=[120.0] * shape[2], variance=[3000.0 + i for i in range(shape[2])])(x)
    return x, kind


def end(d, x):
    kind = d.one("flatten", "flatten", "average", "max", "conv")
    d.word("end:" + kind)
    if kind == "conv":
        x = L.Reshape((-1,))(L.GlobalAveragePooling2D(keepdims=True)(L.Conv2D(5, 1)(x)))
    else:
        x = {"flatten": L.Flatten, "average": L.GlobalAveragePooling2D, "max": L.GlobalMaxPooling2D}[kind]()(x)
    for _ in range(d.one(0, 1, 2)):
        x = L.Dense(d.one(4, 8), activation=d.one("relu", "tanh", "gelu", None))(x)
        x = d.one(L.Dropout(0.5), L.BatchNormalization(), L.LeakyReLU(0.1), L.Activation("selu"))(x)
    last = d.one("softmax", "sigmoid", "logits", "softmax layer")
    d.word(last)
    if last == "softmax":
        return L.Dense(3, activation="softmax")(x)
    if last == "sigmoid":
        return L.Dense(1, activation="sigmoid")(x)
    x = L.Dense(4)(x)
    return L.Softmax()(x) if last == "softmax layer" else x


def network(d, native):
    size = d.one((8, 8), (7, 10)) if d.small else d.one((16, 16), (13, 18), (20, 11), (24, 24))
    shape = (*size, d.one(1, 3, 3))
    inputs = keras.Input(shape)
    d.word("x".join(map(str, shape)))
    x, prepared = prepare(d, inputs, shape)
    x = chain(d, x, 1 if d.small else d.one(1, 2, 3))
    if d.some(0.6):
        x = graph(d, x, ops=native and d.some(0.4))
    outputs = end(d, x)
    model = keras.Model(inputs, outputs)
    layers = model.layers[1:]
    plain = all(len(layer._inbound_nodes) == 1 for layer in layers) and "Functional" in type(model).__name__
    straight = plain and not any(isinstance(n, (L.Add, L.Concatenate)) for n in layers)
    if straight and d.some(0.6):
        try:
            sequential = keras.Sequential([keras.Input(shape), *layers])
            if np.allclose(sequential(np.ones((1, *shape), "f4")), model(np.ones((1, *shape), "f4"))):
                d.word("Sequential")
                model = sequential
        except ValueError:
            pass
    return model, shape, prepared


def disturb(d, model):
    """Weights as training leaves them: nothing is 0 or 1 any more."""
    for layer in model._flatten_layers():
        if isinstance(layer, keras.Model) or not layer.weights:
            continue
        for w in layer.weights:
            value = np.asarray(w)
            if isinstance(layer, L.Normalization):
                continue
            if w.name.startswith("moving_variance"):
                w.assign(d.random.uniform(0.5, 2, value.shape))
            elif w.name in ("gamma",):
                w.assign(d.random.uniform(0.5, 1.5, value.shape))
            elif value.ndim == 1 or w.name == "alpha":
                w.assign(d.random.uniform(-0.3, 0.3, value.shape))


def deflate(path):
    """Keras stores; whoever packs the archive again may deflate."""
    with zipfile.ZipFile(path) as archive:
        files = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files:
            archive.writestr(name, content)


def make(folder, seed, number, small):
    d = Draw([seed, number], small)
    keras.utils.set_random_seed(seed * 1000 + number)
    native = number % 4 != 0 if small else number % 2 == 1
    model, shape, prepared = network(d, native)
    disturb(d, model)
    if d.some(0.5):
        model.compile(optimizer=d.one("adam", "sgd", "rmsprop"), loss="categorical_crossentropy")
    name = f"{number:03d}"
    path = os.path.join(folder, name + (".keras" if native else ".h5"))
    model.save(path)
    if small and native and number != 7:
        deflate(path)
    most = 255 if prepared != "none" else 1
    x = d.random.uniform(0, most, (1 if small else 4, *shape)).astype("f4")
    y = np.asarray(model.predict(x, verbose=0)).astype("f4")
    if not np.isfinite(y).all() or np.abs(y).max() > 1e3:
        os.remove(path)
        return None
    np.save(os.path.join(folder, name + "_x.npy"), x)
    np.save(os.path.join(folder, name + "_y.npy"), y)
    return f"{os.path.basename(path)} {' '.join(w.replace(' ', '_') for w in d.words)}"


def unknown(folder):
    """A layer that Paracord does not have."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6, 8, 1)), L.Conv2D(2, 3, name="first"),
                              L.Conv2DTranspose(3, 3, name="wider"), L.Flatten(name="flat"),
                              L.Dense(2, activation="softmax", name="last")], name="unknown")
    model.save(os.path.join(folder, "unknown.keras"))
    deflate(os.path.join(folder, "unknown.keras"))


def refused(folder):
    """Models that are refused as a whole, though each layer of the first two is known."""
    keras.utils.set_random_seed(4)
    left, right = keras.Input((6, 8, 3), name="left"), keras.Input((5,), name="right")
    x = L.Flatten(name="flat")(L.Conv2D(2, 3, name="first")(left))
    both = L.Concatenate(name="both")([x, L.Dense(4, name="beside")(right)])
    keras.Model([left, right], L.Dense(2, name="last")(both)).save(os.path.join(folder, "two_inputs.h5"))
    keras.Model(left, [L.Dense(2, name="last")(x), L.Dense(3, name="other")(x)]).save(
        os.path.join(folder, "two_outputs.keras"))
    keras.Sequential([keras.Input((4, 4, 4, 1)), L.Conv3D(2, 3, name="deep"), L.Flatten(name="flat"),
                      L.Dense(2, name="last")]).save(os.path.join(folder, "volume.keras"))


def row(folder, name):
    with open(os.path.join(folder, "list")) as rows:
        return next(r for r in rows if r.startswith(name))


def check_again(folder):
    """Keras loads what Paracord wrote of the networks, and answers as it did for its own."""
    right = count = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith("_again.h5"):
            continue
        x, y = (np.load(os.path.join(folder, f"{name[:3]}_{part}.npy")) for part in "xy")
        model = keras.models.load_model(os.path.join(folder, name))
        if "prepare:rescaling" in row(folder, name[:3]) or "prepare:both" in row(folder, name[:3]):
            x = x / 255
        off = float(np.abs(model.predict(x, verbose=0) - y).max() / max(1, np.abs(y).max()))
        count += 1
        right += off <= 1e-5
        print("ok " if off <= 1e-5 else "BAD", name, off)
    print(right, "of", count)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sys.argv[2] == "--again":
        return check_again(sys.argv[1])
    folder, seed = sys.argv[1], int(sys.argv[2])
    small = "--small" in sys.argv
    count = int(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] != "--small" else 40
    os.makedirs(folder, exist_ok=True)
    rows, number = [], 0
    while len(rows) < count:
        row = make(folder, seed, number, small)
        rows += [row] if row else []
        number += 1
    if small:
        unknown(folder)
        refused(folder)
    with open(os.path.join(folder, "list"), "w") as f:
        f.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
