/* half.cu: the forward convolution of 16-bit numbers. The rows of a tile are ordered window by window, so that a
 * thread holds whole pooling windows. Results that are to lie plane by plane are turned in shared memory. */
#include "cuda/conv/half.cuh"
#include "cuda/conv/half.h"
#include "cuda/conv/patch.h"

namespace
{

template <class T> struct result {
    const T *bias;
    T *y;
    uint8_t *argmax;
    bool whole; /* outputs side by side, in eights that lie on 16 bytes */
};

/* Row m of the product: pixel m of [n][yh * POOL][yw * POOL], window by window. */
template <int POOL> __device__ inline place place_of(const pc__cuda_conv &s, long long m)
{
    const long long window = m / (POOL * POOL);
    const int q = (int)(m % (POOL * POOL));
    const long long line = quotient(window, s.yw), image = quotient(line, s.yh);
    if (image >= s.n)
        return {0, NOWHERE, NOWHERE};
    const int row = (int)(line - image * s.yh) * POOL + q / POOL;
    const int column = (int)(window - line * s.yw) * POOL + q % POOL;
    return {image * s.h * s.w * s.c, row * s.sh - s.ph, column * s.sw - s.pw};
}

/* Out of line is what few layers need: for each of a thread's sums it would be most of the kernel. */
__device__ __noinline__ float activated_apart(int kind, float x)
{
    return activated(kind, x);
}

template <class T> struct results {
    eight<T> y;
    eight<uint8_t> most;
};

/* What becomes of this thread's four rows: with POOL 2 their maxima; else row q alone. */
template <class T, int POOL, class Tile>
__device__ inline results<T> finish(const pc__cuda_conv &s, const Tile &t, const float (&bias)[EIGHT], int q)
{
    results<T> r;
#pragma unroll
    for (int j = 0; j < EIGHT; j++) {
        float most = t.at(POOL == 2 ? 0 : q, j);
        int place = 0;
#pragma unroll
        for (int i = 1; i < POOL * POOL; i++) {
            const float value = t.at(i, j);
            const bool more = value > most || value != value;
            most = more ? value : most;
            place = more ? i : place;
        }
        most += bias[j];
        if (s.activation == ACTIVATION_RELU)
            most = most < 0 ? 0.0f : most;
        else if (s.activation != ACTIVATION_NONE)
            most = activated_apart(s.activation, most);
        r.y.at[j] = T(most);
        r.most.at[j] = (uint8_t)mark_of(s, place, most);
    }
    return r;
}

/* The tile's results, [output][row], from shared memory to their planes: a thread has one pixel of some of them. */
template <class T, int ROWS, int BN>
__device__ inline void write_planes(const pc__cuda_conv &s, const result<T> &to, const T *y, const uint8_t *most,
                                    long long first)
{
    static_assert(THREADS % ROWS == 0, "a thread stays at its pixel");
    const int area = s.yh * s.yw, row = threadIdx.x % ROWS, left = s.o - (int)blockIdx.y * BN;
    const long long pixel = first + row;
    if (pixel >= s.n * area)
        return;
    const long long at = pixel_at(s, pixel) + (long long)blockIdx.y * BN * area;
#pragma unroll 8
    for (int column = threadIdx.x / ROWS; column < BN; column += THREADS / ROWS) {
        if (column >= left)
            return;
        to.y[at + (long long)column * area] = y[column * (ROWS + 2) + row];
        if (to.argmax)
            to.argmax[at + (long long)column * area] = most[column * (ROWS + 4) + row];
    }
}

template <class T, int POOL, int BN>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    half_kernel(const pc__cuda_conv s, const source<T> x, const filter<T> f, const result<T> to, const split_k k)
{
#if TENSOR_UNITS
    typedef half_tile<T, BN> tile;
    constexpr int EACH = POOL * POOL, ROWS = tile::BM / EACH; /* pixels of y in a tile */
    extern __shared__ __align__(128) char shared[];
    __shared__ place places[tile::BM];
    const long long first = (long long)blockIdx.x * tile::BM;
    const int column = tile::first_output(), o = blockIdx.y * BN + column, left = s.o - o;
    for (int i = threadIdx.x; i < tile::BM; i += THREADS)
        places[i] = place_of<POOL>(s, first + tile::row_at(i));
    pc::wait_for_earlier();
    float bias[EIGHT];
#pragma unroll
    for (int j = 0; j < EIGHT; j++)
        bias[j] = to.bias && j < left ? (float)to.bias[o + j] : 0.0f;
    __syncthreads();
    tile t;
    if (!t.run(x, f, places, (T *)shared, k, 0, blockIdx.z))
        return;
    T *y = (T *)shared;
    uint8_t *most = (uint8_t *)(y + BN * (ROWS + 2));
    if (s.planes)
        __syncthreads(); /* the operands are read */
#pragma unroll
    for (int q = 0; q < (POOL == 2 ? 1 : 4); q++) {
        const results<T> r = finish<T, POOL>(s, t, bias, q);
        const int row = tile::first_row() / EACH + q;
        const long long pixel = first / EACH + row;
        if (s.planes) {
#pragma unroll
            for (int j = 0; j < EIGHT; j++) {
                y[(column + j) * (ROWS + 2) + row] = r.y.at[j];
                most[(column + j) * (ROWS + 4) + row] = r.most.at[j];
            }
        } else if (pixel < s.n * s.yh * s.yw && left > 0) {
            store_eight(to.y + pixel * s.o + o, r.y, left, to.whole);
            if (POOL == 2 && to.argmax)
                store_eight(to.argmax + pixel * s.o + o, r.most, left, to.whole);
        }
    }
    if (!s.planes)
        return;
    __syncthreads();
    write_planes<T, ROWS, BN>(s, to, y, most, first / EACH);
#endif
}

/* Counted before pooling, as in conv.cu. */
cut_tiles tiling_of(const pc__cuda_conv *s)
{
    return tiling_of(s, s->n * s->oh * s->ow, s->o, 1, s->kh * s->kw * s->c);
}

template <class T, int POOL, int BN>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const source<T> &x, const filter<T> &f, const result<T> &to,
            const parts_memory &in)
{
    constexpr int BM = THREADS / 32 / (BN / 32) * 32, ROWS = BM / (POOL * POOL);
    constexpr size_t work = STAGES * (BM + BN) * DEPTH * sizeof(T), turned = BN * ((ROWS + 2) * sizeof(T) + ROWS + 4);
    constexpr size_t shared = work > turned ? work : turned;
    const long long rows = s->n * s->yh * s->yw * POOL * POOL;
    const split_k k = split_of(tiling_of(s), in);
    const dim3 grid((unsigned)((rows + BM - 1) / BM), (unsigned)((s->o + BN - 1) / BN), (unsigned)k.splits);
    pc::start_grid(half_kernel<T, POOL, BN>, grid, dim3(THREADS), shared, queue, s->early, *s, x, f, to, k);
}

