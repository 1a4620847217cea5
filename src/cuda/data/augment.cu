/* augment.cu: what ops/augment_warp.c and augment_host.c do, without fused multiply-add (the build says so for this
 * file), so that the bits are the CPU's.
 *
 * A block takes a tile of one picture, in rounds of a pixel a thread. The picture's bytes come into shared memory
 * first, 16 at a time, where it has room for them; results leave through shared memory, so that a warp writes whole
 * lines. Pictures with a channel shift, a brightness or a jitter need figures of the whole warped picture: there its
 * first block does all of it, in a few passes that stay in the cache, and the others leave.
 *
 * Of an epoch, a batch is gathered by the order, whose place in it is counted in device memory: one launch of a
 * recording after the other makes one batch after the other. */
#include "cuda/data/augment_second.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/runtime/fault.cuh"

namespace
{

constexpr int BLOCKS_EACH = 2;         /* per multiprocessor */
constexpr int COLUMNS = 17;            /* of the table */
constexpr int ROUNDS_BESIDE = 16;      /* of a block, beside a step */
constexpr int PICTURE_MOST = 36 << 10; /* bytes in shared memory, beside the results */

/* How pictures are cut, in tiles of so many rounds. */
struct cut {
    int tiles, rounds;
    int held; /* bytes of a picture in shared memory; 0: it is read where it is */
};

/* Floats that lie in shared memory to where they belong; `vectors`: 16 bytes at a time. */
__device__ void bring_out(const float *from, float *to, int n, bool vectors)
{
    const int packs = vectors ? n / 4 : 0;
    for (int i = threadIdx.x; i < packs; i += THREADS)
        reinterpret_cast<float4 *>(to)[i] = reinterpret_cast<const float4 *>(from)[i];
    for (int i = packs * 4 + threadIdx.x; i < n; i += THREADS)
        to[i] = from[i];
}

/* Output pixels [first, end). */
template <int CHANNELS>
__device__ __forceinline__ void warp_pixels(const pc__cuda_augment &a, const job &j, const uint8_t *bytes, int first,
                                            int end, float *results)
{
    const int channels = CHANNELS ? CHANNELS : a.channels;
    const bool vectors = reinterpret_cast<uintptr_t>(j.out) % 16 == 0;
    const int rows = THREADS / a.width, columns = THREADS - rows * a.width; /* of a round */
    int row = (first + static_cast<int>(threadIdx.x)) / a.width;
    int column = first + static_cast<int>(threadIdx.x) - row * a.width;
    for (int from = first; from < end; from += THREADS) {
        if (from + static_cast<int>(threadIdx.x) < end) {
            warp_pixel<CHANNELS>(a, j, bytes, row, column, results + threadIdx.x * channels);
            if (j.erases && is_erased(j, row, column))
                for (int c = 0; c < channels; c++)
                    results[threadIdx.x * channels + c] = 0;
        }
        row += rows + (column + columns >= a.width);
        column += columns - (column + columns >= a.width ? a.width : 0);
        __syncthreads();
        bring_out(results, j.out + static_cast<int64_t>(from) * channels, min(THREADS, end - from) * channels, vectors);
        __syncthreads();
    }
}

/* Where the batch begins in the epoch; false: there is none. All threads have the place before the barrier opens, so
 * the first one of the block can count that the block has read it. */
__device__ bool begin(const pc__cuda_augment &a, int64_t &first)
{
    first = a.at;
    if (first < 0)
        first = __ldcg(reinterpret_cast<const long long *>(a.place));
    return !__syncthreads_or(first < 0 || first > a.length - a.n);
}

/* How many blocks have before this one. The count puts itself back to 0. */
__device__ __forceinline__ unsigned count_reader(const pc__cuda_augment &a)
{
    return a.place && threadIdx.x == 0 ? atomicInc(a.counter, gridDim.x - 1) : 0;
}

/* Whoever was the last to read it sets it to what comes behind. */
__device__ void step_on(const pc__cuda_augment &a, int64_t behind, unsigned readers)
{
    if (threadIdx.x == 0 && readers == gridDim.x - 1)
        *a.place = behind;
}

__device__ void copy_label(const pc__cuda_augment &a, int64_t i, int64_t picture)
{
    if (a.label_bytes == 8)
        static_cast<int64_t *>(a.y)[i] = static_cast<const int64_t *>(a.labels)[picture];
    else if (a.label_bytes == 4)
        static_cast<int32_t *>(a.y)[i] = static_cast<const int32_t *>(a.labels)[picture];
    else
        static_cast<uint8_t *>(a.y)[i] = static_cast<const uint8_t *>(a.labels)[picture];
}

/* This block's part of output picture i: entry `entry` of table and index. HELD: by way of shared memory, which the
 * compiler is to know, for addresses half as long. Returns what count_reader says, which is asked behind the loads of
 * table and index: asked before, the compiler put the answer into local memory and so waited for it first. */
template <int CHANNELS, bool HELD>
__device__ unsigned make_tile(const pc__cuda_augment &a, cut c, int64_t i, int64_t entry, int tile)
{
    extern __shared__ uint4 room[]; /* the picture, where it is held, then a round's results */
    const int64_t picture = a.index ? a.index[entry] : entry;
    const double *table = a.table + entry * COLUMNS;
    double t[8]; /* on its way together with the index: the picture must wait for that */
#pragma unroll
    for (int k = 0; k < 8; k++)
        t[k] = table[k];
    const unsigned readers = count_reader(a);
    const bool two_steps = t[6] != 0 || t[7] >= 0 || (a.colours && table[12] >= 0);
    const int pixels = a.height * a.width, whole = c.rounds * THREADS;
    const int64_t size = static_cast<int64_t>(pixels) * a.channels;
    job j = {{t[0], t[1], t[2]},      {t[3], t[4], t[5]},         static_cast<float>(t[6]), static_cast<float>(t[7]),
             two_steps ? 1 : a.scale, a.normalises && !two_steps, a.colours && !two_steps,  {0, 0, 0, 0},

             a.out + i * size};
    for (int k = 0; a.colours && k < 4; k++)
        j.erased[k] = static_cast<int>(table[13 + k]);
    if (picture < 0 || picture >= a.total) {
        if (tile == 0 && threadIdx.x == 0)
            pc::fault(a.fault, PC__FAULT_INDEX, entry, picture, a.total);
        return readers;
    }
    const uint8_t *there = a.pictures + picture * size;
    for (int k = threadIdx.x; HELD && k < c.held / 16; k += THREADS)
        room[k] = reinterpret_cast<const uint4 *>(there)[k];
    if (a.place && tile == 0 && threadIdx.x == 0)
        copy_label(a, i, picture);
    float *results = reinterpret_cast<float *>(room + (HELD ? c.held / 16 : 0));
    const uint8_t *bytes = HELD ? reinterpret_cast<const uint8_t *>(room) : there;
    __syncthreads();
    if (two_steps && tile > 0)
        return readers;
    const int first = tile * whole, end = two_steps ? pixels : min(first + whole, pixels);
    warp_pixels<CHANNELS>(a, j, bytes, first, end, results);
    if (two_steps)
        second_step(a, job(j), table); /* a copy: its address keeps the other one out of registers */
    return readers;
}

/* Blocks of picture i come in a row, one for each tile. */
template <int CHANNELS, bool HELD>
__global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    augment_kernel(const __grid_constant__ pc__cuda_augment a, const __grid_constant__ cut c)
{
    const int64_t i = blockIdx.x / c.tiles;
    pc::wait_for_earlier();
    int64_t first = 0;
    unsigned readers;
    const bool there = !a.place || begin(a, first);
    if (there) {
        readers = make_tile<CHANNELS, HELD>(a, c, i, first + i, static_cast<int>(blockIdx.x - i * c.tiles));
    } else {
        readers = count_reader(a);
        if (blockIdx.x == 0 && threadIdx.x == 0 && (a.at >= 0 || first < 0))
            pc::fault(a.fault, PC__FAULT_INDEX, 0, first, a.length - a.n + 1);
    }
    if (a.place)
        step_on(a, there ? first + a.n : first, readers);
}

/* Small batches are cut until every multiprocessor has its blocks; beyond that a block does as much as it can with the
 * picture that it has brought in. A batch that a recorded step makes for the next one has time: there blocks are few,
 * and leave the chip to the step. */
cut cut_of(const pc__cuda_augment *a)
{
    const int64_t size = static_cast<int64_t>(a->height) * a->width * a->channels;
    const int most = (a->height * a->width + THREADS - 1) / THREADS;
    const bool beside = a->place && a->at < 0;
    const int64_t wanted = beside ? (most + ROUNDS_BESIDE - 1) / ROUNDS_BESIDE
                                  : (static_cast<int64_t>(a->multiprocessors) * BLOCKS_EACH + a->n - 1) / a->n;
    const int tiles = wanted < most ? static_cast<int>(wanted) : most, rounds = (most + tiles - 1) / tiles;
    const bool held = a->channels == 3 && size % 16 == 0 && size <= PICTURE_MOST &&
                      reinterpret_cast<uintptr_t>(a->pictures) % 16 == 0;
    return {(most + rounds - 1) / rounds, rounds, held ? static_cast<int>(size) : 0};
}

} // namespace

void pc__cuda_augment_run(const pc__cuda_augment *a, cudaStream_t queue)
{
    const cut c = cut_of(a);
    const size_t room = static_cast<size_t>(c.held) + sizeof(float) * THREADS * static_cast<size_t>(a->channels);
    const unsigned blocks = static_cast<unsigned>(a->n * c.tiles);
    (void)pc::start_grid(c.held ? augment_kernel<3, true> : augment_kernel<0, false>, dim3(blocks), dim3(THREADS), room,
                         queue, a->early, *a, c);
}
