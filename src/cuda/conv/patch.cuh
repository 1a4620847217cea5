/* patch.cuh: convolutions of 16-bit numbers with stride 1 and few channels from a patch in shared memory: every
 * pixel is read once from global memory and multiplied under all taps from there. */
#ifndef PC__CUDA_CONV_PATCH_CUH
#define PC__CUDA_CONV_PATCH_CUH

#include "cuda/conv/half.cuh"
#include "cuda/conv/patch.h"

#define WEIGHTS_MOST (48 << 10) /* bytes that a block keeps: more leave no room for a second block */

namespace
{

constexpr int LANES = 32, LINE = 8; /* chunks of eight numbers in 128 bytes, all banks */

/* A band: `rows` rows of windows, or of pixels, of a picture. Its patch is height x width pixels. */
struct cut {
    int rows, bands; /* bands of a picture */
    int height, width;
};

inline int over(long long a, long long b)
{
    return (int)((a + b - 1) / b);
}

/* Chunk `chunk` of NC in pixel (or row) p, in bytes: neighbours of a line lie in each other's places, so that neither
 * eight pixels side by side nor every other one meet in a bank. Another pair of chunks of p: exclusive or with 32. */
template <int NC> __device__ inline unsigned spot(int p, int chunk)
{
    const unsigned i = (unsigned)(p * NC + chunk), line = i / LINE;
    return (line * LINE + ((i ^ line) % LINE)) * 16;
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
            send_past(patch + spot<NC>(r * c.width + i / NC, i % NC),
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
        send_past(to + spot<NC>(row, i % NC), from, o < outputs);
    }
#endif
}

/* Bytes 0 and 1, or 2 and 3, by their highest bits: two times 16 ones or zeros. */
template <unsigned SELECTION> __device__ inline unsigned spread_bits(unsigned bytes)
{
    unsigned to;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(to) : "r"(bytes), "n"(SELECTION));
    return to;
}

/* Of eight numbers those whose mark is q, else zeros. */
template <class T> __device__ inline eight<T> only(const eight<T> &value, const eight<uint8_t> &most, unsigned q)
{
    union {
        eight<T> numbers;
        unsigned word[4];
    } v = {value}, to;
    union {
        eight<uint8_t> marks;
        unsigned word[2];
    } m = {most};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const unsigned x = m.word[i] ^ (q * 0x01010101u);
        const unsigned same = ~(((x & 0x7f7f7f7fu) + 0x7f7f7f7fu) | x); /* the highest bit of bytes that are 0 */
        to.word[2 * i] = v.word[2 * i] & spread_bits<0x9988>(same);
        to.word[2 * i + 1] = v.word[2 * i + 1] & spread_bits<0xbbaa>(same);
    }
    return to.numbers;
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

    /* Under one tap, from addresses in shared memory's own space, on 128 bytes: pixels[i], the patch's pixel under this
     * lane's row (lane % 16 of 16) of each of MT; `row`, the first row of the tap's weights. */
    __device__ inline void add(unsigned patch, unsigned weights, const int (&pixels)[MT], int away, int row)
    {
#if TENSOR_UNITS
        const int lane = threadIdx.x % LANES;
        unsigned left[MT];
        const unsigned right = weights + spot<NC>(lane / 16 * 8 + lane % 8, lane / 8 % 2) + row * NC * 16;
#pragma unroll
        for (int i = 0; i < MT; i++)
            left[i] = patch + spot<NC>(pixels[i] + away, lane / 16);
#pragma unroll
        for (int k = 0; k < NC / 2; k++) {
            unsigned a[MT][4];
#pragma unroll
            for (int i = 0; i < MT; i++)
                take_squares<false>(a[i], left[i] ^ (k * 32));
#pragma unroll
            for (int j = 0; j < NT; j += 2) {
                unsigned b[4];
                take_squares<false>(b, (right ^ (k * 32)) + j * 8 * NC * 16);
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

/* On 128 bytes, as patches and weights must lie. */
__device__ inline unsigned address_of(const void *shared)
{
    return (unsigned)__cvta_generic_to_shared(shared);
}

/* What a block may have: two stay on a multiprocessor of compute capability 9.0, where the least that there is to do may take
 * some more; others have less for one block. */
inline bool fits_beside(const pc__cuda_conv *s, size_t shared)
{
    return shared <= (size_t)100 << 10 && shared <= (size_t)s->block_room;
}

inline bool fits_alone(const pc__cuda_conv *s, size_t shared)
{
    return shared <= (size_t)110 << 10 && shared <= (size_t)s->block_room;
}

/* Blocks of `shared` bytes each that stay on the device, as many as fit. */
inline int blocks_for(const pc__cuda_conv *s, size_t shared, int most)
{
    const int fit = (int)(((size_t)220 << 10) / (shared + 2048));
    return s->multiprocessors * (fit < most ? (fit < 1 ? 1 : fit) : most);
}

} // namespace

#endif