template <class T>
void forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight, const void *bias, void *y,
             uint8_t *argmax, bool patches, void *scratch, unsigned *counters)
{
    const source<T> from = {(const T *)x, s->h, s->w, s->c, 1};
    const packing<T> weights = packing_of<T>(s, weight, scratch, false);
    const filter<T> f = filter_of(s, weights);
    pack(queue, s, weights);
    if (patches) {
        pc__cuda_conv_patch_forward(queue, s, x, f.at, bias, y, s->pool == 2 ? argmax : NULL);
        return;
    }
    const parts_memory in = {(float *)((char *)scratch + filter_bytes(s)), counters};
    const bool whole = s->o % EIGHT == 0 && on_16_bytes(y) && (uintptr_t)argmax % EIGHT == 0;
    const result<T> to = {(const T *)bias, (T *)y, s->pool == 2 ? argmax : NULL, whole};
    if (s->pool == 2)
        s->o <= 32 ? launch<T, 2, 32>(queue, s, from, f, to, in) : launch<T, 2, 64>(queue, s, from, f, to, in);
    else
        s->o <= 32 ? launch<T, 1, 32>(queue, s, from, f, to, in) : launch<T, 1, 64>(queue, s, from, f, to, in);
}

} // namespace

bool pc__cuda_conv_half_fits(const pc__cuda_conv *s, const void *x)
{
    return s->c > 0 && s->c % EIGHT == 0 && s->pool <= 2 && s->kh * s->kw > 0 && on_16_bytes(x);
}

size_t pc__cuda_conv_half_scratch(const pc__cuda_conv *s, bool patches)
{
    return filter_bytes(s) + (patches ? 0 : partial_bytes(tiling_of(s)));
}

void pc__cuda_conv_half_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                const void *bias, void *y, uint8_t *argmax, bool patches, void *scratch,
                                unsigned *counters)
{
    if (s->dtype == PC__CUDA_F16)
        forward<pc::f16>(queue, s, x, weight, bias, y, argmax, patches, scratch, counters);
    else
        forward<pc::bf16>(queue, s, x, weight, bias, y, argmax, patches, scratch, counters);
}
