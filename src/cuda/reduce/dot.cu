/* dot.cu: the product of two vectors. Neighbours, or what a thread has in a turn, are added in their own type (16-bit numbers in
 * float), beyond in double. */
#include "cuda/reduce/fold.cuh"

namespace
{

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

/* How far apart elements of the vectors are. */
struct steps {
    int64_t x, other;
};

/* The product of a thread's next elements, which are `hop` apart; where they are not ALL there, of `left` of them. */
template <int TURN, bool ALL, class T>
__device__ __forceinline__ double turn(const T *&x, const T *&y, const steps &hop, unsigned left)
{
    typedef pc::math<T> M;
    T a[TURN] = {}, b[TURN] = {};
    M run = 0;
#pragma unroll
    for (unsigned u = 0; u < TURN; u++, x += hop.x)
        if (ALL || u < left)
            a[u] = *x;
#pragma unroll
    for (unsigned u = 0; u < TURN; u++, y += hop.other)
        if (ALL || u < left)
            b[u] = *y;
#pragma unroll
    for (int u = 0; u < TURN; u++)
        run += M(a[u]) * M(b[u]);
    return run;
}

/* Pieces as of fold_rows, where neighbouring threads have neighbouring elements, which lie apart in memory. */
template <class T>
__global__ void __launch_bounds__(PC__WIDE_THREADS)
    dot_apart(const __grid_constant__ pc__cuda_reduction r, const __grid_constant__ dot_product<T> f,
              const T *__restrict__ in, steps step, void *between)
{
    constexpr int TURN = 8;
    const unsigned lanes = r.lanes, lane = threadIdx.x & (lanes - 1);
    const piece p = piece_of(r);
    const steps hop = {lanes * step.x, lanes * step.other};
    const T *x = in + (p.begin + lane) * step.x, *y = f.other + (p.begin + lane) * step.other;
    unsigned left = lane < p.count ? (p.count - lane - 1) / lanes + 1 : 0;
    double mine = 0;
    pc::wait_for_earlier();
#pragma unroll 1
    for (; left >= TURN; left -= TURN)
        mine += turn<TURN, true>(x, y, hop, TURN);
    if (left > 0)
        mine += turn<TURN, false>(x, y, hop, left);
    join_all(f, mine, lanes);
    if (lane == 0 && p.there)
        leave(f, mine, r.parts, between, p.id);
}

template <class T> void start_apart(const pc__cuda_fold *d)
{
    const pc__cuda_reduction *r = &d->how;
    const dot_product<T> f(d);
    const int threads = r->lanes > PC__FOLD_THREADS ? r->lanes : PC__FOLD_THREADS;
    const int64_t per_block = threads / r->lanes;
    (void)pc::start(dot_apart<T>, static_cast<unsigned>((r->parts + per_block - 1) / per_block), threads, r->queue,
                    r->early, *r, f, static_cast<const T *>(d->in), steps{d->step, d->other_step}, d->between);
    join_parts(d, f);
}

} // namespace

void pc__cuda_fold_dot(const pc__cuda_fold *d)
{
    if (d->step == 1 && d->other_step == 1)
        return fold_floats<dot_product>(d);
    switch (d->from) {
    case PC__CUDA_F16:
        return start_apart<pc::f16>(d);
    case PC__CUDA_BF16:
        return start_apart<pc::bf16>(d);
    case PC__CUDA_F32:
        return start_apart<float>(d);
    default:
        return start_apart<double>(d);
    }
}
