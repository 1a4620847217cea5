/* softmax_held.cu: softmax and its kin along the middle of [outer][n][inner] where n is small: a thread has W neighbouring
 * columns from top to bottom, all its loads under way at once, and keeps them in registers: they are read once. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/reduce/softmax.cuh"

namespace
{

constexpr int THREADS = 128;

template <class T, int W> struct alignas(W * sizeof(T)) pack {
    T at[W];
};

template <class T, int OP, int N, int W>
__global__ void __launch_bounds__(THREADS) held_columns(const T *__restrict__ a, const T *__restrict__ b,
                                                        T *__restrict__ out, long long columns, int n, long long inner)
{
    typedef pc::math<T> M;
    typedef pack<T, W> access;
    constexpr bool BOTH = traits<OP>::backward;
    const long long id = (static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x) * W;
    const int rows = id < columns ? n : 0; /* of this thread */
    const long long start = quotient(id, inner) * (n - 1) * inner + id;
    access in_a[N], in_b[N];
    a += start, b += start, out += start;
    pc::wait_for_earlier();
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k < rows)
            in_a[k] = *reinterpret_cast<const access *>(a);
        if (BOTH && k < rows)
            in_b[k] = *reinterpret_cast<const access *>(b);
        a += inner, b += inner;
    }
    M most[W], sum[W], term[N][W];
#pragma unroll
    for (int j = 0; j < W; j++)
        most[j] = M(-CUDART_INF), sum[j] = 0;
    if (!BOTH)
#pragma unroll
        for (int k = 0; k < N; k++)
            if (k < rows)
#pragma unroll
                for (int j = 0; j < W; j++)
                    most[j] = larger()(most[j], M(in_a[k].at[j]));
#pragma unroll
    for (int k = 0; k < N; k++)
        if (k < rows)
#pragma unroll
            for (int j = 0; j < W; j++) {
                term[k][j] = summand<T, OP>(in_a[k].at[j], BOTH ? M(in_b[k].at[j]) : M(0), most[j]);
                sum[j] += term[k][j];
            }
#pragma unroll
    for (int j = 0; j < W; j++)
        sum[j] = finished<M, OP>(sum[j]);
#pragma unroll
    for (int k = 0; k < N; k++) {
        access y;
#pragma unroll
        for (int j = 0; j < W; j++)
            y.at[j] = T(element<T, OP>(in_a[k].at[j], BOTH ? M(in_b[k].at[j]) : M(0), term[k][j], most[j], sum[j]));
        if (k < rows)
            *reinterpret_cast<access *>(out) = y;
        out += inner;
    }
}

template <class T, int OP, int N, int W> void launch_held(const pc__cuda_softmax_columns *c)
{
    const long long columns = c->outer * c->inner, threads = columns / W;
    (void)pc::start(held_columns<T, OP, N, W>, static_cast<unsigned>((threads + THREADS - 1) / THREADS), THREADS,
                    c->queue, c->early, static_cast<const T *>(c->a), static_cast<const T *>(c->b),
                    static_cast<T *>(c->out), columns, static_cast<int>(c->n), static_cast<long long>(c->inner));
}

/* 8 bytes an access where columns lie so, unless that leaves too few threads. */
template <class T, int OP> void launch(const pc__cuda_softmax_columns *c)
{
    constexpr int W = 8 / sizeof(T);
    enum { ENOUGH = 16384 };
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(c->a) | reinterpret_cast<uintptr_t>(c->b) | reinterpret_cast<uintptr_t>(c->out);
    if (c->n > 8)
        launch_held<T, OP, PC__HELD_MOST, 1>(c);
    else if (W > 1 && places % 8 == 0 && c->inner % W == 0 && c->outer * c->inner / W >= ENOUGH)
        launch_held<T, OP, 8, W>(c);
    else
        launch_held<T, OP, 8, 1>(c);
}

} // namespace

void pc__cuda_softmax_held(const pc__cuda_softmax_columns *c, enum pc__cuda_softmax_op op)
{
    with_kind(c->dtype, op, [&](auto kind) { launch<typename decltype(kind)::number, kind.op>(c); });
}
