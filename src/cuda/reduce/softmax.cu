/* softmax.cu: a row is read once, kept in registers while its maximum and its sum are found, and written once: the
 * kernels take as long as reading and writing does. Rows up to 1024 have a warp or a part of one, those up to 8192 a
 * block, each thread with all its 16-byte loads in flight at once. Rows that begin anywhere have single elements at their
 * ends. Longer rows are gone through twice, the second time out of the caches. */
#include "cuda/shared/row.cuh"
#include "cuda/reduce/softmax.cuh"
#include "cuda/shared/sums.cuh"

#include <math_constants.h>

#define ROW_WARPS 4       /* of a block where a warp has whole rows */
#define BLOCK_THREADS 256 /* of a row */
#define LONG_THREADS 1024 /* of a long row */

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

/* W neighbours of a row of n, from `first` on, which may lie in front of it or reach beyond its end: what is not there is
 * `nothing`. Where all are, they lie on an access; WHOLE: all are. */
template <bool WHOLE, class M, class T, int W>
__device__ __forceinline__ pack<M, W> neighbours(const T *row, int first, int n, M nothing)
{
    if constexpr (!WHOLE) {
        if (first < 0 || first + W > n) {
            pack<M, W> x;
#pragma unroll
            for (int j = 0; j < W; j++)
                x.at[j] = first + j >= 0 && first + j < n ? M(row[first + j]) : nothing;
            return x;
        }
    }
    return converted<M>(*(const pack<T, W> *)(row + first));
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

/* Rows of n elements, kept in registers by `lanes` threads, N x W each at most. Blocks are [rows][lanes] threads; where
 * a warp has several rows, `lanes` divides it. WHOLE: every row lies on W elements and has a multiple of these; else
 * rows of all tensors begin at the same place between two such boundaries, and the first access is in front of them. */
template <class T, int OP, int THREADS, int N, int W, bool WHOLE>
__global__ void __launch_bounds__(THREADS == 32 ? 32 * ROW_WARPS : THREADS)
    row_kernel(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, long long rows, int n)
{
    typedef pc::math<T> M;
    const int lanes = THREADS == 32 ? blockDim.x : THREADS;
    const long long own = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    const long long row = own < rows ? own : rows - 1; /* beyond the end: the last one again, for nothing */
    a += row * n, b += row * n, out += row * n;
    const int before = WHOLE ? 0 : (int)((uintptr_t)a / sizeof(T) % W);
    const M nothing = traits<OP>::backward ? M(0) : M(-CUDART_INF);
    pack<M, W> in_a[N], in_b[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int first = (i * lanes + threadIdx.x) * W - before;
        if (WHOLE ? first < n : true)
            in_a[i] = neighbours<WHOLE, M, T, W>(a, first, n, nothing);
        if (traits<OP>::backward && (WHOLE ? first < n : true))
            in_b[i] = neighbours<WHOLE, M, T, W>(b, first, n, M(0));
#pragma unroll
        for (int j = 0; j < W; j++) {
            in_a[i].at[j] = !WHOLE || first < n ? in_a[i].at[j] : nothing;
            in_b[i].at[j] = traits<OP>::backward && (!WHOLE || first < n) ? in_b[i].at[j] : M(0);
        }
    }
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
        const int first = (i * lanes + threadIdx.x) * W - before;
#pragma unroll
        for (int j = 0; j < W; j++)
            in_a[i].at[j] = element<T, OP>(in_a[i].at[j], in_b[i].at[j], in_b[i].at[j], most, sum);
        if (first < n && own < rows)
            put_neighbours<WHOLE, M, T, W>(out, first, n, in_a[i]);
    }
}

/* A maximum so far, and the sum of exp(x - it); of nothing but -inf the sum is 0. */
template <class T> struct so_far {
    typedef pc::math<T> M;
    M most, sum;

    template <int N> __device__ __forceinline__ void operator()(const T (&x)[N], unsigned)
    {
        M higher = most;
#pragma unroll
        for (int k = 0; k < N; k++)
            higher = larger()(higher, M(x[k]));
        if (higher > most) {
            sum *= power<T>(most - higher);
            most = higher;
        }
        const M base = most > M(-CUDART_INF) ? most : M(0);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += power<T>(M(x[k]) - base);
    }
};

