/* mandelbrot.cu: counts of steps under z = z * z + c, a thread a point. ops/mandelbrot.h says what must be kept, and
 * which ways out are allowed.
 *
 * Units for float64 are what is scarce: a warp's instruction holds them for two cycles, so that others go along for
 * nothing. A counted step takes 7 of them (3 products, |z|^2, and z'), the comparison looks at the upper half of |z|^2
 * as an integer; a step that is not looked at takes 6. A warp works until its last point is done: points of a warp lie
 * in a rectangle of 8 x 4, where counts differ least. */
#include "cuda/mandelbrot.h"

namespace
{

constexpr int TILE_WIDTH = 8, TILE_HEIGHT = 4; /* a warp */
constexpr int ACROSS = 4, DOWN = 2;            /* warps of a block */
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

/* In floats: the rims are wider than what they lose. */
__device__ __forceinline__ bool is_inside(const complex c)
{
    const float r = float(c.r), x = float(PC__MANDELBROT_RIM) * r - 0.25f, i = float(c.i),
                y = float(PC__MANDELBROT_RIM) * i, q = x * x + y * y;
    return q * (q + x) < 0.25f * y * y || (r + 1) * (r + 1) + i * i < float(PC__MANDELBROT_DISC);
}

/* `steps` more steps, counted until z leaves; true when it stays. */
template <int UNROLL> __device__ __forceinline__ bool count(complex &z, const complex c, int steps, int &n)
{
    bool stays = true;
    for (; stays && steps >= UNROLL; steps -= UNROLL) {
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            stays = is_near(step(z, c)) && stays;
            n += stays;
        }
    }
    for (; stays && steps > 0; steps--) {
        stays = is_near(step(z, c));
        n += stays;
    }
    return stays;
}

/* The count from COUNTED steps on. */
__device__ int go_on(complex z, const complex c, int iterations)
{
    int n = COUNTED;
    if (__dadd_rn(__dmul_rn(c.r, c.r), __dmul_rn(c.i, c.i)) < SAFE) {
        complex was = z; /* remembered at powers of two, to see whether it comes again */
        for (int next = 2 * COUNTED; n + BLOCK <= iterations; n += BLOCK) {
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
                next *= 2;
            }
        }
    }
    count<LOOK>(z, c, iterations - n, n);
    return n;
}

__device__ __forceinline__ int count_all(const complex c, int iterations)
{
    if (is_inside(c))
        return iterations;
    complex z = c;
    int n = 0;
    const bool stays = count<LOOK>(z, c, min(iterations, COUNTED), n);
    return stays && iterations > COUNTED ? go_on(z, c, iterations) : n;
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

template <class T>
__global__ void __launch_bounds__(32 * ACROSS * DOWN)
    picture(const pc__mandelbrot_attributes a, T *__restrict__ counts, int64_t first, int64_t height, int64_t width)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t column = (int64_t(blockIdx.x) * ACROSS + warp % ACROSS) * TILE_WIDTH + lane % TILE_WIDTH;
    const int64_t row = first + (int64_t(blockIdx.y) * DOWN + warp / ACROSS) * TILE_HEIGHT + lane / TILE_WIDTH;
    if (row >= height || column >= width)
        return;
    const complex c = {__dadd_rn(a.x_min, __dmul_rn(double(column), a.dx)),
                       __dadd_rn(a.y_min, __dmul_rn(double(row), a.dy))};
    const int n = count_all(c, a.iterations);
    if constexpr (sizeof(T) == 4 && T(0.5f) != 0)
        counts[row * width + column] = n == a.iterations ? float(n) : fraction(c, n);
    else
        counts[row * width + column] = T(n);
}

template <class T> void run(const pc__cuda_mandelbrot *p, cudaStream_t queue)
{
    const int64_t block_height = DOWN * TILE_HEIGHT, block_width = ACROSS * TILE_WIDTH, most = 65535;
    const int64_t band = most * block_height; /* rows that a grid can have */
    for (int64_t row = 0; row < p->height; row += band) {
        const int64_t rows = p->height - row < band ? p->height - row : band;
        const dim3 grid(unsigned((p->width + block_width - 1) / block_width),
                        unsigned((rows + block_height - 1) / block_height));
        picture<<<grid, 32 * ACROSS * DOWN, 0, queue>>>(p->a, static_cast<T *>(p->counts), row, p->height, p->width);
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
