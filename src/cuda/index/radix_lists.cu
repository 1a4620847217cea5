/* radix_lists.cu: sorts by digits of lists that fit into a block's memory: all passes in one launch. */
#include "cuda/index/radix_block.cuh"
#include "cuda/index/radix_tensor.cuh"

namespace
{

/* A warp has neighbours, 32 at a time. What fills up the list has the last digits and comes behind all that is there. */
template <int ITEMS, class From, class To>
__global__ void __launch_bounds__(THREADS) sort_lists(unsigned n, unsigned last, From source, To sink)
{
    __shared__ list_room<ITEMS> room;
    const From in = source.of(blockIdx.x);
    const To out = sink.of(blockIdx.x);
    const unsigned first = threadIdx.x / 32 * ITEMS * 32 + threadIdx.x % 32;
    narrow items[ITEMS];
    pc::wait_for_earlier();
    load_items(in, first, 32, n, items);
#pragma unroll 1
    for (unsigned shift = 0;; shift += 8) {
        pass(items, shift, room);
        if (shift == last)
            break;
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            items[k] = room.items[first + k * 32];
    }
#pragma unroll 4
    for (unsigned at = threadIdx.x; at < n; at += THREADS)
        out.put(at, room.items[at]);
}

template <class T> struct ranked {
    static void run(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
    {
        typedef typename word_of<sizeof(T)>::type U;
        if constexpr (sizeof(T) <= 4) {
            constexpr unsigned LAST_SHIFT = 8 * (sizeof(T) - 1);
            constexpr int FEW = PC__CUDA_TILE / THREADS, MANY = PC__CUDA_RADIX_TILE / THREADS;
            const from_tensor<T> tensor = {static_cast<const T *>(from), p->n, p->inner, p->descending != 0};
            const to_tensors<U> results = {
                static_cast<const U *>(from), static_cast<U *>(values), places, p->n, p->inner, p->count};
            pc::start(p->n <= PC__CUDA_TILE ? sort_lists<FEW, from_tensor<T>, to_tensors<U>>
                                            : sort_lists<MANY, from_tensor<T>, to_tensors<U>>,
                      static_cast<unsigned>(p->lists), THREADS, p->queue, p->early, static_cast<unsigned>(p->n),
                      LAST_SHIFT, tensor, results);
        }
    }
};

} // namespace

void pc__cuda_rank_lists(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
{
    by_key<ranked>(p->dtype, p, from, values, places);
}
