"""Golden values for tests/data/augment.c from Keras's ImageDataGenerator (keras 3, scipy, pillow).

    KERAS_BACKEND=torch python tests/golden/augment.py

Writes augment/cases.npy (one row of numbers per case, the columns below) and augment/want.npy (the results of all cases
one behind the other). The pictures are made by a formula that the test repeats.
"""
import pathlib

import numpy as np
import scipy.ndimage

scipy.ndimage.interpolation = scipy.ndimage  # the name that Keras's legacy file uses; scipy 1.15 took it away
from keras.src.legacy.preprocessing.image import ImageDataGenerator  # noqa: E402

FILLS = ["nearest", "constant", "reflect", "wrap"]
OFF = dict(theta=0, tx=0, ty=0, shear=0, zx=1, zy=1, channel_shift=0, brightness=-1, flip_h=0, flip_v=0)
HERE = pathlib.Path(__file__).parent / "augment"


def picture(height, width, channels):
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    return ((x * 37 + y * 101 + c * 59 + x * y * 7) % 256).astype(np.float32)


def expected(size, values, fill, cval, rescale):
    generator = ImageDataGenerator(fill_mode=FILLS[fill], cval=cval, rescale=rescale or None)
    parameters = {k: values[k] for k in ("theta", "tx", "ty", "shear", "zx", "zy")}
    parameters.update(flip_horizontal=bool(values["flip_h"]), flip_vertical=bool(values["flip_v"]))
    if values["channel_shift"]:
        parameters["channel_shift_intensity"] = values["channel_shift"]
    if values["brightness"] >= 0:
        parameters["brightness"] = values["brightness"]
    return generator.standardize(generator.apply_transform(picture(*size), parameters))


def cases():
    sizes = [(9, 12, 3), (12, 9, 3), (9, 9, 1)]
    warps = [
        dict(shear=0.2, zx=0.83, zy=1.17),
        dict(theta=17.0, tx=1.3, ty=-0.7, shear=9.0, zx=1.4, zy=0.7, flip_h=1),
        dict(tx=-2.25, ty=1.5, flip_v=1),
        dict(theta=-130.0, zx=3.1, zy=2.7, flip_h=1, flip_v=1),
    ]
    for fill in range(4):
        for i, warp in enumerate(warps):
            yield sizes[(fill + i) % 3], warp, fill, 33.0, 0
    yield sizes[0], dict(), 0, 0, 1 / 255
    yield sizes[1], dict(flip_h=1), 0, 0, 1 / 255
    yield sizes[2], dict(flip_v=1, flip_h=1), 0, 0, 0
    yield sizes[0], dict(theta=30.0, channel_shift=40.5), 1, -20.0, 1 / 255
    yield sizes[1], dict(channel_shift=-31.25, flip_h=1), 0, 0, 0
    yield sizes[0], dict(brightness=0.37), 0, 0, 0
    yield sizes[2], dict(brightness=1.83, flip_v=1, channel_shift=11.0), 0, 0, 1 / 255
    yield sizes[0], dict(shear=12.0, brightness=0.8), 1, 300.0, 0
    yield (2, 3, 4), dict(theta=45.0, zx=0.5, zy=0.6), 2, 0, 0
    yield (1, 7, 3), dict(theta=10.0, zx=1.5), 0, 0, 0


rows, results = [], []
for size, some, fill, cval, rescale in cases():
    values = {**OFF, **some}
    rows.append([*size, *values.values(), fill, cval, rescale])
    results.append(expected(size, values, fill, cval, rescale).astype(np.float32).ravel())
HERE.mkdir(exist_ok=True)
np.save(HERE / "cases.npy", np.array(rows, np.float64))
np.save(HERE / "want.npy", np.concatenate(results))
print(len(rows), "cases,", sum(map(len, results)), "values")
