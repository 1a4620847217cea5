/* softmax.cu: a row is read once, kept in registers while its maximum and its sum are found, and written once: the
 * kernels take as long as reading and writing does. Rows up to 1024 have a warp or a part of one, those up to 8192 a
 * block, each thread with all its loads in flight at once, of 16 bytes where rows are whole ones. Rows that begin anywhere
 * have single elements at their ends, or where the tensors' do not begin alike, nothing else. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/reduce/softmax.cuh"

#define ROW_WARPS 4       /* of a block where a warp has whole rows */
#define BLOCK_THREADS 256 /* of a row */

namespace
{

template <class T, int W> struct alignas(W * sizeof(T)) pack {
    T at[W];
};

template <class O, class T, int W> __device__ __forceinline__ pack<O, W> converted(const pack<T, W> &x)
{
    pack<O, W> y;
#pragma unroll
    for (int j = 0; j < W; j++)
        y.at[j] = O(x.at[j]);
    return y;
}

/* Over the threads of a row: all of the block, or `lanes` of a warp, a power of 2. */
template <class Join, int THREADS, class T> __device__ __forceinline__ T row_join(T value, T nothing, int lanes)
{
    if constexpr (THREADS > 32) {
        return block_join<Join, THREADS>(value, nothing);
    } else {
        for (int distance = lanes / 2; distance > 0; distance /= 2)
            value = Join()(value, __shfl_xor_sync(0xffffffffu, value, distance));
        return value;
    }
}

/* A row's first element in a tensor that goes on so far before and behind it, as far as an access of W may reach. */
template <class T> struct place {
    const T *row;
    int n, front, back;
};

/* W neighbours of a row, from `first` on, which may lie in front of it or reach beyond its end, in one access, as they are: none
 * is waited for. Where they reach beyond the tensor, those of the row one by one. WHOLE: all are of the row. */
template <bool WHOLE, int W, class T> __device__ __forceinline__ pack<T, W> neighbours(const place<T> &p, int first)
{
    pack<T, W> x = {};
    if (first >= p.n)
        return x;
    if constexpr (!WHOLE) {
        if (first < -p.front || first + W > p.back) {
#pragma unroll
            for (int j = 0; j < W; j++)
                if (first + j >= 0 && first + j < p.n)
                    x.at[j] = p.row[first + j];
            return x;
        }
    }
    return *(const pack<T, W> *)(p.row + first);
}

/* What is not there is `nothing`. */
template <bool WHOLE, class M, class T, int W>
__device__ __forceinline__ pack<M, W> numbers(const pack<T, W> &raw, int first, int n, M nothing)
{
    pack<M, W> x = converted<M>(raw);
    if (WHOLE || first < 0 || first + W > n)
#pragma unroll
        for (int j = 0; j < W; j++)
            x.at[j] = (WHOLE ? first < n : first + j >= 0 && first + j < n) ? x.at[j] : nothing;
    return x;
}

template <bool WHOLE, class M, class T, int W>
__device__ __forceinline__ void put_neighbours(T *row, int first, int n, const pack<M, W> &x)
{
    if constexpr (!WHOLE) {
        if (first < 0 || first + W > n) {
#pragma unroll
            for (int j = 0; j < W; j++)
                if (first + j >= 0 && first + j < n)
                    row[first + j] = T(x.at[j]);
            return;
        }
    }
    *(pack<T, W> *)(row + first) = converted<T>(x);
}

template <int THREADS> constexpr int block_of = THREADS == 32 ? 32 * ROW_WARPS : THREADS;

/* Whether as many threads as a multiprocessor takes have room: 32 registers are enough for these. */
template <class T, int OP, int N, int W, bool WHOLE>
constexpr bool full = OP == PC__SOFTMAX && sizeof(T) == 4 && W == 4 && N <= 4 && WHOLE;

/* Rows of n elements, kept in registers by `lanes` threads, N x W each at most. Blocks are [rows][lanes] threads; where
 * a warp has several rows, `lanes` divides it. WHOLE: every row lies on W elements and has a multiple of these; else
 * rows of all tensors begin at the same place between two such boundaries, and the first access is in front of them. */
template <class T, int OP, int THREADS, int N, int W, bool WHOLE>
__global__ void __launch_bounds__(block_of<THREADS>, (full<T, OP, N, W, WHOLE> ? 2048 / block_of<THREADS> : 0))
    row_kernel(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, long long rows, int n)
{
    typedef pc::math<T> M;
    const int lanes = THREADS == 32 ? blockDim.x : THREADS;
    const long long own = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    const long long row = own < rows ? own : rows - 1; /* beyond the end: the last one again, for nothing */
    const int front = (int)min(row * n, (long long)W), back = (int)min((rows - row) * n, (long long)n + W);
    a += row * n, b += row * n, out += row * n;
    const int before = WHOLE ? 0 : (int)((uintptr_t)a / sizeof(T) % W);
    const auto first_of = [=](int i) { return (int)((i * lanes + threadIdx.x) * W - before); };
    const M nothing = traits<OP>::backward ? M(0) : M(-CUDART_INF);
    pack<T, W> raw_a[N], raw_b[N];
    pack<M, W> in_a[N], in_b[N];
    const auto convert = [&](int i) {
        in_a[i] = numbers<WHOLE>(raw_a[i], first_of(i), n, nothing);
        in_b[i] = traits<OP>::backward ? numbers<WHOLE>(raw_b[i], first_of(i), n, M(0)) : pack<M, W>();
    };
    pc::wait_for_earlier();
#pragma unroll
    for (int i = 0; i < N; i++) {
        raw_a[i] = neighbours<WHOLE, W>(place<T>{a, n, front, back}, first_of(i));
        if (traits<OP>::backward)
            raw_b[i] = neighbours<WHOLE, W>(place<T>{b, n, front, back}, first_of(i));
        if (WHOLE)
            convert(i);
    }
#pragma unroll
    for (int i = 0; !WHOLE && i < N; i++)
        convert(i);
    M most = M(-CUDART_INF), sum = 0;
    if (!traits<OP>::backward) {
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int j = 0; j < W; j++)
                most = larger()(most, in_a[i].at[j]);
        most = row_join<larger, THREADS>(most, M(-CUDART_INF), lanes);
    }
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int j = 0; j < W; j++) {
            const M term = summand<T, OP>(in_a[i].at[j], in_b[i].at[j], most);
            sum += term;
            if (OP == PC__SOFTMAX)
                in_b[i].at[j] = term;
        }
    sum = finished<M, OP>(row_join<plus, THREADS>(sum, M(0), lanes));
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int first = first_of(i);
#pragma unroll
        for (int j = 0; j < W; j++)
            in_a[i].at[j] = element<T, OP>(in_a[i].at[j], in_b[i].at[j], in_b[i].at[j], most, sum);
        if (first < n && own < rows)
            put_neighbours<WHOLE, M, T, W>(out, first, n, in_a[i]);
    }
}