/* What stands beside a pack of N, which lies on 16 bytes too where `alike`. */
template <class T, int N> __device__ __forceinline__ pack<T, N> beside(const T *b, bool alike)
{
    pack<T, N> y;
    if (N > 1 && alike)
        return *(const pack<T, N> *)b;
#pragma unroll
    for (int k = 0; k < N; k++)
        y.at[k] = b[k];
    return y;
}

/* Rows of any length and place, a block each. `alike`: those of a, b and out begin at the same place between two
 * boundaries of 16 bytes. */
template <class T, int OP>
__global__ void __launch_bounds__(LONG_THREADS)
    long_kernel(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, unsigned n, int alike)
{
    typedef pc::math<T> M;
    const long long first = (long long)blockIdx.x * n;
    a += first, out += first;
    b += traits<OP>::backward ? first : 0;
    M most = M(-CUDART_INF), sum = 0;
    if constexpr (!traits<OP>::backward) {
        so_far<T> mine = {most, sum};
        pc::each_in_row<4>(a, n, threadIdx.x, LONG_THREADS, mine);
        most = block_join<larger, LONG_THREADS>(mine.most, most);
        sum = mine.sum * power<T>(mine.most - (most > M(-CUDART_INF) ? most : M(0)));
    } else {
        const auto add = [&](const auto &x, unsigned at) {
            constexpr int N = sizeof(x) / sizeof(T);
            pack<T, N> y = {};
            if constexpr (!traits<OP>::logarithm)
                y = beside<T, N>(b + at, alike);
#pragma unroll
            for (int k = 0; k < N; k++)
                sum += summand<T, OP>(x[k], y.at[k], M(0));
        };
        pc::each_in_row<4>(a, n, threadIdx.x, LONG_THREADS, add);
    }
    sum = finished<M, OP>(block_join<plus, LONG_THREADS>(sum, M(0)));
    const auto put = [&](const auto &x, unsigned at) {
        constexpr int N = sizeof(x) / sizeof(T);
        pack<T, N> y = {};
        if constexpr (traits<OP>::backward)
            y = beside<T, N>(b + at, alike);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const M term = OP == PC__SOFTMAX ? summand<T, OP>(x[k], M(0), most) : M(0);
            y.at[k] = T(element<T, OP>(x[k], y.at[k], term, most, sum));
        }
        if (N > 1 && alike)
            *(pack<T, N> *)(out + at) = y;
        else
            for (int k = 0; k < N; k++)
                out[at + k] = y.at[k];
    };
    pc::each_in_row<2>(a, n, threadIdx.x, LONG_THREADS, put);
}

struct rows {
    const void *a, *b;
    void *out;
    long long count, n;
    bool whole; /* every row lies on 16 bytes */
    bool alike; /* those of a, b and out begin at the same place between two boundaries of 16 bytes */
};

template <class T, int OP, int THREADS, int N, int W, bool WHOLE = true>
static void launch_rows(cudaStream_t queue, const rows &r)
{
    const long long most = r.n + (WHOLE ? 0 : W - 1); /* with what is in front of a row */
    int lanes = THREADS;
    while (THREADS == 32 && lanes > 1 && most <= lanes / 2 * N * W)
        lanes /= 2;
    const int together = THREADS == 32 ? 32 * ROW_WARPS / lanes : 1;
    const unsigned grid = (unsigned)((r.count + together - 1) / together);
    row_kernel<T, OP, THREADS, N, W, WHOLE>
        <<<grid, dim3(lanes, together), 0, queue>>>((const T *)r.a, (const T *)r.b, (T *)r.out, r.count, (int)r.n);
}

template <class T, int OP> static void launch_long(cudaStream_t queue, const rows &r)
{
    long_kernel<T, OP><<<(unsigned)r.count, LONG_THREADS, 0, queue>>>((const T *)r.a, (const T *)r.b, (T *)r.out,
                                                                      (unsigned)r.n, r.alike);
}

