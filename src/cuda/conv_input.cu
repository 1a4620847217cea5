/* conv_input.cu: the gradient of a convolution's input: each pixel of x collects, over the taps of the kernel, what the
 * pixels it went into send back; no two threads add to one element. A stride s makes s x s classes of pixels, by the
 * taps that reach them; each class is a convolution of stride 1 with every s-th tap, so that no tap is tried in vain.
 */
#include "cuda/activations.cuh"
#include "cuda/conv_tile.cuh"
#include "cuda/sums.cuh"

namespace
{

/* The gradient before pooling and activation, read from where it is behind them. POOL 0: as `pool` says. */
template <class T, int POOL> struct gradient {
    const T *dy, *y;
    const uint8_t *argmax;
    int pool, yh, yw, o, activation;

    template <int N> __device__ inline void read(const place &p, const tap &t, vector<T, N> &value) const
    {
        const int side = POOL ? POOL : pool, row = p.row - t.row, column = p.column - t.column;
        const int down = row / side, right = column / side;
        if (row < 0 || column < 0 || down >= yh || right >= yw)
            return;
        const long long at = p.base + (down * yw + right) * o + t.inner;
        value = *(const vector<T, N> *)(dy + at);
        if (activation != ACTIVATION_NONE) {
            const vector<T, N> saved = *(const vector<T, N> *)(y + at);
#pragma unroll
            for (int j = 0; j < N; j++)
                value.at[j] = activation_gradient(activation, value.at[j], saved.at[j]);
        }
        if (POOL == 1 || side == 1)
            return;
        const vector<uint8_t, N> most = *(const vector<uint8_t, N> *)(argmax + at);
#pragma unroll
        for (int j = 0; j < N; j++)
            if (most.at[j] != (row - down * side) * side + column - right * side)
                value.at[j] = 0;
    }
};

/* Pixels whose distance from the first tap's, along one axis, leaves `rest` when divided by the stride: the first of
 * them, how many, and how many taps reach them. */
struct axis {
    int rest, first, count, taps;
};

__host__ __device__ inline axis axis_of(int rest, int size, int stride, int padding, int kernel)
{
    const int first = ((rest - padding) % stride + stride) % stride;
    return {rest, first, first < size ? (size - first + stride - 1) / stride : 0,
            rest < kernel ? (kernel - rest + stride - 1) / stride : 0};
}

template <class T, int POOL, int BN, int VECTOR>
__global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 2 : 1)
    input_kernel(const pc__cuda_conv s, const gradient<T, POOL> g, weights<T> w, T *__restrict__ dx, bool whole)
{
    typedef tile<T, BN, VECTOR> tile_type;
    constexpr int BM = tile_type::BM;
    __shared__ place places[BM];
    __shared__ long long targets[BM]; /* where each row goes in dx, or -1 */
    const axis down = axis_of(blockIdx.z / s.sw, s.h, s.sh, s.ph, s.kh);
    const axis right = axis_of(blockIdx.z % s.sw, s.w, s.sw, s.pw, s.kw);
    const long long first = (long long)blockIdx.x * BM, rows = s.n * down.count * right.count;
    if (first >= rows)
        return;
    if (threadIdx.x < BM) {
        const int at = tile_type::row_at(threadIdx.x);
        const long long m = first + at;
        places[threadIdx.x] = {0, NOWHERE, NOWHERE};
        targets[at] = -1;
        if (m < rows) {
            const long long line = quotient(m, right.count), image = quotient(line, down.count);
            const int row = down.first + (int)(line - image * down.count) * s.sh;
            const int column = right.first + (int)(m - line * right.count) * s.sw;
            places[threadIdx.x] = {image * s.yh * s.yw * s.o, (row + s.ph - down.rest) / s.sh,
                                   (column + s.pw - right.rest) / s.sw};
            targets[at] = ((image * s.h + row) * s.w + column) * s.c;
        }
    }
    w.at += down.rest * w.tap_row + right.rest * w.tap_column;
    w.tap_row *= s.sh, w.tap_column *= s.sw;
    w.taps_in_row = right.taps > 0 ? right.taps : 1;
    w.depth = down.taps * right.taps * s.o;
    __syncthreads();
    tile_type t;
    t.run(g, w, places);
#pragma unroll
    for (int i = 0; i < tile_type::TM; i++) {
        const long long target = targets[tile_type::row_of(i / 4) + i % 4];
        const int column = blockIdx.y * BN + tile_type::column_of(i / 4);
        if (target >= 0 && column < s.c)
            store_four(dx + target + column, t.sum[i], s.c - column, whole);
    }
}

