/* random.cu: drawing tensors, a thread for each of Philox' blocks of four numbers, so that results do not depend on the
 * grid. Sums and products are the CPU's: of float64, in its order, none of them fused. */
#include "base/normal.h"
#include "cuda/data/random.h"
#include "cuda/pointwise/loop.cuh"
#include "cuda/shared/divisor.cuh"
#include "cuda/shared/half.cuh"

#include <math.h>

namespace
{

constexpr int THREADS = 256;

__device__ double unit(uint32_t word)
{
    return static_cast<double>(static_cast<float>(word >> 8) * 0x1p-24f);
}

/* How many of a word's bits a type's number in [0, 1) takes: rounded, the largest would be 1. */
template <class T> struct bits_of {
    static constexpr uint32_t left_out = 0xff;
};
template <> struct bits_of<pc::f16> {
    static constexpr uint32_t left_out = 0x1fffff;
};
template <> struct bits_of<pc::bf16> {
    static constexpr uint32_t left_out = 0xffffff;
};

template <class T> struct uniform {
    __device__ void operator()(const pc__cuda_draw &d, const pc__words &x, double (&z)[4]) const
    {
#pragma unroll
        for (int k = 0; k < 4; k++)
            z[k] = d.low + (d.high - d.low) * unit(x.w[k] & ~bits_of<T>::left_out);
    }
};

template <class T> struct normal {
    __device__ void operator()(const pc__cuda_draw &d, const pc__words &x, double (&z)[4]) const
    {
#pragma unroll
        for (int k = 0; k < 4; k += 2) {
            float first, second;
            pc__normal_two(x.w[k], x.w[k + 1], &first, &second);
            z[k] = d.low + d.high * static_cast<double>(first);
            z[k + 1] = d.low + d.high * static_cast<double>(second);
        }
    }
};

template <class T> struct alignas(sizeof(T) == 2 ? 8 : 16) four {
    T v[4];
};

template <class T, class F>
__global__ void __launch_bounds__(THREADS) draw_kernel(const __grid_constant__ pc__cuda_draw d, T *out, bool aligned)
{
    const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS;
    pc::wait_for_earlier();
    for (int64_t block = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; block < (d.n + 3) / 4;
         block += step) {
        const int64_t i = block * 4;
        double z[4];
        F()(d, pc__philox(d.seed, d.stream, static_cast<uint64_t>(block)), z);
        four<T> y;
#pragma unroll
        for (int k = 0; k < 4; k++)
            y.v[k] = static_cast<T>(static_cast<pc::math<T>>(z[k]));
        if (aligned && i + 4 <= d.n) {
            *reinterpret_cast<four<T> *>(out + i) = y;
        } else {
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (i + k < d.n)
                    out[i + k] = y.v[k];
        }
    }
}

/* What goes by words of 24 bits, and what stays by a factor: of float32 where that makes the same of it. */
struct chances {
    uint32_t least; /* of a word that stays: unit(word) is at least the chance */
    double scale;
    bool in_floats;
};

chances chances_of(double chance)
{
    const double scale = chance < 1 ? 1 / (1 - chance) : 0;
    return {static_cast<uint32_t>(ceil(chance * 0x1p24)), scale,
            static_cast<double>(static_cast<float>(scale)) == scale};
}

template <class T> __device__ T dropped(const chances &c, uint32_t word, T x, uint8_t &kept)
{
    typedef pc::math<T> M;
    kept = word >> 8 >= c.least;
    if (c.in_floats)
        return static_cast<T>(kept ? static_cast<M>(x) * static_cast<M>(c.scale) : M(0));
    return static_cast<T>(static_cast<M>(kept ? static_cast<double>(x) * c.scale : 0.0));
}

/* Where an element of a tensor with gaps lies. */
struct gaps {
    int ndim; /* 0: it has none */
    pc__cuda_divisor shape[PC__VIEW_DIMS];
    int64_t strides[PC__VIEW_DIMS];
};

/* Dimensions that lie as one are one. */
gaps gaps_of(const pc__view *v)
{
    int64_t shape[PC__VIEW_DIMS] = {1};
    gaps g = {1, {}, {}};
    for (int d = 0; d < v->ndim; d++) {
        const int last = g.ndim - 1;
        if (v->shape[d] == 1)
            continue;
        if (shape[last] == 1 || g.strides[last] == v->strides[d] * v->shape[d])
            shape[last] *= v->shape[d], g.strides[last] = v->strides[d];
        else
            shape[g.ndim] = v->shape[d], g.strides[g.ndim++] = v->strides[d];
    }
    for (int d = 0; d < g.ndim; d++)
        g.shape[d] = pc__cuda_divisor_of(shape[d]);
    return g;
}

__device__ __forceinline__ int64_t place_in(const gaps &g, int64_t i)
{
    if (g.ndim == 0)
        return i;
    uint32_t rest = static_cast<uint32_t>(i);
    int64_t at = 0;
    for (int d = g.ndim - 1; d > 0; d--) {
        const uint32_t outer = pc::over(rest, g.shape[d]);
        at += (rest - outer * g.shape[d].by) * g.strides[d];
        rest = outer;
    }
    return at + rest * g.strides[0];
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    dropout_kernel(const __grid_constant__ pc__cuda_draw d, const chances c, const T *in,
                   const __grid_constant__ gaps from, T *out, uint8_t *kept, bool aligned)
{
    pc::wait_for_earlier();
    const uint64_t stream = d.stream + (d.base ? 4 * static_cast<uint64_t>(*d.base) : 0);
    const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t block = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; block < (d.n + 3) / 4;
         block += step) {
        const int64_t i = block * 4;
        const pc__words x = pc__philox(d.seed, stream, static_cast<uint64_t>(block));
        if (aligned && i + 4 <= d.n) {
            four<T> a;
            if (from.ndim == 0) {
                a = *reinterpret_cast<const four<T> *>(in + i);
            } else {
#pragma unroll
                for (int k = 0; k < 4; k++)
                    a.v[k] = in[place_in(from, i + k)];
            }
            uchar4 mask;
            a.v[0] = dropped(c, x.w[0], a.v[0], mask.x);
            a.v[1] = dropped(c, x.w[1], a.v[1], mask.y);
            a.v[2] = dropped(c, x.w[2], a.v[2], mask.z);
            a.v[3] = dropped(c, x.w[3], a.v[3], mask.w);
            *reinterpret_cast<four<T> *>(out + i) = a;
            if (kept)
                *reinterpret_cast<uchar4 *>(kept + i) = mask;
        } else {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                uint8_t stays = 0;
                if (i + k < d.n)
                    out[i + k] = dropped(c, x.w[k], in[place_in(from, i + k)], stays);
                if (kept && i + k < d.n)
                    kept[i + k] = stays;
            }
        }
    }
}

