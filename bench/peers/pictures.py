"""bench/pictures.c in Pillow and Keras, in turns with it, and the ratio.

Usage: taskset -c 0 python pictures.py PROGRAM FOLDER [rounds]     (KERAS_BACKEND=torch where there is no TensorFlow)
FOLDER is searched for .jpg files. Each round runs our program once and then the peers once over all files; shown are
medians over the rounds, CPU time per picture.
"""
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.ndimage
from PIL import Image

scipy.ndimage.interpolation = scipy.ndimage  # the name that Keras's legacy file uses
from keras.src.legacy.preprocessing.image import ImageDataGenerator  # noqa: E402

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 7
files = sorted(map(str, folder.rglob("*.jpg")))
generator = ImageDataGenerator(shear_range=0.2, zoom_range=0.2, horizontal_flip=True, rescale=1 / 255)
picture = np.zeros((64, 64, 3), np.float32)


def resized(how):
    return lambda path: Image.open(path).convert("RGB").resize((64, 64), how)


def drafted(path):
    image = Image.open(path)
    image.draft("RGB", (64, 64))
    return image.convert("RGB").resize((64, 64), Image.BOX)


peers = {
    "Pillow nearest": ("pictures.nearest", resized(Image.NEAREST), files),
    "Pillow bilinear": ("pictures.area", resized(Image.BILINEAR), files),
    "Pillow box": ("pictures.area", resized(Image.BOX), files),
    "Pillow draft, box": ("pictures.area", drafted, files),
    "Pillow": ("pictures.whole", lambda path: Image.open(path).convert("RGB"), files),
    "Keras": ("pictures.augment", lambda _: generator.standardize(generator.random_transform(picture)), range(300)),
}
ours, theirs = {}, {}
for _ in range(rounds):
    lines = subprocess.run([program, "1", *files], check=True, capture_output=True, text=True).stdout.splitlines()
    for name, seconds in map(str.split, lines):
        ours.setdefault(name, []).append(float(seconds))
    for peer, (_, body, items) in peers.items():
        start = time.process_time()
        for item in items:
            body(item)
        theirs.setdefault(peer, []).append((time.process_time() - start) / len(items))
print(f"{'piece':28} {'ours us':>10} {'peer us':>10} {'ratio':>6}  peer")
for peer, (name, _, _) in peers.items():
    a, b = statistics.median(ours[name]), statistics.median(theirs[peer])
    print(f"{name:28} {a * 1e6:10.3f} {b * 1e6:10.3f} {b / a:6.2f}  {peer}")
