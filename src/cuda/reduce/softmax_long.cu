/* softmax_long.cu: softmax and its kin over rows of any length, which are gone through twice, the second time out of the
 * caches. Where there are many, a block has a row. Few are cut: one kernel finds the maximum and the sum of each piece,
 * another joins those of a row, once more for each of its pieces, and writes the piece. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/reduce/softmax.cuh"
#include "cuda/shared/row.cuh"

namespace
{

constexpr int WHOLE = 1024, PIECE = 256; /* threads of a row, of a piece */

template <class T, int N> struct alignas(N * sizeof(T)) pack {
    T at[N];
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

/* What a block's threads find in n elements together. Backward there is no maximum: it stays 0. */
template <class T, int OP, int THREADS>
__device__ __forceinline__ so_far<T> found(const T *a, const T *b, unsigned n, bool alike)
{
    typedef pc::math<T> M;
    so_far<T> all = {M(0), M(0)};
    if constexpr (!traits<OP>::backward) {
        so_far<T> mine = so_far<T>::nothing();
        pc::each_in_row<4>(a, n, threadIdx.x, THREADS, mine);
        all.most = block_join<larger, THREADS>(mine.most, M(-CUDART_INF));
        all.sum = mine.sum * power<T>(mine.most - all.base());
    } else {
        const auto add = [&](const auto &x, unsigned at) {
            constexpr int N = sizeof(x) / sizeof(T);
            pack<T, N> y = {};
            if constexpr (!traits<OP>::logarithm)
                y = beside<T, N>(b + at, alike);
#pragma unroll
            for (int k = 0; k < N; k++)
                all.sum += summand<T, OP>(x[k], y.at[k], M(0));
        };
        pc::each_in_row<4>(a, n, threadIdx.x, THREADS, add);
    }
    all.sum = block_join<plus, THREADS>(all.sum, M(0));
    return all;
}

/* n elements of a row that comes to `row`. */
template <class T, int OP, int THREADS>
__device__ __forceinline__ void put(const T *a, const T *b, T *out, unsigned n, bool alike, const so_far<T> &row)
{
    typedef pc::math<T> M;
    const M sum = finished<M, OP>(row.sum);
    const auto write = [&](const auto &x, unsigned at) {
        constexpr int N = sizeof(x) / sizeof(T);
        pack<T, N> y = {};
        if constexpr (traits<OP>::backward)
            y = beside<T, N>(b + at, alike);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const M term = OP == PC__SOFTMAX ? summand<T, OP>(x[k], M(0), row.most) : M(0);
            y.at[k] = T(element<T, OP>(x[k], y.at[k], term, row.most, sum));
        }
        if (N > 1 && alike)
            *(pack<T, N> *)(out + at) = y;
        else
            for (int k = 0; k < N; k++)
                out[at + k] = y.at[k];
    };
    pc::each_in_row<2>(a, n, threadIdx.x, THREADS, write);
}

template <class T, int OP>
__global__ void __launch_bounds__(WHOLE)
    whole_rows(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, unsigned n, int alike)
{
    const long long first = (long long)blockIdx.x * n;
    pc::wait_for_earlier();
    const so_far<T> row = found<T, OP, WHOLE>(a + first, b + first, n, alike);
    put<T, OP, WHOLE>(a + first, b + first, out + first, n, alike, row);
}

/* Where the block's piece begins, and how long it is. */
struct place {
    long long row, first;
    unsigned n;
};

__device__ __forceinline__ place place_of(long long n, unsigned parts, long long piece)
{
    const long long row = blockIdx.x / parts, begin = (blockIdx.x - row * parts) * piece;
    return {row, row * n + begin, (unsigned)(n - begin < piece ? n - begin : piece)};
}

template <class T, int OP>
__global__ void __launch_bounds__(PIECE)
    find_pieces(const T *__restrict__ a, const T *__restrict__ b, so_far<T> *between, long long n, unsigned parts,
                long long piece, int alike)
{
    const place p = place_of(n, parts, piece);
    pc::wait_for_earlier();
    const so_far<T> own = found<T, OP, PIECE>(a + p.first, b + p.first, p.n, alike);
    if (threadIdx.x == 0)
        between[blockIdx.x] = own;
}

template <class T, int OP>
__global__ void __launch_bounds__(PIECE)
    put_pieces(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, const so_far<T> *between,
               long long n, unsigned parts, long long piece, int alike)
{
    typedef pc::math<T> M;
    const place p = place_of(n, parts, piece);
    pc::wait_for_earlier();
    so_far<T> row = traits<OP>::backward ? so_far<T>{M(0), M(0)} : so_far<T>::nothing();
    for (unsigned i = threadIdx.x % 32; i < parts; i += 32) /* by each warp alike */
        row += between[p.row * parts + i];
    row.join_warp();
    put<T, OP, PIECE>(a + p.first, b + p.first, out + p.first, p.n, alike, row);
}

template <class T, int OP> void launch(const pc__cuda_softmax_rows *r)
{
    const T *a = (const T *)r->a, *b = (const T *)r->b;
    const unsigned blocks = (unsigned)(r->count * r->parts), parts = (unsigned)r->parts;
    const long long n = r->n, piece = r->piece;
    const int alike = r->alike;
    if (parts == 1) {
        (void)pc::start(whole_rows<T, OP>, blocks, WHOLE, r->queue, r->early, a, b, (T *)r->out, (unsigned)n, alike);
        return;
    }
    so_far<T> *between = (so_far<T> *)r->between;
    const cudaError_t found =
        pc::start(find_pieces<T, OP>, blocks, PIECE, r->queue, r->early, a, b, between, n, parts, piece, alike);
    if (found == cudaSuccess)
        (void)pc::start(put_pieces<T, OP>, blocks, PIECE, r->queue, r->early, a, b, (T *)r->out,
                        (const so_far<T> *)between, n, parts, piece, alike);
}

} // namespace

void pc__cuda_softmax_long(const pc__cuda_softmax_rows *r, enum pc__cuda_softmax_op op)
{
    with_kind(r->dtype, op, [&](auto kind) { launch<typename decltype(kind)::number, kind.op>(r); });
}
