/* mandelbrot.cu: counts of steps under z = z * z + c, a thread a point. ops/mandelbrot.h says what must be kept, and
 * which ways out are allowed.
 *
 * Units for float64 are what is scarce: a warp's instruction holds them for two cycles, so that others go along for
 * nothing. A counted step takes 7 of them (3 products, |z|^2, and z'), the comparison looks at the upper half of |z|^2
 * as an integer; a step that is not looked at takes 6. A warp works until its last point is done: points of a warp lie
 * in a rectangle of 8 x 4, where counts differ least. */
#include "cuda/lessons/mandelbrot.h"
#include "cuda/shared/dependent_launch.cuh"

#include <type_traits>

namespace
{

constexpr int TILE_WIDTH = 8, TILE_HEIGHT = 4; /* a warp */
constexpr int ACROSS = 4, DOWN = 1;            /* warps of a block */
constexpr int FEW = 2;                         /* points of a thread side by side, where none takes long */
constexpr int TILES = 2;                       /* of a block there, one after another */
constexpr int WARPS = 48;                      /* of a multiprocessor at once: 40 registers a thread */
constexpr int LOOK = 4;                        /* steps between two looks at whether to go on */
constexpr int COUNTED = 32;                    /* steps that are counted one by one */
constexpr int BLOCK = 8;                       /* steps at once after that */
constexpr double SAFE = 3.9;                   /* |c|^2 below: what has left does not come back */

struct complex {
    double r, i;
};

/* The upper half of |z|^2 as an unsigned integer has the order of the numbers, with infinities and NaN above. */
__device__ __forceinline__ bool is_near(double square)
{
    return unsigned(__double2hiint(square)) < 0x40100000u; /* 4 */
}

/* z = z * z + c, and |z|^2 of the z before. 2 re im is exact beside re * im: fused, it is rounded just as often. */
__device__ __forceinline__ double step(complex &z, const complex c)
{
    const double rr = __dmul_rn(z.r, z.r), ii = __dmul_rn(z.i, z.i), ri = __dmul_rn(z.r, z.i);
    z.r = __dadd_rn(__dsub_rn(rr, ii), c.r);
    z.i = __fma_rn(2, ri, c.i);
    return __dadd_rn(rr, ii);
}

/* In floats, and of a c in floats: the rims are wider than what they lose. */
__device__ __forceinline__ bool is_inside(float r, float i)
{
    const float x = fmaf(float(PC__MANDELBROT_RIM), r, -0.25f), y = float(PC__MANDELBROT_RIM) * i, yy = y * y,
                q = fmaf(x, x, yy), left = r + 1;
    return bool((q * (q + x) < 0.25f * yy) | (fmaf(left, left, i * i) < float(PC__MANDELBROT_DISC)));
}

/* Up to `looks` times LOOK steps, once at least, of several points side by side; n counts those of a point until it
 * leaves. `goes`: whether it has not. */
template <int N>
__device__ __forceinline__ void count(complex (&z)[N], const complex (&c)[N], bool (&goes)[N], int (&n)[N], int looks)
{
    bool any;
    do {
        any = false;
#pragma unroll
        for (int k = 0; k < LOOK; k++)
#pragma unroll
            for (int p = 0; p < N; p++) {
                goes[p] = is_near(step(z[p], c[p])) && goes[p];
                n[p] += goes[p];
            }
#pragma unroll
        for (int p = 0; p < N; p++)
            any = any || goes[p];
    } while (any && --looks > 0);
}

__host__ __device__ __forceinline__ int looks_for(int steps)
{
    return steps / LOOK + (steps % LOOK != 0);
}

/* The count from COUNTED steps on. */
__device__ int go_on(complex z, const complex c, int iterations)
{
    int n = COUNTED;
    if (__dadd_rn(__dmul_rn(c.r, c.r), __dmul_rn(c.i, c.i)) < SAFE) {
        complex was = z; /* remembered at powers of two, to see whether it comes again */
        for (int next = 2 * COUNTED; n <= iterations - BLOCK; n += BLOCK) {
            const complex before = z;
#pragma unroll
            for (int k = 0; k < BLOCK; k++)
                (void)step(z, c);
            if (!is_near(__dadd_rn(__dmul_rn(z.r, z.r), __dmul_rn(z.i, z.i)))) {
                z = before;
                break;
            }
            if (z.r == was.r && z.i == was.i)
                return iterations;
            if (n >= next) {
                was = z;
                next = next < 1 << 30 ? 2 * next : iterations;
            }
        }
    }
    complex at[1] = {z};
    const complex of[1] = {c};
    bool goes[1] = {true};
    int more[1] = {0};
    if (n < iterations)
        count(at, of, goes, more, looks_for(iterations - n));
    return n + more[0];
}

/* The counts of several points. DEEP: there are more than COUNTED iterations, and `looks` is what COUNTED needs; else
 * what all need. */
template <bool DEEP, int N>
__device__ __forceinline__ void count_all(const complex (&c)[N], const bool (&inside)[N], int looks, int iterations,
                                          int (&n)[N])
{
    complex z[N];
    bool goes[N], any = false;
#pragma unroll
    for (int p = 0; p < N; p++) {
        z[p] = c[p];
        goes[p] = !inside[p];
        any = any || goes[p];
        n[p] = 0;
    }
    if (any)
        count(z, c, goes, n, looks);
#pragma unroll
    for (int p = 0; p < N; p++) {
        if (DEEP && goes[p])
            n[p] = go_on(z[p], c[p], iterations);
        n[p] = inside[p] ? iterations : min(n[p], iterations); /* the last look may go beyond */
    }
}

/* How far out the point has got with a few steps more, as a fraction of a step. */
__device__ float fraction(const complex c, int n)
{
    complex z = c;
    for (int k = 0; k < n + PC__MANDELBROT_MORE; k++)
        (void)step(z, c);
    const double square = z.r * z.r + z.i * z.i;
    const double steps = n + PC__MANDELBROT_MORE + 1 - log2(0.5 * log2(square));
    return float(steps > 0 ? steps : 0);
}

/* What a launch does. */
struct job {
    pc__mandelbrot_attributes a;
    float x_min, y_min, dx, dy; /* of a */
    void *counts;
    int height, width;
    int mirror, rows; /* to count (PC__MANDELBROT_ROW), up to where this launch ends; where it begins */
    int first;
    int looks;
};

__device__ __forceinline__ complex point(const job &j, double cr, int row)
{
    return {cr, __dadd_rn(j.a.y_min, __dmul_rn(double(row), j.a.dy))};
}

/* What is stored of a count. */
template <class T> __device__ __forceinline__ T shown(const job &j, const complex c, int n)
{
    if constexpr (std::is_same_v<T, float>)
        return n == j.a.iterations ? float(n) : fraction(c, n);
    else
        return T(n);
}

/* Of one column: rows, what is stored there, and their mirror images; -1: no image to store. */
template <class T, int POINTS> struct found {
    int row[POINTS], other[POINTS];
    T at[POINTS], at_other[POINTS];
};

/* POINTS of a thread are one above the other: neighbours take about as long. */
template <class T, bool DEEP, int POINTS>
__device__ __forceinline__ found<T, POINTS> find(const job &j, int column, int first)
{
    const double cr = __dadd_rn(j.a.x_min, __dmul_rn(double(column), j.a.dx));
    const float r = fmaf(float(column), j.dx, j.x_min);
    found<T, POINTS> f;
    complex c[POINTS];
    bool inside[POINTS];
    int n[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; p++) { /* beyond the last row: the last one again */
        const int i = min(first + p * TILE_HEIGHT, j.rows - 1);
        f.row[p] = PC__MANDELBROT_ROW(j.mirror, i);
        c[p] = point(j, cr, f.row[p]);
        inside[p] = is_inside(r, fmaf(float(f.row[p]), j.dy, j.y_min));
    }
    count_all<DEEP>(c, inside, j.looks, j.a.iterations, n);
#pragma unroll
    for (int p = 0; p < POINTS; p++) {
        f.at[p] = shown<T>(j, c[p], n[p]);
        f.other[p] = j.mirror - f.row[p];
        if (f.other[p] <= f.row[p] || f.other[p] >= j.height) {
            f.other[p] = -1;
            continue;
        }
        const complex image[1] = {point(j, cr, f.other[p])};
        int count[1] = {n[p]};
        if (image[0].i != -c[p].i) {
            const bool within[1] = {is_inside(r, fmaf(float(f.other[p]), j.dy, j.y_min))};
            count_all<DEEP>(image, within, j.looks, j.a.iterations, count);
        }
        f.at_other[p] = shown<T>(j, image[0], count[0]);
    }
    return f;
}

template <class T> __device__ __forceinline__ void put(const job &j, int row, int column, T value)
{
    static_cast<T *>(j.counts)[uint64_t(unsigned(row)) * unsigned(j.width) + unsigned(column)] = value;
}

/* Nothing here reads memory, so only what is stored must wait for earlier kernels: the counting goes beside their end.
 * A block's tiles are far apart, which evens out how long blocks take. */
template <class T, bool DEEP, int POINTS, int ROUNDS>
__global__ void __launch_bounds__(32 * ACROSS * DOWN, WARPS / (ACROSS * DOWN)) picture(const job j)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int column = (blockIdx.x * ACROSS + warp % ACROSS) * TILE_WIDTH + lane % TILE_WIDTH;
    int first = j.first + (blockIdx.y * DOWN + warp / ACROSS) * (TILE_HEIGHT * POINTS) + lane / TILE_WIDTH;
    if (column >= j.width || first >= j.rows) {
        pc::wait_for_earlier();
        return;
    }
#pragma unroll 1
    for (int k = 0; k < ROUNDS && first < j.rows; k++) {
        const found<T, POINTS> f = find<T, DEEP, POINTS>(j, column, first);
        pc::wait_for_earlier(); /* from the second time on for nothing */
#pragma unroll
        for (int p = 0; p < POINTS; p++) {
            put(j, f.row[p], column, f.at[p]);
            if (f.other[p] >= 0)
                put(j, f.other[p], column, f.at_other[p]);
        }
        first += gridDim.y * (DOWN * TILE_HEIGHT * POINTS);
    }
}

