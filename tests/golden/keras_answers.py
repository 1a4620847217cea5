#!/usr/bin/env python3
"""keras_answers.py: what real Keras answers for the golden models, and a model with every kind of padding.

Writes keras_same.h5, and for each model NAME_x.npy (pictures n, height, width, channels) and NAME_y.npy (answers).
Run in this folder with Keras 3; tests/io/keras_module.c compares ours to 1e-5.
"""
import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np

L = keras.layers
random = np.random.default_rng(3)


def same_model():
    """Strides and windows for which "same" pads one row or column more at the end."""
    model = keras.Sequential([keras.Input((13, 10, 3)), L.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
                              L.MaxPooling2D(2, padding="same"), L.Conv2D(3, (2, 3), padding="same"), L.ReLU(),
                              L.AveragePooling2D(3, padding="same"), L.Flatten(), L.Dense(3, activation="softmax")])
    model.save("keras_same.h5")


same_model()
for name in ("keras_same", "keras3_adam", "keras2_adam"):
    model = keras.models.load_model(name + ".h5")
    x = random.uniform(0, 1, (3, *model.input_shape[1:])).astype("f4")
    np.save(name + "_x.npy", x)
    np.save(name + "_y.npy", np.asarray(model.predict(x, verbose=0)).astype("f4"))
    print(name, model.input_shape, model.predict(x, verbose=0)[0])
