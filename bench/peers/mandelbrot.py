"""The Mandelbrot picture of bench/mandelbrot.c by Numba's parallel loop, in turns with it, and the ratio (above 1: ours is
faster); counts are compared.

Usage: mandelbrot.py PROGRAM [rounds]
"""
import subprocess
import sys
import tempfile
import time

import numpy as np
from numba import njit, prange


@njit
def mandel(x, y, iterations):
    c = complex(x, y)
    z = 0.0j
    for i in range(iterations):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4:
            return i
    return iterations


@njit(parallel=True)
def create_fractal(x_min, x_max, y_min, y_max, image, iterations):
    height, width = image.shape
    dx, dy = (x_max - x_min) / width, (y_max - y_min) / height
    for row in prange(height):
        imag = y_min + row * dy
        for column in range(width):
            image[row, column] = mandel(x_min + column * dx, imag, iterations)


def peer(iterations):
    image = np.zeros((1024, 1536), np.int32)
    create_fractal(-2.0, 1.0, -1.0, 1.0, image, 1)  # compiles
    times = []
    for _ in range(7):
        start = time.perf_counter()
        create_fractal(-2.0, 1.0, -1.0, 1.0, image, iterations)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2], image


program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
print(f"{'piece':28} {'ours us':>10} {'peer us':>10} {'ratio':>6}  peer")
for iterations in (20, 1000):
    ours, theirs = [], []
    for _ in range(rounds):
        with tempfile.NamedTemporaryFile() as file:
            line = subprocess.run([program, str(iterations), file.name], check=True, capture_output=True, text=True).stdout
            name, seconds = line.split()
            counts = np.fromfile(file.name, np.int32).reshape(1024, 1536)
        ours.append(float(seconds))
        seconds, image = peer(iterations)
        theirs.append(seconds)
        assert (counts == image).all(), f"{(counts != image).sum()} counts differ"
    best, other = sorted(ours)[rounds // 2], sorted(theirs)[rounds // 2]
    print(f"{name:28} {best * 1e6:10.1f} {other * 1e6:10.1f} {other / best:6.2f}  Numba parallel", flush=True)