template <class T, int POOL, int BN, int VECTOR>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const gradient<T, 0> &from, const weights<T> &w, T *dx)
{
    const gradient<T, POOL> g = {from.dy, from.y, from.argmax, from.pool, from.yh, from.yw, from.o, from.activation};
    long long most = 0;
    for (int z = 0; z < s->sh * s->sw; z++) {
        const long long rows = s->n * axis_of(z / s->sw, s->h, s->sh, s->ph, s->kh).count *
                               axis_of(z % s->sw, s->w, s->sw, s->pw, s->kw).count;
        most = rows > most ? rows : most;
    }
    constexpr int BM = rows_of_block<T, BN>;
    const dim3 grid((unsigned)((most + BM - 1) / BM), (unsigned)((s->c + BN - 1) / BN), (unsigned)(s->sh * s->sw));
    const bool whole = s->c % 4 == 0 && on_16_bytes(dx);
    input_kernel<T, POOL, BN, VECTOR><<<grid, THREADS, 0, queue>>>(*s, g, w, dx, whole);
}

template <int POOL, int BN>
void launch_vector(cudaStream_t queue, const pc__cuda_conv *s, const gradient<float, 0> &g, const weights<float> &w,
                   float *dx)
{
    if (s->o % 4 == 0 && on_16_bytes(g.dy) && on_16_bytes(g.y) && (uintptr_t)g.argmax % 4 == 0)
        launch<float, POOL, BN, 4>(queue, s, g, w, dx);
    else
        launch<float, POOL, BN, 1>(queue, s, g, w, dx);
}

void launch_any(cudaStream_t queue, const pc__cuda_conv *s, const gradient<double, 0> &g, const weights<double> &w,
                double *dx)
{
    launch<double, 0, 32, 1>(queue, s, g, w, dx);
}

void launch_any(cudaStream_t queue, const pc__cuda_conv *s, const gradient<float, 0> &g, const weights<float> &w,
                float *dx)
{
    if (s->pool > 2)
        launch<float, 0, 32, 1>(queue, s, g, w, dx);
    else if (s->pool == 1)
        s->c <= 32 ? launch_vector<1, 32>(queue, s, g, w, dx) : launch_vector<1, 64>(queue, s, g, w, dx);
    else
        s->c <= 32 ? launch_vector<2, 32>(queue, s, g, w, dx) : launch_vector<2, 64>(queue, s, g, w, dx);
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y, const uint8_t *argmax,
              const void *dy, void *dx, void *scratch)
{
    const int area = s->kh * s->kw;
    const weights<T> w = weights_for<T>(queue, s, weight, s->o, s->c, s->c * area, area, scratch);
    const gradient<T, 0> g = {(const T *)dy, (const T *)y, argmax, s->pool, s->yh, s->yw, s->o, s->activation};
    launch_any(queue, s, g, w, (T *)dx);
}

} // namespace

size_t pc__cuda_conv_input_scratch(const pc__cuda_conv *s)
{
    return packed_bytes(s);
}

void pc__cuda_conv_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                         const uint8_t *argmax, const void *dy, void *dx, void *scratch)
{
    if (s->dtype == PC__CUDA_F32)
        backward<float>(queue, s, weight, y, argmax, dy, dx, scratch);
    else
        backward<double>(queue, s, weight, y, argmax, dy, dx, scratch);
}
