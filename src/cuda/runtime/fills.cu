/* fills.cu: memory filled with a word by a kernel. */
#include "cuda/runtime/fills.h"

#include <stdint.h>

namespace
{

constexpr unsigned THREADS = 256, WORDS = 4; /* of a thread */

__global__ void __launch_bounds__(THREADS) fill_words(uint32_t *to, unsigned count, uint32_t word)
{
    for (unsigned k = 0; k < WORDS; k++) {
        const unsigned i = (blockIdx.x * WORDS + k) * THREADS + threadIdx.x;
        if (i < count)
            to[i] = word;
    }
}

} // namespace

cudaError_t pc__cuda_fill_node(cudaGraphNode_t *made, cudaGraph_t graph, const struct cudaMemsetParams *fill)
{
    uint32_t *to = static_cast<uint32_t *>(fill->dst);
    unsigned count = static_cast<unsigned>(fill->width * fill->elementSize / sizeof(uint32_t));
    uint32_t word = fill->value;
    if (fill->elementSize == 1)
        word = (word & 0xff) * 0x01010101u;
    else if (fill->elementSize == 2)
        word = (word & 0xffff) * 0x00010001u;
    void *list[] = {&to, &count, &word};
    struct cudaKernelNodeParams how = {};
    how.func = reinterpret_cast<void *>(fill_words);
    how.gridDim = dim3((count + THREADS * WORDS - 1) / (THREADS * WORDS));
    how.blockDim = dim3(THREADS);
    how.kernelParams = list;
    return cudaGraphAddKernelNode(made, graph, nullptr, 0, &how);
}
