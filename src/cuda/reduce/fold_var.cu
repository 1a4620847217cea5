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
    double *means, divisor, inverse;
    int to;
    bool root;
    explicit moments(const pc__cuda_fold *d)
        : out(d->out), means(static_cast<double *>(d->also)), divisor(d->how.divisor), inverse(1 / divisor), to(d->to),
          root(d->kind != 0)
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
    /* Squares around the mean of the row as M has it. In float64 that is mended first by what the numbers are off it, so that those
     * that are all equal have none. */
    template <int EACH> __device__ __forceinline__ void row_of_few(state &s, const T (&x)[EACH], int count) const
    {
        const double n = sum_of_lanes(static_cast<double>(count), 32), share = n > 0 ? 1 / n : 0;
        double sum = 0;
        M run = 0;
#pragma unroll
        for (int u = 0; u < EACH; u++)
            sum += u < count ? static_cast<double>(M(x[u])) * share : 0;
        double mean = sum_of_lanes(sum, 32);
        if constexpr (sizeof(M) == sizeof(double)) {
            double rest = 0;
#pragma unroll
            for (int u = 0; u < EACH; u++)
                rest += u < count ? x[u] - mean : 0;
            const double all = sum_of_lanes(rest, 32);
            mean += all - all == 0 ? all * share : 0;
        }
        const M rounded = static_cast<M>(mean);
        const double off = mean - static_cast<double>(rounded);
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const M apart = u < count ? M(x[u]) - rounded : M(0);
            run += apart * apart;
        }
        s = {n, mean, sum_of_lanes(static_cast<double>(run), 32) - n * off * off};
    }
    /* Of so many lanes next to each other, all at once: squares around the mean of all, which is that of the first and what the others
     * are off it. */
    __device__ __forceinline__ void over_lanes(state &s, int lanes) const
    {
        const double one = __shfl_sync(0xffffffffu, s.mean, 0, lanes), first = one - one == 0 ? one : 0;
        const double n = sum_of_lanes(s.n, lanes), off = sum_of_lanes(s.n > 0 ? s.n * (s.mean - first) : 0, lanes);
        const double mean = n > 0 ? first + off / n : 0, apart = mean - s.mean;
        s = {n, mean, sum_of_lanes(s.n > 0 ? s.squares + s.n * apart * apart : 0, lanes)};
    }
    __device__ __forceinline__ double finished(const state &s) const
    {
        const double squares = s.squares < 0 ? 0 : s.squares;
        const double variance = sizeof(M) == sizeof(double) ? squares / divisor : squares * inverse;
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
