/* softmax_columns.cu: softmax and its kin along the middle of [outer][n][inner], where neighbours in memory belong to
 * different results. A block has up to 32 neighbouring columns, each thread some of a column's rows. It goes down twice,
 * the second time out of the caches: first for the maximum and the sum, which is corrected as the maximum rises. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/reduce/softmax.cuh"

#define THREADS 256
#define AT_ONCE 4 /* rows of a thread under way */

namespace
{

template <class T, int OP>
__device__ __forceinline__ void take(so_far<T> &a, const pc::math<T> (&x)[AT_ONCE], const pc::math<T> (&y)[AT_ONCE],
                                     int count)
{
    typedef pc::math<T> M;
    if (!traits<OP>::backward) {
        M higher = a.most;
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            higher = u < count ? larger()(higher, x[u]) : higher;
        a.rise_to(higher);
    }
    const M base = a.base();
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
        a.sum += u < count ? summand<T, OP>(x[u], y[u], base) : M(0);
}

template <class T, int OP>
__global__ void __launch_bounds__(THREADS)
    columns(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, int n, long long inner, int lanes)
{
    typedef pc::math<T> M;
    __shared__ so_far<T> parts[THREADS];
    const int height = THREADS / lanes, x = threadIdx.x % lanes, y = threadIdx.x / lanes;
    const long long tiles = (inner + lanes - 1) / lanes, outer = blockIdx.x / tiles;
    const long long column = (blockIdx.x - outer * tiles) * lanes + x;
    const long long first = outer * n * inner + min(column, inner - 1); /* beyond the end: the last one, for nothing */
    so_far<T> mine = so_far<T>::nothing();
    pc::wait_for_earlier();
    for (int row = y; row < n; row += AT_ONCE * height) {
        M in_a[AT_ONCE], in_b[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const long long at = first + min(row + u * height, n - 1) * inner;
            in_a[u] = a[at];
            in_b[u] = OP == PC__SOFTMAX_BACKWARD ? M(b[at]) : M(0);
        }
        take<T, OP>(mine, in_a, in_b, (n - row + height - 1) / height);
    }
    parts[threadIdx.x] = mine;
    for (int half = height / 2; half > 0; half /= 2) {
        __syncthreads();
        if (y < half) {
            so_far<T> other = parts[threadIdx.x + half * lanes];
            const M higher = larger()(mine.most, other.most);
            mine.rise_to(higher);
            other.rise_to(higher);
            mine.sum += other.sum;
            parts[threadIdx.x] = mine;
        }
    }
    __syncthreads();
    const M most = parts[x].most, sum = finished<M, OP>(parts[x].sum);
    if (column >= inner)
        return;
    for (int row = y; row < n; row += AT_ONCE * height) {
        M in_a[AT_ONCE], in_b[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const long long at = first + min(row + u * height, n - 1) * inner;
            in_a[u] = a[at];
            in_b[u] = traits<OP>::backward ? M(b[at]) : M(0);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const M term = OP == PC__SOFTMAX ? summand<T, OP>(in_a[u], M(0), most) : M(0);
            if (row + u * height < n)
                out[first + (row + u * height) * inner] = T(element<T, OP>(in_a[u], in_b[u], term, most, sum));
        }
    }
}

template <class T, int OP> void launch(const pc__cuda_softmax_columns *c)
{
    int lanes = 1;
    while (lanes < 32 && lanes < c->inner)
        lanes *= 2;
    const long long blocks = c->outer * ((c->inner + lanes - 1) / lanes);
    (void)pc::start(columns<T, OP>, (unsigned)blocks, THREADS, c->queue, c->early, (const T *)c->a, (const T *)c->b,
                    (T *)c->out, (int)c->n, (long long)c->inner, lanes);
}

template <int OP> void by_dtype(const pc__cuda_softmax_columns *c)
{
    switch (c->dtype) {
    case PC__CUDA_F16:
        return launch<pc::f16, OP>(c);
    case PC__CUDA_BF16:
        return launch<pc::bf16, OP>(c);
    case PC__CUDA_F32:
        return launch<float, OP>(c);
    default:
        return launch<double, OP>(c);
    }
}

} // namespace

void pc__cuda_softmax_down(const pc__cuda_softmax_columns *c, enum pc__cuda_softmax_op op)
{
    if (op == PC__SOFTMAX)
        by_dtype<PC__SOFTMAX>(c);
    else if (op == PC__LOG_SOFTMAX)
        by_dtype<PC__LOG_SOFTMAX>(c);
    else if (op == PC__SOFTMAX_BACKWARD)
        by_dtype<PC__SOFTMAX_BACKWARD>(c);
    else
        by_dtype<PC__LOG_SOFTMAX_BACKWARD>(c);
}
