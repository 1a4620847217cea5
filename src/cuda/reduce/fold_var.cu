/* fold_var.cu: variances: of neighbours the mean and the squares around it in their own type (16-bit numbers in float), and those
 * joined by their means in double, so nothing is a difference of large sums. */
#include "cuda/reduce/fold.cuh"

namespace
{

template <class T> struct moments {
    typedef T type;
    typedef pc::math<T> M;
    struct state {
        double n, mean, squares;
    };
    void *out;
    double *means, divisor;
    int to;
    bool root;
    explicit moments(const pc__cuda_fold *d)
        : out(d->out), means(static_cast<double *>(d->also)), divisor(d->how.divisor), to(d->to), root(d->kind != 0)
    {
    }
    __device__ __forceinline__ state nothing() const
    {
        return {0, 0, 0};
    }

    /* Of n more numbers; `part` is n / (s.n + n). */
    __device__ __forceinline__ static void join(state &s, double n, double mean, double squares, double part)
    {
        const double apart = mean - s.mean;
        s.squares += squares + s.n * part * apart * apart;
        s.mean = apart - apart == 0 ? s.mean + apart * part : s.mean + mean; /* of infinity it is that */
        s.n += n;
    }
    template <int N> __device__ __forceinline__ void see(state &s, const T (&x)[N], int64_t) const
    {
        M mean = x[0], squares = 0, rest = 0;
#pragma unroll
        for (int k = 1; k < N; k++)
            mean += x[k];
        mean /= M(N);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const M apart = M(x[k]) - mean;
            rest += apart;
            squares += apart * apart;
        }
        const M off = rest - rest == 0 ? rest / M(N) : M(0); /* of numbers that are not all finite it is none */
        squares -= off * rest;
        if (s.n == 0) {
            s = {N, static_cast<double>(mean) + off, squares < 0 ? 0 : static_cast<double>(squares)};
            return;
        }
        join(s, N, static_cast<double>(mean) + off, squares < 0 ? 0 : squares, part_of(M(N), static_cast<M>(s.n)));
    }
    /* A quotient in float is as near as the mean is to what it is added to. */
    __device__ __forceinline__ static double part_of(M n, M before)
    {
        return static_cast<double>(n / (before + n));
    }
    __device__ __forceinline__ void meet(state &s, const state &later) const
    {
        if (later.n > 0)
            join(s, later.n, later.mean, later.squares, part_of(static_cast<M>(later.n), static_cast<M>(s.n)));
    }
    __device__ __forceinline__ double finished(const state &s) const
    {
        const double variance = s.squares / divisor;
        return root ? sqrt(variance) : variance;
    }
    __device__ __forceinline__ void store(const state &s, int64_t i) const
    {
        store_as(out, to, i, finished(s));
        means[i] = s.n > 0 ? s.mean : NAN;
    }
    template <int W> __device__ __forceinline__ void store_all(const state (&s)[W], int64_t i) const
    {
        double value[W];
#pragma unroll
        for (int w = 0; w < W; w++) {
            value[w] = finished(s[w]);
            means[i + w] = s[w].n > 0 ? s[w].mean : NAN;
        }
        store_as(out, to, i, value);
    }
};

} // namespace

void pc__cuda_fold_var(const pc__cuda_fold *d)
{
    fold_floats<moments>(d);
}