template <class T, int OP, int THREADS, int N, int W, bool WHOLE = true>
static void launch_rows(const pc__cuda_softmax_rows &r)
{
    const long long most = r.n + (WHOLE ? 0 : W - 1); /* with what is in front of a row */
    int lanes = THREADS;
    while (THREADS == 32 && lanes > 1 && most <= lanes / 2 * N * W)
        lanes /= 2;
    const int together = THREADS == 32 ? 32 * ROW_WARPS / lanes : 1;
    const unsigned grid = (unsigned)((r.count + together - 1) / together);
    (void)pc::start_grid(row_kernel<T, OP, THREADS, N, W, WHOLE>, dim3(grid), dim3(lanes, together), 0, r.queue,
                         r.early, (const T *)r.a, (const T *)r.b, (T *)r.out, (long long)r.count, (int)r.n);
}

/* Rows that begin anywhere, of all tensors alike, up to 8192 elements; accesses of W. Where there are not too many, a warp has a
 * short one alone. */
template <class T, int OP, int W> static void launch_alike(const pc__cuda_softmax_rows &r)
{
    enum { ALONE = 3 << 18 /* elements */ };
    const long long most = r.n + W - 1;
    if (most <= 32 * W && r.count * r.n <= ALONE)
        launch_rows<T, OP, 32, 1, W, false>(r);
    else if (most <= 1024)
        launch_rows<T, OP, 32, 32 / W, W, false>(r);
    else if (most <= 4096)
        launch_rows<T, OP, 256, 16 / W, W, false>(r);
    else
        launch_rows<T, OP, 512, 16 / W, W, false>(r);
}

