/* cross_entropy_both.cu: the loss of labels and its gradient, of rows that fit into shared memory: each is read once. Blocks and their
 * threads share the work as in cross_entropy.cu, so that the bits are the same. */
#include "cuda/loss/cross_entropy.cuh"
#include "cuda/shared/mma.cuh"
#include "cuda/shared/row.cuh"

namespace
{

constexpr size_t BESIDE = 2 << 10; /* bytes of a block beside a row, at most */

/* *divisor = the rows that count. One block. */
template <class M>
__global__ void __launch_bounds__(WIDE_THREADS)
    count_rows(const pc__cuda_targets to, long long rows, int classes, M *divisor)
{
    __shared__ double room[WIDE_THREADS / 32];
    double count = 0;
    pc::wait_for_earlier();
    for (long long r = threadIdx.x; r < rows; r += WIDE_THREADS) {
        const int64_t label = to.labels[r];
        count += label != to.ignored && label >= 0 && label < classes;
    }
    count = over_block(count, room);
    if (threadIdx.x == 0)
        *divisor = M(divisor_of(to, count));
}

/* A row of logits comes into shared memory. */
template <class T> __device__ __forceinline__ void take_row(pc::row_pack<T> *row, const T *x, int packs)
{
    const pc::row_pack<T> *from = reinterpret_cast<const pc::row_pack<T> *>(x);
#if TENSOR_UNITS
    for (int i = threadIdx.x; i < packs; i += blockDim.x)
        send_past(row + i, from + i, true);
    sent();
    wait_sent<0>();
#else
    for (int i = threadIdx.x; i < packs; i += blockDim.x)
        row[i] = from[i];
#endif
    __syncthreads();
}

/* What no row or one of its packs alone needs: the label's class, and zeros behind the last one. */
template <class T, class M>
__device__ __noinline__ pc::row_pack<T> edge(pc::row_pack<T> x, int column, int classes, int label, M most, M norm,
                                             M scale)
{
#pragma unroll
    for (int k = 0; k < pc::row_pack<T>::size; k++) {
        const M change = exp_of(M(x.at[k]) - most - norm) * scale - (label == column + k ? scale : M(0));
        x.at[k] = T(column + k < classes ? change : M(0));
    }
    return x;
}

/* dx of a row, up to the last pack, in which zeros follow the last class. */
template <class T, class M>
__device__ __forceinline__ void put_gradient(const pc::row_pack<T> *row, T *dx, int classes, int label, M most, M norm,
                                             M scale)
{
    typedef pc::row_pack<T> pack;
    const int packs = (classes + pack::size - 1) / pack::size, own = label < 0 ? -1 : label / pack::size;
#pragma unroll 2
    for (int i = threadIdx.x; i < packs; i += blockDim.x) {
        pack a = row[i];
        if (i == own || i == classes / pack::size) {
            a = edge<T, M>(a, i * pack::size, classes, label, most, norm, scale);
        } else {
#pragma unroll
            for (int k = 0; k < pack::size; k++)
                a.at[k] = T(exp_of(M(a.at[k]) - most - norm) * scale);
        }
        reinterpret_cast<pack *>(dx)[i] = a;
    }
}

template <class T> __device__ __forceinline__ void put_zeros(T *dx, int packs)
{
    for (int i = threadIdx.x; i < packs; i += blockDim.x)
        reinterpret_cast<uint4 *>(dx)[i] = make_uint4(0, 0, 0, 0);
}

/* dx may be x. */
template <class T, class L>
__global__ void __launch_bounds__(LONG_THREADS, 2)
    both(const T *x, long long x_pitch, const pc__cuda_targets to, const L *g, T *dx, long long dx_pitch,
         const pc::math<L> *divisor, long long rows, int classes, totals *sums, L *loss, pc__cuda_fault *fault)
{
    typedef pc::math<L> M;
    typedef pc::row_pack<T> pack;
    extern __shared__ __align__(16) char shared[];
    pack *row = reinterpret_cast<pack *>(shared);
    const int packs = (classes + pack::size - 1) / pack::size;
    totals all = {};
    pc::wait_for_earlier();
    const M scale = M(*g) / *divisor;
    for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
        const int64_t label = to.labels[r];
        const bool counts = label != to.ignored;
        running<T> a = running<T>::nothing();
        take_row(row, x + r * x_pitch, packs);
        pc::each_in_row<4>(reinterpret_cast<const T *>(row), (unsigned)classes, threadIdx.x, blockDim.x, a);
        join(a, (int)blockDim.x);
        const target<T> wanted = target_of(reinterpret_cast<const T *>(row), label, (unsigned)classes);
        if (threadIdx.x == 0)
            add(all, to, a, wanted, r, classes, static_cast<M *>(nullptr), fault);
        if (counts)
            put_gradient<T, M>(row, dx + r * dx_pitch, classes, wanted.valid ? (int)label : -1, a.most, log_of(a.sum),
                               scale);
        else
            put_zeros(dx + r * dx_pitch, packs);
        __syncthreads(); /* the row is read */
    }
    give(all, to, sums, loss, static_cast<M *>(nullptr));
}

template <class T, class L>
bool both_of(cudaStream_t queue, int early, const pc__view *x, const pc__cuda_targets &to, const void *g, void *loss,
             void *dx, long long dx_pitch, void *scratch, pc__cuda_fault *fault)
{
    const long long rows = x->shape[0], classes = x->shape[1], pitch = x->strides[0];
    const size_t shared = (size_t)(classes + 15) / 16 * 16 * sizeof(T);
    typedef pc::math<L> M;
    M *divisor = (M *)((char *)scratch + PC__LOSS_SCRATCH);
    const unsigned blocks = rows < BLOCKS_MOST ? (unsigned)rows : BLOCKS_MOST;
    if (!has_pitch<T>(x->data, pitch) || !has_pitch<T>(dx, dx_pitch) || rows < FEW_ROWS ||
        shared + BESIDE > (size_t)pc__cuda_block_room())
        return false;
    (void)pc::start(count_rows<M>, 1, WIDE_THREADS, queue, early, to, rows, (int)classes, divisor);
    (void)pc::start_grid(both<T, L>, dim3(blocks), dim3(threads_for(classes)), shared, queue, early, (const T *)x->data,
                         pitch, to, (const L *)g, (T *)dx, dx_pitch, (const M *)divisor, rows, (int)classes,
                         (totals *)scratch, (L *)loss, fault);
    start_loss_of_blocks(queue, early, (const totals *)scratch, blocks, to, (L *)loss, divisor);
    return true;
}

} // namespace

bool pc__cuda_cross_entropy_both(cudaStream_t queue, int early, const pc__view *x, pc__cuda_targets to, const void *g,
                                 void *loss, int dtype, void *dx, int64_t dx_pitch, void *scratch,
                                 pc__cuda_fault *fault)
{
    const bool wide = dtype == PC__CUDA_F32;
    const auto run = x->dtype == PC__CUDA_F16    ? (wide ? both_of<pc::f16, float> : both_of<pc::f16, pc::f16>)
                     : x->dtype == PC__CUDA_BF16 ? (wide ? both_of<pc::bf16, float> : both_of<pc::bf16, pc::bf16>)
                                                 : NULL;
    return run && run(queue, early, x, to, g, loss, dx, dx_pitch, scratch, fault);
}
