/* fold_norm.cu: vector norms and dot products. Neighbours are added in their own type (16-bit numbers in float), beyond in
 * double. */
#include "cuda/reduce/fold.cuh"
#include "ops/reduce_kinds.h"

namespace
{

template <class M> __device__ __forceinline__ M size_of(M x)
{
    return x < 0 ? -x : x;
}

template <class T> struct vector_norm {
    typedef T type;
    typedef double state;
    typedef pc::math<T> M;
    void *out;
    int to, kind;
    explicit vector_norm(const pc__cuda_fold *d) : out(d->out), to(d->to), kind(d->kind)
    {
    }
    __device__ __forceinline__ double nothing() const
    {
        return kind == PC__NORM_LEAST ? INFINITY : 0;
    }
    /* Of a sum. */
    __device__ __forceinline__ M term(M x) const
    {
        const M size = size_of<M>(x);
        return kind == PC__NORM_ROOT ? x * x : kind == PC__NORM_CUBE_ROOT ? x * x * size : size;
    }
    /* NaN beats all. */
    template <class A> __device__ __forceinline__ A better(A a, A b) const
    {
        return (kind == PC__NORM_MOST ? b > a : b < a) || b != b ? b : a;
    }
    template <int N> __device__ __forceinline__ void see(double &all, const T (&x)[N], int64_t) const
    {
        if (kind == PC__NORM_MOST || kind == PC__NORM_LEAST) {
            M run = size_of<M>(x[0]);
#pragma unroll
            for (int k = 1; k < N; k++)
                run = better(run, size_of<M>(x[k]));
            all = better<double>(all, run);
            return;
        }
        M run = term(x[0]);
#pragma unroll
        for (int k = 1; k < N; k++)
            run += term(x[k]);
        all += run;
    }
    __device__ __forceinline__ void meet(double &all, double later) const
    {
        all = kind == PC__NORM_MOST || kind == PC__NORM_LEAST ? better(all, later) : all + later;
    }
    __device__ __forceinline__ double finished(double all) const
    {
        return kind == PC__NORM_ROOT ? sqrt(all) : kind == PC__NORM_CUBE_ROOT ? cbrt(all) : all;
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

template <class T> struct dot_product {
    typedef T type;
    typedef double state;
    const T *other;
    void *out;
    int to;
    explicit dot_product(const pc__cuda_fold *d) : other(static_cast<const T *>(d->other)), out(d->out), to(d->to)
    {
    }
    __device__ __forceinline__ double nothing() const
    {
        return 0;
    }
    template <int N> __device__ __forceinline__ void see(double &all, const T (&x)[N], int64_t at) const
    {
        pc::math<T> run = 0;
#pragma unroll
        for (int k = 0; k < N; k++)
            run += pc::math<T>(x[k]) * pc::math<T>(other[at + k]);
        all += run;
    }
    __device__ __forceinline__ void meet(double &all, double later) const
    {
        all += later;
    }
    __device__ __forceinline__ void store(double all, int64_t i) const
    {
        store_as(out, to, i, all);
    }
};

} // namespace

void pc__cuda_fold_norm(const pc__cuda_fold *d)
{
    fold_floats<vector_norm>(d);
}

void pc__cuda_fold_dot(const pc__cuda_fold *d)
{
    fold_floats<dot_product>(d);
}
