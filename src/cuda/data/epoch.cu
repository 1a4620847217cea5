/* epoch.cu: the order of an epoch: samples sorted by their keys; and the table of its augmentation. Without fused
 * multiply-add (the build says so for this file), so that the bits are the host's.
 *
 * The sort is bitonic, in the form whose comparisons all put the smaller one first: places from n on hold nothing and
 * count as infinite, so n need not be a power of two. Runs of CHUNK are sorted in shared memory, one block each: up to
 * 2048 pictures take one launch. Beyond that the comparisons further apart than a chunk go through global memory. */
#include "cuda/data/epoch.h"

namespace
{

constexpr int THREADS = 1024, CHUNK = 2 * THREADS;

struct entry {
    uint64_t key;
    int64_t sample;
};

__device__ __forceinline__ bool before(const entry &a, const entry &b)
{
    return a.key < b.key || (a.key == b.key && a.sample < b.sample);
}

/* The two places that comparison i of a step looks at. In runs of 2 * apart, from both ends inwards (`mirrored`: two
 * sorted halves become halves of which each in the first comes before each in the second), or `apart` from each other.
 */
template <class I> struct places {
    I low, high;
};

template <class I> __device__ __forceinline__ places<I> compared(I i, I apart, bool mirrored)
{
    const I within = i & (apart - 1), run = (i - within) * 2;
    return {run + within, mirrored ? run + 2 * apart - 1 - within : run + within + apart};
}

__device__ void step_here(entry *e, int apart, bool mirrored)
{
    const places<int> p = compared(static_cast<int>(threadIdx.x), apart, mirrored);
    const entry a = e[p.low], b = e[p.high];
    if (before(b, a)) {
        e[p.low] = b;
        e[p.high] = a;
    }
    __syncthreads();
}

/* A chunk per block: made and sorted (`whole`), or its steps of a longer merge. */
__global__ void __launch_bounds__(THREADS)
    chunk_kernel(uint64_t seed, uint64_t epoch, int64_t n, int64_t *order, uint64_t *keys, bool whole)
{
    __shared__ entry e[CHUNK];
    const int64_t first = static_cast<int64_t>(blockIdx.x) * CHUNK;
    for (int i = threadIdx.x; i < CHUNK; i += THREADS) {
        const int64_t at = first + i;
        if (at >= n)
            e[i] = {UINT64_MAX, INT64_MAX};
        else if (whole)
            e[i] = {pc__shuffle_key(seed, epoch, at), at};
        else
            e[i] = {keys[at], order[at]};
    }
    __syncthreads();
    for (int apart = 1; whole && apart < CHUNK; apart *= 2) {
        step_here(e, apart, true);
        for (int closer = apart / 2; closer > 0; closer /= 2)
            step_here(e, closer, false);
    }
    for (int apart = THREADS; !whole && apart > 0; apart /= 2)
        step_here(e, apart, false);
    for (int i = threadIdx.x; i < CHUNK && first + i < n; i += THREADS) {
        order[first + i] = e[i].sample;
        keys[first + i] = e[i].key;
    }
}

__global__ void __launch_bounds__(THREADS)
    step_kernel(int64_t n, int64_t *order, uint64_t *keys, int64_t apart, bool mirrored)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    const places<int64_t> p = compared(i, apart, mirrored);
    if (p.high >= n)
        return;
    const entry a = {keys[p.low], order[p.low]}, b = {keys[p.high], order[p.high]};
    if (before(b, a)) {
        keys[p.low] = b.key, order[p.low] = b.sample;
        keys[p.high] = a.key, order[p.high] = a.sample;
    }
}

constexpr int ROWS = 128; /* a thread each: small blocks, so that many multiprocessors work */

__global__ void __launch_bounds__(ROWS) table_kernel(const __grid_constant__ pc__augment_plan plan, bool shuffled,
                                                     int64_t n, int64_t *order, pc__augment_row *table)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * ROWS + threadIdx.x;
    if (i >= n)
        return;
    const int64_t sample = shuffled ? order[i] : i;
    table[i] = pc__augment_row_drawn(&plan, sample);
    if (!shuffled)
        order[i] = i;
}

unsigned blocks_for(int64_t n, int each)
{
    return static_cast<unsigned>((n + each - 1) / each);
}

/* Comparisons of whole runs: where the last one is cut off, some look beyond the end and leave. */
void step(int64_t n, int64_t *order, uint64_t *keys, int64_t apart, bool mirrored, cudaStream_t queue)
{
    const int64_t runs = (n + 2 * apart - 1) / (2 * apart);
    step_kernel<<<blocks_for(runs * apart, THREADS), THREADS, 0, queue>>>(n, order, keys, apart, mirrored);
}

} // namespace

void pc__cuda_shuffle(uint64_t seed, uint64_t epoch, int64_t n, int64_t *order, uint64_t *keys, cudaStream_t queue)
{
    const unsigned chunks = blocks_for(n, CHUNK);
    chunk_kernel<<<chunks, THREADS, 0, queue>>>(seed, epoch, n, order, keys, true);
    for (int64_t sorted = CHUNK; sorted < n; sorted *= 2) {
        step(n, order, keys, sorted, true, queue);
        for (int64_t apart = sorted / 2; apart >= CHUNK; apart /= 2)
            step(n, order, keys, apart, false, queue);
        chunk_kernel<<<chunks, THREADS, 0, queue>>>(seed, epoch, n, order, keys, false);
    }
}

void pc__cuda_epoch_table(const pc__augment_plan *plan, int shuffled, int64_t n, int64_t *order, pc__augment_row *table,
                          cudaStream_t queue)
{
    table_kernel<<<blocks_for(n, ROWS), ROWS, 0, queue>>>(*plan, shuffled != 0, n, order, table);
}
