/* conv_patch.cuh: convolutions of 16-bit numbers with stride 1 and few channels from a patch in shared memory: every
 * pixel is read once from global memory and multiplied under all taps from there. */
#ifndef PC__CUDA_CONV_PATCH_CUH
#define PC__CUDA_CONV_PATCH_CUH

#include "cuda/conv_half.cuh"
#include "cuda/conv_patch.h"

namespace
{

constexpr int LANES = 32, LINE = 8; /* chunks of eight numbers in 128 bytes, all banks */

/* A band: `rows` rows of windows, or of pixels, of a picture. Its patch is height x width pixels. */
struct cut {
    int rows, bands; /* bands of a picture */
    int height, width;
};

/* Results of an output in a band that waits to be written plane by plane. */
__host__ __device__ inline int pitch_of(const cut &c, int wide)
{
    return (c.rows * wide + 3) / 2 * 2;
}

inline int over(long long a, long long b)
{
    return (int)((a + b - 1) / b);
}

/* Chunk `chunk` of NC in pixel (or row) p, in bytes: neighbours of a line lie in each other's places, so that neither
 * eight pixels side by side nor every other one meet in a bank. Another pair of chunks of p: exclusive or with 32. */
template <int NC> __device__ inline unsigned spot(int p, int chunk)
{
    const int i = p * NC + chunk, line = i / LINE;
    return (unsigned)(line * LINE + ((i ^ line) % LINE)) * 16;
}

/* A warp a row: the pixels of [n][h][w][c] from (first, -left) of an image on, NC chunks of channels from `channel` on.
 */
template <int NC, class T>
__device__ inline void send_patch(char *patch, const cut &c, const T *image, int h, int w, int channels, int channel,
                                  int first, int left)
{
#if TENSOR_UNITS
    const int lane = threadIdx.x % LANES;
    for (int r = threadIdx.x / LANES; r < c.height; r += blockDim.x / LANES) {
        const int row = first + r;
        const bool there = (unsigned)row < (unsigned)h;
        const T *from = image + (there ? row * w * channels + channel : 0);
        for (int i = lane; i < c.width * NC; i += LANES) {
            const int column = i / NC - left;
            const bool inside = there && (unsigned)column < (unsigned)w;
            send<16>(patch + spot<NC>(r * c.width + i / NC, i % NC),
                     from + (inside ? column * channels + i % NC * EIGHT : 0), inside);
        }
    }
#endif
}

/* Weights [output][tap][NC * 8] to rows [tap][place], the outputs placed as matrix units hand them out. */
template <int NC, int NT, class T>
__device__ inline void send_weights(char *to, const T *packed, int taps, int outputs, int begin)
{
#if TENSOR_UNITS
    constexpr int N = NT * 8;
    for (int i = threadIdx.x; i < taps * N * NC; i += blockDim.x) {
        const int row = i / NC, tap = row / N, place = row % N;
        const int o = begin + place / 32 * 32 + place % 8 / 2 * 8 + place % 32 / 8 * 2 + place % 2;
        const T *from = packed + (o < outputs ? ((long long)o * taps + tap) * (NC * EIGHT) + i % NC * EIGHT : 0);
        send<16>(to + spot<NC>(row, i % NC), from, o < outputs);
    }
#endif
}

/* A warp's product: MT times 16 pixels by NT times 8 outputs; sum[i][j] as add_tensor. */
template <class T, int NC, int MT, int NT> struct patch_sums {
    float sum[MT][NT][4];

    __device__ inline void clear()
    {
#pragma unroll
        for (int i = 0; i < MT * NT * 4; i++)
            sum[i / NT / 4][i / 4 % NT][i % 4] = 0;
    }

    /* Under one tap: pixels[i], the patch's pixel under this lane's row (lane % 16 of 16) of each of MT; `row`, the
     * first row of the tap's weights. */
    __device__ inline void add(const char *patch, const char *weights, const int (&pixels)[MT], int away, int row)
    {
#if TENSOR_UNITS
        const int lane = threadIdx.x % LANES;
        unsigned left[MT];
        const unsigned right = spot<NC>(row + lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll
        for (int i = 0; i < MT; i++)
            left[i] = spot<NC>(pixels[i] + away, lane / 16);
#pragma unroll
        for (int k = 0; k < NC / 2; k++) {
            unsigned a[MT][4];
#pragma unroll
            for (int i = 0; i < MT; i++)
                take_squares<false>(a[i], patch + (left[i] ^ (k * 32)));
#pragma unroll
            for (int j = 0; j < NT; j += 2) {
                unsigned b[4];
                take_squares<false>(b, weights + (right ^ (k * 32)) + j * 8 * NC * 16);
                const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
#pragma unroll
                for (int i = 0; i < MT; i++) {
                    add_tensor(sum[i][j], a[i], first, T());
                    add_tensor(sum[i][j + 1], a[i], second, T());
                }
            }
        }
#endif
    }
};

/* Blocks of `shared` bytes each that stay on the device, as many as fit. */
inline int blocks_for(const pc__cuda_conv *s, size_t shared, int most)
{
    const int fit = (int)(((size_t)220 << 10) / (shared + 2048));
    return s->multiprocessors * (fit < most ? (fit < 1 ? 1 : fit) : most);
}

} // namespace

#endif
