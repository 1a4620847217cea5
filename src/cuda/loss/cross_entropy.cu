/* cross_entropy.cu: the loss of labels; its gradient: cross_entropy_backward.cu; both at once: cross_entropy_both.cu. */
#include "cuda/loss/cross_entropy_few.cuh"
#include "cuda/reduce/cut.h"
#include "cuda/shared/row.cuh"

#define MANY_CLASSES 2048 /* for which a block takes a row, */
#define SOME_CLASSES 512  /* or for so many, where a warp for each */
#define SOME_ROWS 1024    /* row would leave a GPU idle */

namespace
{

/* `team` threads for each row, which is read once. */
template <class T, class L>
__global__ void __launch_bounds__(WIDE_THREADS)
    more_classes(const T *__restrict__ x, long long pitch, const pc__cuda_targets to, pc::math<L> *__restrict__ norms,
                 long long rows, unsigned classes, int team, totals *sums, L *mean, pc__cuda_fault *fault)
{
    const int lane = threadIdx.x % team, teams = blockDim.x / team;
    totals all = {};
    pc::wait_for_earlier();
    for (long long r = (long long)blockIdx.x * teams + threadIdx.x / team; r < rows;
         r += (long long)gridDim.x * teams) {
        running<T> a = running<T>::nothing();
        const target<T> wanted = target_of(x + r * pitch, to.labels[r], classes);
        pc::each_in_row<4>(x + r * pitch, classes, lane, team, a);
        join(a, team);
        if (lane == 0)
            add(all, to, a, wanted, r, classes, norms, fault);
    }
    give(all, to, sums, mean, norms + 2 * rows);
}

/* Rows that are few and long: what a block finds in a piece of one. */
template <class T>
__global__ void __launch_bounds__(THREADS) find_pieces(const T *__restrict__ x, long long pitch, running<T> *between,
                                                       long long classes, unsigned parts, long long piece)
{
    const long long row = blockIdx.x / parts, begin = (blockIdx.x - row * parts) * piece, left = classes - begin;
    running<T> a = running<T>::nothing();
    pc::wait_for_earlier();
    pc::each_in_row<4>(x + row * pitch + begin, (unsigned)(left < piece ? left : piece), threadIdx.x, THREADS, a);
    join(a, THREADS);
    if (threadIdx.x == 0)
        between[blockIdx.x] = a;
}

/* One block: a warp joins the pieces of a row. */
template <class T, class L>
__global__ void __launch_bounds__(THREADS)
    join_pieces(const T *__restrict__ x, long long pitch, const pc__cuda_targets to, const running<T> *between,
                pc::math<L> *__restrict__ norms, long long rows, unsigned classes, unsigned parts, L *mean,
                pc__cuda_fault *fault)
{
    const unsigned lane = threadIdx.x % 32;
    totals all = {};
    pc::wait_for_earlier();
    for (long long r = threadIdx.x / 32; r < rows; r += WARPS) {
        const target<T> wanted = target_of(x + r * pitch, to.labels[r], classes);
        running<T> a = running<T>::nothing();
        for (unsigned i = lane; i < parts; i += 32)
            a += between[r * parts + i];
        a.join_warp();
        if (lane == 0)
            add(all, to, a, wanted, r, classes, norms, fault);
    }
    give(all, to, (totals *)NULL, mean, norms + 2 * rows);
}

/* Threads for a row. */
int team_for(long long rows, long long classes)
{
    return classes > MANY_CLASSES || (classes > SOME_CLASSES && rows <= SOME_ROWS) ? threads_for(classes) : 32;
}

struct spread {
    unsigned blocks, threads;
};

/* One block where that has threads for all rows; else BLOCKS_MOST at most. */
spread spread_rows(long long rows, int team)
{
    const unsigned most = rows < 1 ? 1 : rows < BLOCKS_MOST ? (unsigned)rows : BLOCKS_MOST;
    const long long wanted = rows * team, blocks = (wanted + THREADS - 1) / THREADS;
    if (team > 32)
        return {most, (unsigned)team};
    if (wanted > WIDE_THREADS)
        return {blocks > BLOCKS_MOST ? BLOCKS_MOST : (unsigned)blocks, THREADS};
    unsigned threads = THREADS;
    while (threads < WIDE_THREADS && threads < wanted)
        threads *= 2;
    return {1, threads};
}

/* The number of its blocks. */
template <class T, class L>
unsigned start_more_classes(cudaStream_t queue, int early, const pc__view *x, const pc__cuda_targets &to, L *loss,
                            pc::math<L> *norms, totals *sums, pc__cuda_fault *fault)
{
    const long long rows = x->shape[0], classes = x->shape[1], pitch = x->strides[0];
    const int team = team_for(rows, classes);
    const spread s = spread_rows(rows, team);
    (void)pc::start(more_classes<T, L>, s.blocks, s.threads, queue, early, (const T *)x->data, pitch, to, norms, rows,
                    (unsigned)classes, team, sums, loss, fault);
    return s.blocks;
}

template <class T, class L>
void cross_entropy(cudaStream_t queue, int early, const pc__view *x, const pc__cuda_targets &to, L *loss,
                   pc::math<L> *norms, void *scratch, pc__cuda_fault *fault)
{
    const long long rows = x->shape[0], classes = x->shape[1], pitch = x->strides[0];
    const pc__cuda_cut cut = pc__cuda_cut_rows(rows, classes, sizeof(T), FEW_ROWS);
    if (cut.parts > 1) {
        running<T> *between = (running<T> *)scratch;
        const unsigned parts = (unsigned)cut.parts;
        (void)pc::start(find_pieces<T>, (unsigned)rows * parts, THREADS, queue, early, (const T *)x->data, pitch,
                        between, classes, parts, (long long)cut.piece);
        (void)pc::start(join_pieces<T, L>, 1, THREADS, queue, early, (const T *)x->data, pitch, to,
                        (const running<T> *)between, norms, rows, (unsigned)classes, parts, loss, fault);
        return;
    }
    totals *sums = (totals *)scratch;
    const unsigned blocks = classes <= FEW_CLASSES
                                ? start_few_classes<T>(queue, early, x, to, loss, norms, sums, fault)
                                : start_more_classes<T>(queue, early, x, to, loss, norms, sums, fault);
    if (blocks > 1)
        start_loss_of_blocks(queue, early, (const totals *)sums, blocks, to, loss, norms + 2 * rows);
}

/* Of logits in T, computed and given in L: T, or float for 16 bits. */
template <class T, class L> struct losses {
    static void cross(cudaStream_t queue, int early, const pc__view *x, const pc__cuda_targets &to, void *loss,
                      void *norms, void *scratch, pc__cuda_fault *fault)
    {
        cross_entropy<T>(queue, early, x, to, (L *)loss, (pc::math<L> *)norms, scratch, fault);
    }
};

} // namespace

void pc__cuda_cross_entropy(cudaStream_t queue, int early, const pc__view *x, pc__cuda_targets to, void *loss,
                            int dtype, void *norms, void *scratch, pc__cuda_fault *fault)
{
    BY_DTYPES(x->dtype, dtype, cross(queue, early, x, to, loss, norms, scratch, fault))
}