/* Rows that begin anywhere, up to 8192 elements, accesses of W. False: none of these. */
template <class T, int OP, int W> static bool launch_anywhere(cudaStream_t queue, const rows &r)
{
    const long long most = r.n + W - 1;
    if (!r.alike || most > 8192)
        return false;
    if (most <= 1024)
        launch_rows<T, OP, 32, 32 / W, W, false>(queue, r);
    else if (most <= 4096)
        launch_rows<T, OP, 256, 16 / W, W, false>(queue, r);
    else
        launch_rows<T, OP, 512, 16 / W, W, false>(queue, r);
    return true;
}

/* Two packs a thread: with four, 48 registers instead of 32, fewer warps wait for memory at once. */
template <class T, int OP> static void launch_halves(cudaStream_t queue, const rows &r)
{
    if (r.n <= 32)
        launch_rows<T, OP, 32, 1, 1>(queue, r);
    else if (r.whole && r.n <= 1024)
        launch_rows<T, OP, 32, 4, 8>(queue, r);
    else if (r.whole && r.n <= 128 * 8 * 2)
        launch_rows<T, OP, 128, 2, 8>(queue, r);
    else if (r.whole && r.n <= 256 * 8 * 2)
        launch_rows<T, OP, 256, 2, 8>(queue, r);
    else if (r.whole && r.n <= 512 * 8 * 2)
        launch_rows<T, OP, 512, 2, 8>(queue, r);
    else if (!launch_anywhere<T, OP, 8>(queue, r))
        launch_long<T, OP>(queue, r);
}

template <int OP> static void launch(cudaStream_t queue, int dtype, const rows &r)
{
    if (dtype == PC__CUDA_F16)
        launch_halves<pc::f16, OP>(queue, r);
    else if (dtype == PC__CUDA_BF16)
        launch_halves<pc::bf16, OP>(queue, r);
    else if (dtype == PC__CUDA_F64)
        r.n <= 128 ? launch_rows<double, OP, 32, 4, 1>(queue, r) : launch_long<double, OP>(queue, r);
    else if (r.n <= 32)
        launch_rows<float, OP, 32, 1, 1>(queue, r);
    else if (r.whole && r.n <= 512)
        launch_rows<float, OP, 32, 4, 4>(queue, r);
    else if (r.whole && r.n <= 1024)
        launch_rows<float, OP, 32, 8, 4>(queue, r);
    else if (r.whole && r.n <= BLOCK_THREADS * 4 * 2)
        launch_rows<float, OP, BLOCK_THREADS, 2, 4>(queue, r);
    else if (r.whole && r.n <= BLOCK_THREADS * 4 * 4)
        launch_rows<float, OP, BLOCK_THREADS, 4, 4>(queue, r);
    else if (r.whole && r.n <= BLOCK_THREADS * 4 * 8)
        launch_rows<float, OP, BLOCK_THREADS, 8, 4>(queue, r);
    else if (!launch_anywhere<float, OP, 4>(queue, r))
        launch_long<float, OP>(queue, r);
}

} // namespace

void pc__cuda_softmax(cudaStream_t queue, enum pc__cuda_softmax_op op, const pc__view *a, const pc__view *b,
                      const pc__view *out)
{
    rows r = {a->data, b ? b->data : a->data, out->data, 0, a->ndim ? a->shape[a->ndim - 1] : 1, false, false};
    r.count = a->count / r.n;
    const int together = a->dtype == PC__CUDA_F16 || a->dtype == PC__CUDA_BF16 ? 8 : 4;
    r.alike = (((uintptr_t)r.a ^ (uintptr_t)r.out) | ((uintptr_t)r.b ^ (uintptr_t)r.out)) % 16 == 0;
    r.whole = r.n % together == 0 && ((uintptr_t)r.a | (uintptr_t)r.b | (uintptr_t)r.out) % 16 == 0;
    if (op == PC__SOFTMAX)
        launch<PC__SOFTMAX>(queue, a->dtype, r);
    else if (op == PC__LOG_SOFTMAX)
        launch<PC__LOG_SOFTMAX>(queue, a->dtype, r);
    else if (op == PC__SOFTMAX_BACKWARD)
        launch<PC__SOFTMAX_BACKWARD>(queue, a->dtype, r);
    else
        launch<PC__LOG_SOFTMAX_BACKWARD>(queue, a->dtype, r);
}
