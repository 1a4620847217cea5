#!/usr/bin/env python3
"""Makes the golden .h5 files of tests/io/keras.c: keras_files.py [3|2|old].

3: real Keras 3 files (needs keras and a backend). 2: real Keras 2 files (needs tf_keras). old: the form of Keras before
2.3, written by hand with h5py: a bare list of layers, no InputLayer, attributes of fixed-length bytes, split lists of
names, moments grouped by sort, dummies for amsgrad.

Every number follows from its place, so that the test can compute it: element i of weight n is
((31 i + 17 n) mod 64 - 32) / 64; the moments are weights number n + 100 and n + 200.
"""
import json
import os
import re
import sys

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPE = (8, 8, 2)
WEIGHTS = [(3, 3, 2, 2), (2,), (32, 3), (3,)]


def numbers(shape, n):
    i = np.arange(int(np.prod(shape)))
    return (((31 * i + 17 * n) % 64 - 32) / 64).astype("float32").reshape(shape)


def at(name):
    path = os.path.join(HERE, name)
    if os.path.exists(path):
        os.remove(path)
    return path


def layers(L, first):
    return [
        *first,
        L.Conv2D(2, 3, padding="same", activation="relu", name="conv2d", **({} if first else {"input_shape": SHAPE})),
        L.MaxPooling2D(2, name="max_pooling2d"),
        L.Flatten(name="flatten"),
        L.Dropout(0.25, name="dropout"),
        L.Dense(3, activation="sigmoid", name="dense"),
    ]


def fill(model):
    model.set_weights([numbers(w.shape, n) for n, w in enumerate(model.get_weights())])


def fill_optimizer(optimizer, variables):
    optimizer.build(variables)
    optimizer.iterations.assign(7)
    sort = {"momentum": 100, "velocity": 200, "m": 100, "v": 200}
    seen = {}
    for v in optimizer.variables() if callable(optimizer.variables) else optimizer.variables:
        word = next((w for w in re.split("[/_:]", v.name) if w in sort), None)
        if word:
            v.assign(numbers(v.shape, sort[word] + seen.setdefault(word, 0)))
            seen[word] += 1


def keras3():
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    L = keras.layers
    model = keras.Sequential(layers(L, [keras.Input(SHAPE)]), name="tiny")
    model.compile(optimizer=keras.optimizers.Adam(0.002, beta_1=0.8), loss="binary_crossentropy", metrics=["accuracy"])
    fill(model)
    fill_optimizer(model.optimizer, model.trainable_variables)
    model.save(at("keras3_adam.h5"))
    model.save_weights(at("keras3.weights.h5"))

    x = inputs = keras.Input((4, 4, 1))
    for layer in [L.Rescaling(1 / 255, offset=-0.5), L.Conv2D(2, (2, 1), strides=(1, 2), use_bias=False), L.ReLU(),
                  L.AveragePooling2D((2, 1), strides=1, padding="same"), L.Flatten(), L.Dense(2), L.Softmax()]:
        x = layer(x)
    model = keras.Model(inputs, x, name="chain")
    model.layers[2].trainable = False
    model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    fill(model)
    fill_optimizer(model.optimizer, model.trainable_variables)
    model.save(at("keras3_chain.h5"))


def keras2():
    import tf_keras as keras

    model = keras.Sequential(layers(keras.layers, []), name="tiny")
    model.compile(optimizer=keras.optimizers.Adam(0.002, beta_1=0.8), loss="binary_crossentropy", metrics=["accuracy"])
    fill(model)
    fill_optimizer(model.optimizer, model.trainable_variables)
    model.save(at("keras2_adam.h5"))
    model.save_weights(at("keras2_weights.h5"))


def old():
    def layer(class_name, name, **config):
        return {"class_name": class_name, "config": {"name": name, "trainable": True, **config}}

    config = [
        layer("Conv2D", "conv2d_1", batch_input_shape=[None, *SHAPE], filters=2, kernel_size=[3, 3], strides=[1, 1],
              padding="same", data_format="channels_last", dilation_rate=[1, 1], activation="relu", use_bias=True),
        layer("MaxPooling2D", "max_pooling2d_1", pool_size=[2, 2], padding="valid", strides=[2, 2],
              data_format="channels_last"),
        layer("Flatten", "flatten_1", data_format="channels_last"),
        layer("Dropout", "dropout_1", rate=0.25, noise_shape=None, seed=None),
        layer("Dense", "dense_1", units=3, activation="sigmoid", use_bias=True),
    ]
    names = [x["config"]["name"] for x in config]
    training = {"optimizer_config": {"class_name": "Adam", "config": {
        "lr": 0.002, "beta_1": 0.8, "beta_2": 0.999, "decay": 0.0, "epsilon": 1e-07, "amsgrad": False}},
        "loss": "binary_crossentropy", "metrics": ["accuracy"], "sample_weight_mode": None, "loss_weights": None}
    with h5py.File(at("keras_old.h5"), "w") as f:
        f.attrs["keras_version"] = np.bytes_("2.2.4")
        f.attrs["backend"] = np.bytes_("tensorflow")
        f.attrs["model_config"] = np.bytes_(json.dumps({"class_name": "Sequential", "config": config}))
        f.attrs["training_config"] = np.bytes_(json.dumps(training))
        g = f.create_group("model_weights")
        g.attrs["layer_names0"] = np.array(names[:2], "S")
        g.attrs["layer_names1"] = np.array(names[2:], "S")
        for name in names:
            has = {"conv2d_1": 0, "dense_1": 2}.get(name)
            w = [] if has is None else [f"{name}/kernel:0", f"{name}/bias:0"]
            layer_group = g.create_group(name)
            layer_group.attrs["weight_names"] = np.array(w, "S")
            for k, n in enumerate(w):
                layer_group[n] = numbers(WEIGHTS[has + k], has + k)
        g = f.create_group("optimizer_weights")
        state = [("Adam/iterations:0", np.int64(7))]
        state += [(f"training/Adam/Variable_{n}:0", numbers(s, 100 + n)) for n, s in enumerate(WEIGHTS)]
        state += [(f"training/Adam/Variable_{4 + n}:0", numbers(s, 200 + n)) for n, s in enumerate(WEIGHTS)]
        state += [(f"training/Adam/Variable_{8 + n}:0", np.zeros(1, "f4")) for n in range(4)]
        g.attrs["weight_names"] = np.array([n for n, _ in state], "S")
        for n, value in state:
            g[n] = value


if __name__ == "__main__":
    {"3": keras3, "2": keras2, "old": old}[sys.argv[1]]()
