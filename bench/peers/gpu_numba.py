"""The kernels of bench/gpu.c that people write in Numba: add, saxpy, the Mandelbrot set. measure() gives a dictionary by
piece, in the units of bench/gpu.c."""
import statistics
import time

import numpy as np

if not hasattr(np, "row_stack"):  # Numba still asks for it
    np.row_stack = np.vstack
from numba import cuda

LARGE, ROUNDS = 1 << 28, 15


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < a.size:
        c[i] = a[i] + b[i]


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@cuda.jit(device=True)
def mandel(x, y, iterations):
    c = complex(x, y)
    z = 0.0j
    for i in range(iterations):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4:
            return i
    return iterations


@cuda.jit
def create_fractal(x_min, x_max, y_min, y_max, image, iterations):
    height, width = image.shape
    dx, dy = (x_max - x_min) / width, (y_max - y_min) / height
    column, row = cuda.grid(2)
    if column < width and row < height:
        image[row, column] = mandel(x_min + column * dx, y_min + row * dy, iterations)


def device_seconds(body, times=1):
    results = []
    for i in range(-2, ROUNDS):
        start, end = cuda.event(), cuda.event()
        start.record()
        for _ in range(times):
            body()
        end.record()
        end.synchronize()
        if i >= 0:
            results.append(cuda.event_elapsed_time(start, end) * 1e-3 / times)
    return statistics.median(results)


def measure():
    out = {}
    picture = cuda.to_device(np.zeros((1024, 1536), np.int32))
    cuda.synchronize()
    grid, block = (48, 128), (32, 8)
    start = time.perf_counter()
    create_fractal[grid, block](-2.0, 1.0, -1.0, 1.0, picture, 20)
    cuda.synchronize()
    out["mandelbrot.first"] = (time.perf_counter() - start) * 1e6
    for iterations in (20, 1000):
        body = lambda: create_fractal[grid, block](-2.0, 1.0, -1.0, 1.0, picture, iterations)
        out[f"mandelbrot.{iterations}"] = device_seconds(body, 20) * 1e6
    a, b, c = (cuda.to_device(np.ones(LARGE, np.float32)) for _ in range(3))
    out["add"] = LARGE * 12 / device_seconds(lambda: add[LARGE // 256, 256](a, b, c)) * 1e-12
    out["saxpy"] = LARGE * 12 / device_seconds(lambda: saxpy[LARGE // 256, 256](np.float32(1e-9), a, b)) * 1e-12
    return out
