/* softmax_held.cu: softmax and its kin along the middle of [outer][n][inner]: a column's elements are all under way at once, are
 * kept in registers and read once. Of up to 8 a thread has all, of W neighbouring columns; what is longer is divided among
 * threads of a block, 8 for each at most, so that none needs many registers and the warps of a block still have neighbours. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/reduce/softmax.cuh"

namespace
{

constexpr int THREADS = 128, HELD = PC__HELD_MOST, BLOCK_MOST = 1024;

template <class T, int W> struct alignas(W * sizeof(T)) pack {
    T at[W];
};

template <class T, int OP, int W>
__global__ void __launch_bounds__(THREADS) held_columns(const T *__restrict__ a, const T *__restrict__ b,
                                                        T *__restrict__ out, long long columns, int n, long long inner)
{
    typedef pc::math<T> M;
    typedef pack<T, W> access;
    constexpr bool BOTH = traits<OP>::backward;
    const long long id = (static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x) * W;
    const int rows = id < columns ? n : 0; /* of this thread */
    const long long start = quotient(id, inner) * (n - 1) * inner + id;
    access in_a[HELD], in_b[HELD];
    a += start, b += start, out += start;
    pc::wait_for_earlier();
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        if (k < rows)
            in_a[k] = *reinterpret_cast<const access *>(a);
        if (BOTH && k < rows)
            in_b[k] = *reinterpret_cast<const access *>(b);
        a += inner, b += inner;
    }
    M most[W], sum[W], term[HELD][W];
#pragma unroll
    for (int j = 0; j < W; j++)
        most[j] = M(-CUDART_INF), sum[j] = 0;
    if (!BOTH)
#pragma unroll
        for (int k = 0; k < HELD; k++)
            if (k < rows)
#pragma unroll
                for (int j = 0; j < W; j++)
                    most[j] = larger()(most[j], M(in_a[k].at[j]));
#pragma unroll
    for (int k = 0; k < HELD; k++)
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
    for (int k = 0; k < HELD; k++) {
        access y;
#pragma unroll
        for (int j = 0; j < W; j++)
            y.at[j] = T(element<T, OP>(in_a[k].at[j], BOTH ? M(in_b[k].at[j]) : M(0), term[k][j], most[j], sum[j]));
        if (k < rows)
            *reinterpret_cast<access *>(out) = y;
        out += inner;
    }
}

template <class T, int OP, int W> void launch_held(const pc__cuda_softmax_columns *c)
{
    const long long columns = c->outer * c->inner, threads = columns / W;
    (void)pc::start(held_columns<T, OP, W>, static_cast<unsigned>((threads + THREADS - 1) / THREADS), THREADS, c->queue,
                    c->early, static_cast<const T *>(c->a), static_cast<const T *>(c->b), static_cast<T *>(c->out),
                    columns, static_cast<int>(c->n), static_cast<long long>(c->inner));
}

/* 8 bytes an access where columns lie so, unless that leaves too few threads. */
template <class T, int OP> void launch_whole(const pc__cuda_softmax_columns *c)
{
    constexpr int W = 8 / sizeof(T);
    enum { ENOUGH = 16384 };
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(c->a) | reinterpret_cast<uintptr_t>(c->b) | reinterpret_cast<uintptr_t>(c->out);
    if (W > 1 && places % 8 == 0 && c->inner % W == 0 && c->outer * c->inner / W >= ENOUGH)
        launch_held<T, OP, W>(c);
    else
        launch_held<T, OP, 1>(c);
}

/* What the threads of a column have together; all of the block are here, [height][across]. */
template <class Join, class M>
__device__ __forceinline__ M joined(M mine, M *room, int x, int y, int across, int height)
{
    enum { FEW = 8 };
    M *own = room + threadIdx.x;
    *own = mine;
    while (height > FEW) {
        const int half = (height + 1) / 2;
        __syncthreads();
        if (y < height - half)
            *own = mine = Join()(mine, own[half * across]);
        height = half;
    }
    __syncthreads();
    M all = room[x];
#pragma unroll
    for (int k = 1; k < FEW; k++)
        if (k < height)
            all = Join()(all, room[k * across + x]);
    return all;
}

