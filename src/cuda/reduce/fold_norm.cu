/* fold_norm.cu: vector norms. Neighbours are added in their own type (16-bit numbers in float), beyond in
 * double. */
#include "cuda/reduce/fold.cuh"
#include "ops/reduce_kinds.h"

namespace
{

template <class M> __device__ __forceinline__ M size_of(M x)
{
    return x < 0 ? -x : x;
}

/* Of a sum of powers. */
template <class T> struct vector_norm {
    typedef T type;
    typedef double state;
    typedef pc::math<T> M;
    void *out;
    int to;
    bool squares, cubes;
    explicit vector_norm(const pc__cuda_fold *d)
        : out(d->out), to(d->to), squares(d->kind == PC__NORM_ROOT), cubes(d->kind == PC__NORM_CUBE_ROOT)
    {
    }
    __device__ __forceinline__ double nothing() const
    {
        return 0;
    }
    __device__ __forceinline__ M term(M x) const
    {
        const M size = size_of<M>(x);
        return size * (squares || cubes ? size : M(1)) * (cubes ? size : M(1));
    }
    template <int N> __device__ __forceinline__ void see(double &all, const T (&x)[N], int64_t) const
    {
        M run = term(x[0]);
#pragma unroll
        for (int k = 1; k < N; k++)
            run += term(x[k]);
        all += run;
    }
    __device__ __forceinline__ void meet(double &all, double later) const
    {
        all += later;
    }
    __device__ __forceinline__ double finished(double all) const
    {
        return squares ? sqrt(all) : cubes ? cbrt(all) : all;
    }
    __device__ __forceinline__ void store(double all, int64_t i) const
    {
        store_as(out, to, i, finished(all));
    }
    template <int W> __device__ __forceinline__ void store_all(const double (&all)[W], int64_t i) const
    {
        double value[W];
#pragma unroll
        for (int w = 0; w < W; w++)
            value[w] = finished(all[w]);
        store_as(out, to, i, value);
    }
};

/* The largest or the smallest size. */
template <class T> struct extreme {
    typedef T type;
    typedef pc::math<T> state;
    void *out;
    int to;
    bool least;
    explicit extreme(const pc__cuda_fold *d) : out(d->out), to(d->to), least(d->kind == PC__NORM_LEAST)
    {
    }
    __device__ __forceinline__ state nothing() const
    {
        return least ? state(INFINITY) : state(0);
    }
    /* NaN beats all. */
    __device__ __forceinline__ state better(state a, state b) const
    {
        return (least ? b < a : b > a) || b != b ? b : a;
    }
    template <int N> __device__ __forceinline__ void see(state &all, const T (&x)[N], int64_t) const
    {
#pragma unroll
        for (int k = 0; k < N; k++)
            all = better(all, size_of<state>(x[k]));
    }
    __device__ __forceinline__ void meet(state &all, state later) const
    {
        all = better(all, later);
    }
    __device__ __forceinline__ void store(state all, int64_t i) const
    {
        store_as(out, to, i, all);
    }
    template <int W> __device__ __forceinline__ void store_all(const state (&all)[W], int64_t i) const
    {
        double value[W];
#pragma unroll
        for (int w = 0; w < W; w++)
            value[w] = all[w];
        store_as(out, to, i, value);
    }
};

} // namespace

void pc__cuda_fold_norm(const pc__cuda_fold *d)
{
    if (d->kind == PC__NORM_MOST || d->kind == PC__NORM_LEAST)
        return fold_floats<extreme>(d);
    fold_floats<vector_norm>(d);
}
