/* mandelbrot.cu: counts of steps under z = z * z + c, a thread a point. ops/mandelbrot.h says what must be kept, and
 * which ways out are allowed.
 *
 * Units for float64 are what is scarce: a warp's instruction holds them for two cycles, so that others go along for
 * nothing. A counted step takes 7 of them (3 products, |z|^2, and z'), the comparison looks at the upper half of |z|^2
 * as an integer; a step that is not looked at takes 6. A warp works until its last point is done: points of a warp lie
 * in a rectangle of 8 x 4, where counts differ least. */
#include "cuda/mandelbrot.h"

#include <type_traits>

namespace
{

constexpr int TILE_WIDTH = 8, TILE_HEIGHT = 4; /* a warp */
constexpr int ACROSS = 4, DOWN = 1;            /* warps of a block */
constexpr int ROWS = 2;                        /* of a thread, where no point takes long */
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

/* Up to `looks` times LOOK steps, once at least, counted until z leaves. */
__device__ __forceinline__ int count(complex &z, const complex c, int looks)
{
    int n = 0;
    do {
        bool stays[LOOK];
#pragma unroll
        for (int k = 0; k < LOOK; k++)
            stays[k] = is_near(step(z, c)) && (k == 0 || stays[k - 1]);
        if (!stays[LOOK - 1]) {
#pragma unroll
            for (int k = 0; k < LOOK - 1; k++)
                n += stays[k];
            return n;
        }
        n += LOOK;
    } while (--looks > 0);
    return n;
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
    return n < iterations ? n + count(z, c, looks_for(iterations - n)) : n;
}

/* DEEP: there are more than COUNTED iterations, and `looks` is what COUNTED needs; else what all need. */
template <bool DEEP> __device__ __forceinline__ int count_all(const complex c, int looks, int iterations)
{
    complex z = c;
    int n = count(z, c, looks);
    if (DEEP && n == COUNTED)
        n = go_on(z, c, iterations);
    return min(n, iterations); /* the last look may go beyond */
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

/* What a launch does. The rows to count (PC__MANDELBROT_ROW) are cut into as many parts as a thread takes rows: it
 * takes one of each, so that no warp gets only what is slow. */
struct job {
    pc__mandelbrot_attributes a;
    float x_min, y_min, dx, dy; /* of a */
    void *counts;
    int height, width;
    int mirror, rows; /* to count */
    int apart;        /* how many rows a part has */
    int first;        /* of a part: where this launch begins */
    int looks;
};

template <class T, bool DEEP> __global__ void __launch_bounds__(32 * ACROSS * DOWN) picture(const job j)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int column = (blockIdx.x * ACROSS + warp % ACROSS) * TILE_WIDTH + lane % TILE_WIDTH;
    int i = j.first + (blockIdx.y * DOWN + warp / ACROSS) * TILE_HEIGHT + lane / TILE_WIDTH;
    if (column >= j.width || i >= j.apart)
        return;
    const double cr = __dadd_rn(j.a.x_min, __dmul_rn(double(column), j.a.dx));
    const float r = fmaf(float(column), j.dx, j.x_min);
    for (; i < j.rows; i += j.apart) {
        int row = PC__MANDELBROT_ROW(j.mirror, i);
        double before = 0;
        T n = 0;
#pragma unroll 1
        for (bool again = false;; again = true) { /* this row, and its mirror image */
            const complex c = {cr, __dadd_rn(j.a.y_min, __dmul_rn(double(row), j.a.dy))};
            if (!again || c.i != -before) {
                const bool inside = is_inside(r, fmaf(float(row), j.dy, j.y_min));
                const int count = inside ? j.a.iterations : count_all<DEEP>(c, j.looks, j.a.iterations);
                if constexpr (std::is_same_v<T, float>)
                    n = count == j.a.iterations ? float(count) : fraction(c, count);
                else
                    n = T(count);
            }
            static_cast<T *>(j.counts)[uint64_t(unsigned(row)) * unsigned(j.width) + unsigned(column)] = n;
            before = c.i;
            const int other = j.mirror - row;
            if (again || other <= row || other >= j.height)
                break;
            row = other;
        }
    }
}

template <class T, bool DEEP> void launch(job j, int parts, cudaStream_t queue)
{
    constexpr int HEIGHT = DOWN * TILE_HEIGHT, WIDTH = ACROSS * TILE_WIDTH, BAND = 65535 * HEIGHT;
    j.apart = (j.rows + parts - 1) / parts;
    j.looks = looks_for(DEEP ? COUNTED : j.a.iterations);
    for (; j.first < j.apart; j.first += BAND) { /* as many rows as a grid can have */
        const int rows = j.apart - j.first < BAND ? j.apart - j.first : BAND;
        const dim3 grid(unsigned(j.width / WIDTH + (j.width % WIDTH != 0)), unsigned((rows + HEIGHT - 1) / HEIGHT));
        picture<T, DEEP><<<grid, 32 * ACROSS * DOWN, 0, queue>>>(j);
    }
}

template <class T> void run(const pc__cuda_mandelbrot *p, cudaStream_t queue)
{
    const int64_t mirror = pc__mandelbrot_mirror(&p->a, p->height);
    const job j = {
        p->a,      float(p->a.x_min), float(p->a.y_min), float(p->a.dx), float(p->a.dy),
        p->counts, p->height,         p->width,          int(mirror),    int(pc__mandelbrot_rows(mirror, p->height))};
    if (p->a.iterations > COUNTED)
        launch<T, true>(j, 1, queue);
    else
        launch<T, false>(j, ROWS, queue);
}

} // namespace

void pc__cuda_mandelbrot_run(const pc__cuda_mandelbrot *p, cudaStream_t queue)
{
    if (p->dtype == PC__CUDA_U8)
        run<uint8_t>(p, queue);
    else if (p->dtype == PC__CUDA_I32)
        run<int32_t>(p, queue);
    else
        run<float>(p, queue);
}
