/* fold_prod.cu: products, and their gradient. */
#include "cuda/reduce/fold.cuh"

namespace
{

/* Of neighbours in their own type (16-bit numbers in float), beyond in A. */
template <class T, class A> struct product {
    typedef T type;
    typedef A state;
    void *out;
    int to;
    explicit product(const pc__cuda_fold *d) : out(d->out), to(d->to)
    {
    }
    __device__ __forceinline__ A nothing() const
    {
        return A(1);
    }
    template <int N> __device__ __forceinline__ void see(A &all, const T (&x)[N], int64_t) const
    {
        pc::math<T> run = x[0];
#pragma unroll
        for (int k = 1; k < N; k++)
            run *= x[k];
        all *= static_cast<A>(run);
    }
    __device__ __forceinline__ void meet(A &all, const A &later) const
    {
        all *= later;
    }
    __device__ __forceinline__ void store(double all, int64_t i) const
    {
        store_as(out, to, i, all);
    }
    __device__ __forceinline__ void store(unsigned long long all, int64_t i) const
    {
        static_cast<unsigned long long *>(out)[i] = all;
    }
    template <int W> __device__ __forceinline__ void store_all(const double (&all)[W], int64_t i) const
    {
        store_as(out, to, i, all);
    }
};

template <class T> using float_product = product<T, double>;

/* What is not 0 multiplied, and how many are. */
template <class T> struct product_parts {
    typedef T type;
    struct state {
        double product;
        unsigned long long zeros;
    };
    const T *g;
    T *of_zero, *of_other;
    explicit product_parts(const pc__cuda_fold *d)
        : g(static_cast<const T *>(d->other)), of_zero(static_cast<T *>(d->also)), of_other(static_cast<T *>(d->out))
    {
    }
    __device__ __forceinline__ state nothing() const
    {
        return {1, 0};
    }
    template <int N> __device__ __forceinline__ void see(state &s, const T (&x)[N], int64_t) const
    {
        unsigned zeros = 0;
#pragma unroll
        for (int k = 0; k < N; k++) {
            s.product *= x[k] == 0 ? 1 : static_cast<double>(x[k]);
            zeros += x[k] == 0;
        }
        s.zeros += zeros;
    }
    __device__ __forceinline__ void meet(state &s, const state &later) const
    {
        s.product *= later.product;
        s.zeros += later.zeros;
    }
    __device__ __forceinline__ void store(const state &s, int64_t i) const
    {
        const T all = static_cast<T>(static_cast<double>(g[i]) * s.product);
        of_zero[i] = s.zeros == 1 ? all : T(0);
        of_other[i] = s.zeros == 0 ? all : T(0);
    }
};

template <class T>
__global__ void __launch_bounds__(PC__FOLD_THREADS)
    to_elements(const T *__restrict__ x, const T *__restrict__ of_zero, const T *__restrict__ of_other,
                T *__restrict__ dx, long long count, long long reduced, long long inner)
{
    const long long i = static_cast<long long>(blockIdx.x) * PC__FOLD_THREADS + threadIdx.x, row = quotient(i, inner),
                    result = quotient(row, reduced) * inner + (i - row * inner);
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const T v = x[i];
    dx[i] = v == 0 ? of_zero[result] : of_other[result] / v;
}

template <class T> void launch(const pc__cuda_prod_backward *b)
{
    (void)pc::start(to_elements<T>, static_cast<unsigned>((b->count + PC__FOLD_THREADS - 1) / PC__FOLD_THREADS),
                    PC__FOLD_THREADS, b->queue, b->early, static_cast<const T *>(b->x),
                    static_cast<const T *>(b->of_zero), static_cast<const T *>(b->of_other), static_cast<T *>(b->dx),
                    static_cast<long long>(b->count), static_cast<long long>(b->reduced),
                    static_cast<long long>(b->inner));
}

} // namespace

void pc__cuda_fold_prod(const pc__cuda_fold *d)
{
    if (d->from == PC__CUDA_I64)
        fold(d, product<unsigned long long, unsigned long long>(d));
    else
        fold_floats<float_product>(d);
}

void pc__cuda_fold_prod_parts(const pc__cuda_fold *d)
{
    if (d->from == PC__CUDA_F64)
        fold(d, product_parts<double>(d));
    else
        fold(d, product_parts<float>(d));
}

void pc__cuda_prod_to_elements(const pc__cuda_prod_backward *b)
{
    b->dtype == PC__CUDA_F64 ? launch<double>(b) : launch<float>(b);
}