template <class T, bool DEEP, int POINTS, int ROUNDS> cudaError_t launch(job j, cudaStream_t queue, int early)
{
    constexpr int HEIGHT = DOWN * TILE_HEIGHT * POINTS * ROUNDS, WIDTH = ACROSS * TILE_WIDTH, BAND = 65535 * HEIGHT;
    j.looks = looks_for(DEEP ? COUNTED : j.a.iterations);
    for (const int end = j.rows; j.first < end; j.first += BAND) { /* as many rows as a grid can have */
        const int rows = end - j.first < BAND ? end - j.first : BAND;
        j.rows = j.first + rows;
        const dim3 grid(unsigned(j.width / WIDTH + (j.width % WIDTH != 0)), unsigned((rows + HEIGHT - 1) / HEIGHT));
        const cudaError_t status =
            pc::start_grid(picture<T, DEEP, POINTS, ROUNDS>, grid, dim3(32 * ACROSS * DOWN), 0, queue, early, j);
        if (status != cudaSuccess)
            return status;
    }
    return cudaSuccess;
}

template <class T> cudaError_t run(const pc__cuda_mandelbrot *p, cudaStream_t queue)
{
    const int64_t mirror = pc__mandelbrot_mirror(&p->a, p->height);
    const job j = {
        p->a,      float(p->a.x_min), float(p->a.y_min), float(p->a.dx), float(p->a.dy),
        p->counts, p->height,         p->width,          int(mirror),    int(pc__mandelbrot_rows(mirror, p->height))};
    if (p->a.iterations > COUNTED)
        return launch<T, true, 1, 1>(j, queue, p->early);
    return launch<T, false, FEW, TILES>(j, queue, p->early);
}

} // namespace

cudaError_t pc__cuda_mandelbrot_run(const pc__cuda_mandelbrot *p, cudaStream_t queue)
{
    if (p->dtype == PC__CUDA_U8)
        return run<uint8_t>(p, queue);
    if (p->dtype == PC__CUDA_I32)
        return run<int32_t>(p, queue);
    return run<float>(p, queue);
}