unsigned blocks_for(const pc__cuda_draw *d)
{
    const int64_t all = ((d->n + 3) / 4 + THREADS - 1) / THREADS, most = static_cast<int64_t>(d->multiprocessors) * 32;
    return static_cast<unsigned>(all < most ? all : most);
}

bool on_16(const void *a)
{
    return reinterpret_cast<uintptr_t>(a) % 16 == 0;
}

template <class T, class F> void draw_as(const pc__cuda_draw *d, void *out)
{
    (void)pc::start(draw_kernel<T, F>, blocks_for(d), THREADS, d->queue, d->early, *d, static_cast<T *>(out),
                    on_16(out));
}

template <template <class> class F> void draw(const pc__cuda_draw *d, void *out)
{
    switch (d->dtype) {
    case PC__CUDA_F16:
        return draw_as<pc::f16, F<pc::f16>>(d, out);
    case PC__CUDA_BF16:
        return draw_as<pc::bf16, F<pc::bf16>>(d, out);
    case PC__CUDA_F32:
        return draw_as<float, F<float>>(d, out);
    default:
        return draw_as<double, F<double>>(d, out);
    }
}

template <class T> void drop(const pc__cuda_draw *d, const pc__view *in, bool has_gaps, void *out, uint8_t *kept)
{
    const gaps from = has_gaps ? gaps_of(in) : gaps{};
    (void)pc::start(dropout_kernel<T>, blocks_for(d), THREADS, d->queue, d->early, *d, chances_of(d->low),
                    static_cast<const T *>(in->data), from, static_cast<T *>(out), kept,
                    (has_gaps || on_16(in->data)) && on_16(out) && on_16(kept));
}

template <class T> struct undrop_of : pc::shape_of<T, 2, T, uint8_t> {
    pc::math<T> scale;

    __device__ T operator()(T g, uint8_t kept) const
    {
        return static_cast<T>(static_cast<pc::math<T>>(g) * (kept ? scale : 0));
    }
};

template <class T> void undrop(const pc__cuda_launch *l, double scale)
{
    undrop_of<T> f;
    f.scale = static_cast<pc::math<T>>(scale);
    pc::run(l, f);
}

} // namespace

void pc__cuda_uniform(const pc__cuda_draw *d, void *out)
{
    draw<uniform>(d, out);
}

void pc__cuda_normal(const pc__cuda_draw *d, void *out)
{
    draw<normal>(d, out);
}

void pc__cuda_dropout(const pc__cuda_draw *d, const pc__view *in, bool gaps, void *out, uint8_t *kept)
{
    switch (d->dtype) {
    case PC__CUDA_F16:
        return drop<pc::f16>(d, in, gaps, out, kept);
    case PC__CUDA_BF16:
        return drop<pc::bf16>(d, in, gaps, out, kept);
    case PC__CUDA_F32:
        return drop<float>(d, in, gaps, out, kept);
    default:
        return drop<double>(d, in, gaps, out, kept);
    }
}

void pc__cuda_undrop(const pc__cuda_launch *l, int dtype, double scale)
{
    switch (dtype) {
    case PC__CUDA_F16:
        return undrop<pc::f16>(l, scale);
    case PC__CUDA_BF16:
        return undrop<pc::bf16>(l, scale);
    case PC__CUDA_F32:
        return undrop<float>(l, scale);
    default:
        return undrop<double>(l, scale);
    }
}
