#!/usr/bin/env python3
"""keras_preparation.py FOLDER: networks whose first layers prepare the picture, each written in another way.

FOLDER has NAME.keras (NAME.h5 for some), x.npy (pictures n, height, width, channels) and NAME_y.npy (what Keras answers).
`tests/train/preparation.c` reads tests/golden/keras_preparation. Needs keras 3 with any backend.
"""
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras.applications import imagenet_utils

L = keras.layers
MEAN = np.array([120, 110, 100], "float32")
STD = np.array([60, 50, 40], "float32")


def keras_mode(mode):
    return lambda x: imagenet_utils.preprocess_input(x, data_format="channels_last", mode=mode)


WAYS = {
    "divided.h5": lambda x: x / 127.5 - 1,
    "centred.keras": lambda x: (x - 127.5) * (1 / 127.5),
    "turned.keras": lambda x: 1 - x / 255,
    "channels.h5": lambda x: (x - MEAN) / STD,
    "functions.keras": lambda x: keras.ops.divide(keras.ops.subtract(x, MEAN), STD),
    "offset.keras": L.Rescaling(1 / 127.5, offset=-1),
    "lists.keras": L.Rescaling([1 / 60, 1 / 50, 1 / 40], offset=[-2, -2.2, -2.5]),
    "statistics.h5": L.Normalization(mean=MEAN, variance=STD * STD),
    "both.keras": lambda x: L.Normalization(mean=[0.4, 0.5, 0.6], variance=[0.04, 0.05, 0.06])(L.Rescaling(1 / 255)(x)),
    "tf.keras": keras_mode("tf"),
    "torch.keras": keras_mode("torch"),
    "caffe.keras": keras_mode("caffe"),
    "reversed.keras": lambda x: x[..., ::-1] - MEAN,
    "flipped.keras": lambda x: keras.ops.flip(x, axis=-1) - MEAN,
    "branches.keras": lambda x: L.Concatenate()([L.Rescaling(1 / 255)(x), L.Rescaling(1 / 127.5, offset=-1)(x)]),
}


def main(folder):
    keras.utils.set_random_seed(5)
    os.makedirs(folder, exist_ok=True)
    pictures = np.random.default_rng(1).integers(0, 256, (2, 6, 6, 3)).astype("float32")
    np.save(f"{folder}/x.npy", pictures)
    for name, way in WAYS.items():
        picture = keras.Input((6, 6, 3))
        x = L.Conv2D(2, 3, activation="tanh", kernel_initializer=keras.initializers.RandomNormal(0, 0.05))(way(picture))
        model = keras.Model(picture, L.Dense(3, activation="softmax")(L.Flatten()(x)))
        model.save(f"{folder}/{name}")
        np.save(f"{folder}/{name.split('.')[0]}_y.npy", model.predict(pictures, verbose=0))


def sizes(folder):
    """Networks of any size, and one that needs one after all; what the first answers for pictures of two sizes."""
    keras.utils.set_random_seed(6)

    def end(x):
        x = L.Conv2D(4, 3, strides=2, padding="same", activation="tanh")(x)
        return L.Dense(3, activation="softmax")(L.GlobalAveragePooling2D()(x))

    picture = keras.Input((None, None, 3))
    x = L.Conv2D(4, 3, padding="same", activation="relu", name="first")(L.Rescaling(1 / 255)(picture))
    x = L.MaxPooling2D(2, name="halved")(x)
    model = keras.Model(picture, end(x))
    model.save(f"{folder}/any.keras")
    for height, width in ((6, 6), (9, 14)):
        pictures = np.random.default_rng(height).integers(0, 256, (1, height, width, 3)).astype("float32")
        np.save(f"{folder}/any_{height}_x.npy", pictures)
        np.save(f"{folder}/any_{height}_y.npy", model.predict(pictures, verbose=0))
    x = L.Reshape((4, 4, 4), name="squares")(L.Conv2D(4, 3)(picture))
    keras.Model(picture, L.Dense(2, activation="softmax")(L.Flatten(name="flat")(x))).save(f"{folder}/reshaped.keras")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
    sizes(sys.argv[1])
