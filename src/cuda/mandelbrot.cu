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
constexpr int ROWS = 4;                        /* points of a thread */
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

/* Up to `looks` times LOOK steps, counted until z leaves. */
__device__ __forceinline__ int count(complex &z, const complex c, int looks)
{
    int n = 0;
    for (; looks > 0; looks--) {
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
    }
    return n;
}

__device__ __forceinline__ int looks_for(int steps)
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
    return n + count(z, c, looks_for(iterations - n));
}

__device__ __forceinline__ int count_all(const complex c, int iterations)
{
    complex z = c;
    int n = count(z, c, iterations < COUNTED ? looks_for(iterations) : COUNTED / LOOK);
    if (n == COUNTED && iterations > COUNTED)
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

/* What a launch does: a thread takes ROWS points of a column, `apart` from each other, so that no warp gets only what
 * is slow. */
struct job {
    pc__mandelbrot_attributes a;
    float x_min, y_min, dx, dy; /* of a */
    void *counts;
    int height, width, apart;
    int first, end; /* of the first of each thread's rows: those of this launch */
};

template <class T> __global__ void __launch_bounds__(32 * ACROSS * DOWN) picture(const job j)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int column = (blockIdx.x * ACROSS + warp % ACROSS) * TILE_WIDTH + lane % TILE_WIDTH;
    const int first = j.first + (blockIdx.y * DOWN + warp / ACROSS) * TILE_HEIGHT + lane / TILE_WIDTH;
    if (column >= j.width || first >= j.end)
        return;
    const double cr = __dadd_rn(j.a.x_min, __dmul_rn(double(column), j.a.dx));
    const float r = fmaf(float(column), j.dx, j.x_min);
    T *counts = static_cast<T *>(j.counts) + int64_t(first) * j.width + column;
    for (int64_t row = first; row < j.height; row += j.apart, counts += int64_t(j.apart) * j.width) {
        const complex c = {cr, __dadd_rn(j.a.y_min, __dmul_rn(double(int(row)), j.a.dy))};
        const bool inside = is_inside(r, fmaf(float(int(row)), j.dy, j.y_min));
        const int n = inside ? j.a.iterations : count_all(c, j.a.iterations);
        if constexpr (std::is_same_v<T, float>)
            *counts = n == j.a.iterations ? float(n) : fraction(c, n);
        else
            *counts = T(n);
    }
}

template <class T> void run(const pc__cuda_mandelbrot *p, cudaStream_t queue)
{
    constexpr int HEIGHT = DOWN * TILE_HEIGHT, WIDTH = ACROSS * TILE_WIDTH, BAND = 65535 * HEIGHT;
    job j = {p->a,
             float(p->a.x_min),
             float(p->a.y_min),
             float(p->a.dx),
             float(p->a.dy),
             p->counts,
             p->height,
             p->width,
             (p->height + ROWS - 1) / ROWS,
             0,
             0};
    for (; j.end < j.apart; j.first = j.end) { /* as many rows as a grid can have */
        const int rows = j.apart - j.first < BAND ? j.apart - j.first : BAND;
        j.end = j.first + rows;
        const dim3 grid(unsigned(j.width / WIDTH + (j.width % WIDTH != 0)), unsigned((rows + HEIGHT - 1) / HEIGHT));
        picture<T><<<grid, 32 * ACROSS * DOWN, 0, queue>>>(j);
    }
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