/* The same wherever each tensor's rows begin: an element an access. */
template <class T, int OP> static bool launch_singles(const pc__cuda_softmax_rows &r)
{
    if (r.n <= 256)
        launch_rows<T, OP, 32, 8, 1>(r);
    else if (sizeof(T) <= 4 && r.n <= 512 && !r.few)
        launch_rows<T, OP, 32, sizeof(T) <= 4 ? 16 : 8, 1>(r);
    else if (r.n <= 1024)
        launch_rows<T, OP, 128, 8, 1>(r);
    else if (r.n <= 8192)
        launch_rows<T, OP, 512, 16, 1>(r);
    else
        return false;
    return true;
}

/* Where a row is not whole accesses, those of few elements go one by one: these take the least time. */
template <class T, int OP, int W> static bool launch_anywhere(const pc__cuda_softmax_rows &r)
{
    if (!r.alike || r.n + W - 1 > 8192 || (r.few && r.n <= 1024))
        return launch_singles<T, OP>(r);
    launch_alike<T, OP, W>(r);
    return true;
}

/* Two packs a thread: with four, 48 registers instead of 32, fewer warps wait for memory at once. */
template <class T, int OP> static bool launch_halves(const pc__cuda_softmax_rows &r)
{
    if (!r.whole)
        return launch_anywhere<T, OP, 8>(r);
    if (r.n <= (r.few ? 256 : 32))
        launch_rows<T, OP, 32, 1, 8>(r);
    else if (r.n <= 1024 && !r.few)
        launch_rows<T, OP, 32, 4, 8>(r);
    else if (r.n <= 128 * 8 * 2)
        launch_rows<T, OP, 128, 2, 8>(r);
    else if (r.n <= 256 * 8 * 2)
        launch_rows<T, OP, 256, 2, 8>(r);
    else if (r.n <= 512 * 8 * 2)
        launch_rows<T, OP, 512, 2, 8>(r);
    else
        return false;
    return true;
}

template <int OP> static bool launch_floats(const pc__cuda_softmax_rows &r)
{
    if (!r.whole)
        return launch_anywhere<float, OP, 4>(r);
    if (r.n <= (r.few ? 128 : 32))
        launch_rows<float, OP, 32, 1, 4>(r);
    else if (r.n <= 512 && !r.few)
        launch_rows<float, OP, 32, 4, 4>(r);
    else if (r.n <= 1024 && !r.few)
        launch_rows<float, OP, 32, 8, 4>(r);
    else if (r.n <= BLOCK_THREADS * 4 * 2)
        launch_rows<float, OP, BLOCK_THREADS, 2, 4>(r);
    else if (r.n <= BLOCK_THREADS * 4 * 4)
        launch_rows<float, OP, BLOCK_THREADS, 4, 4>(r);
    else if (r.n <= BLOCK_THREADS * 4 * 8)
        launch_rows<float, OP, BLOCK_THREADS, 8, 4>(r);
    else
        return false;
    return true;
}

template <class T, int OP> static bool launch(const pc__cuda_softmax_rows &r)
{
    if constexpr (sizeof(T) == 2)
        return launch_halves<T, OP>(r);
    else if constexpr (sizeof(T) == 4)
        return launch_floats<OP>(r);
    else
        return launch_singles<T, OP>(r);
}

} // namespace

bool pc__cuda_softmax_short(const pc__cuda_softmax_rows *r, enum pc__cuda_softmax_op op)
{
    return with_kind(r->dtype, op, [&](auto kind) { return launch<typename decltype(kind)::number, kind.op>(*r); });
}