/* A block: `across` neighbouring columns; thread y of one has its rows y, y + height, ... */
template <class T, int OP>
__global__ void __launch_bounds__(BLOCK_MOST)
    parted_columns(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, long long columns, int n,
                   long long inner, int across, int height)
{
    typedef pc::math<T> M;
    constexpr bool BOTH = traits<OP>::backward;
    extern __shared__ double2 memory[]; /* for maxima and for sums, a number of each thread */
    M *const room = reinterpret_cast<M *>(memory);
    const int y = threadIdx.x / across, x = threadIdx.x - y * across;
    const long long id = static_cast<long long>(blockIdx.x) * across + x, mine = min(id, columns - 1);
    const long long step = height * inner, start = quotient(mine, inner) * (n - 1) * inner + mine + y * inner;
    T in_a[HELD], in_b[HELD];
    M term[HELD], most = M(-CUDART_INF), sum = 0;
    pc::wait_for_earlier();
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const bool there = y + k * height < n;
        in_a[k] = there ? a[start + k * step] : T(BOTH ? M(0) : M(-CUDART_INF));
        in_b[k] = BOTH && there ? b[start + k * step] : T(M(0));
    }
    if (!BOTH) {
#pragma unroll
        for (int k = 0; k < HELD; k++)
            most = larger()(most, M(in_a[k]));
        most = joined<larger>(most, room, x, y, across, height);
    }
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        term[k] = summand<T, OP>(M(in_a[k]), M(in_b[k]), most);
        sum += term[k];
    }
    sum = finished<M, OP>(joined<plus>(sum, room + blockDim.x, x, y, across, height));
#pragma unroll
    for (int k = 0; k < HELD; k++)
        if (id < columns && y + k * height < n)
            out[start + k * step] = T(element<T, OP>(M(in_a[k]), M(in_b[k]), term[k], most, sum));
}

template <class T, int OP> void launch_parted(const pc__cuda_softmax_columns *c, int across, int height)
{
    const long long columns = c->outer * c->inner;
    const unsigned threads = static_cast<unsigned>(across * height);
    (void)pc::start_grid(parted_columns<T, OP>, dim3(static_cast<unsigned>((columns + across - 1) / across)),
                         dim3(threads), 2 * threads * sizeof(pc::math<T>), c->queue, c->early,
                         static_cast<const T *>(c->a), static_cast<const T *>(c->b), static_cast<T *>(c->out), columns,
                         static_cast<int>(c->n), static_cast<long long>(c->inner), across, height);
}

/* As many neighbours as a warp has or there are, fewer of longer columns, down to one sector of memory, or of columns that are few
 * to a part of one, which costs less than a second launch; several times as many of short columns that are many, since a GPU
 * starts no more than a block in a nanosecond or so. 0: a block does not have so many threads. */
int across_of(const pc__cuda_softmax_columns *c, int height, int size)
{
    enum { ALONG = 32, GOOD_BLOCK = 512, GOOD_BYTES = 64, LEAST = 8, FEW_COLUMNS = 128, WIDE = 256, MANY = 1024 };
    const int64_t columns = c->outer * c->inner;
    const int least = columns <= FEW_COLUMNS ? 2 : LEAST;
    int across = c->few || c->inner > ALONG ? ALONG : static_cast<int>(c->inner);
    while (across * height > GOOD_BLOCK && across / 2 * size >= GOOD_BYTES)
        across /= 2;
    while (across * height > BLOCK_MOST && across > least)
        across = across / 2 > least ? across / 2 : least;
    if (across * height > BLOCK_MOST)
        return 0;
    while (2 * across * height <= WIDE && columns / across >= 2 * MANY)
        across *= 2;
    return across;
}

template <class T, int OP> bool launch(const pc__cuda_softmax_columns *c)
{
    enum { FEW_EACH = 4 };
    if (c->n <= HELD) {
        launch_whole<T, OP>(c);
        return true;
    }
    for (int each = c->few ? FEW_EACH : HELD; each <= HELD && c->n <= BLOCK_MOST * HELD; each *= 2) {
        const int height = static_cast<int>((c->n + each - 1) / each), across = across_of(c, height, sizeof(T));
        if (across) {
            launch_parted<T, OP>(c, across, height);
            return true;
        }
    }
    return false;
}

} // namespace

bool pc__cuda_softmax_held(const pc__cuda_softmax_columns *c, enum pc__cuda_softmax_op op)
{
    return with_kind(c->dtype, op, [&](auto kind) { return launch<typename decltype(kind)::number, kind.op>(c); });
}
