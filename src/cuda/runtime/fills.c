/* fills.c: cuBLASLt and cuDNN fill counters and sums with zeros in front of their kernels. In a graph kernels on both sides of
 * a fill lie up to 8 us apart; a kernel in its place takes 1. */
#include "cuda/runtime/fills.h"

#include "base/base.h"

#include <stdint.h>

#if CUDART_VERSION >= 13000

enum { EDGES = 64 };

typedef struct edges {
    cudaGraphNode_t node[EDGES];
    cudaGraphEdgeData data[EDGES];
    size_t count;
} edges;

static bool is_taken(const struct cudaMemsetParams *fill)
{
    const size_t bytes = fill->width * fill->elementSize;
    return fill->height == 1 && bytes > 0 && bytes <= PC__FILL_MOST && bytes % sizeof(uint32_t) == 0 &&
           (uintptr_t)fill->dst % sizeof(uint32_t) == 0;
}

/* False: it stays as it is. */
static bool look(cudaGraphNode_t node, struct cudaMemsetParams *fill, edges *before, edges *behind)
{
    enum cudaGraphNodeType type;
    before->count = behind->count = EDGES;
    return cudaGraphNodeGetType(node, &type) == cudaSuccess && type == cudaGraphNodeTypeMemset &&
           cudaGraphMemsetNodeGetParams(node, fill) == cudaSuccess && is_taken(fill) &&
           cudaGraphNodeGetDependencies(node, before->node, before->data, &before->count) == cudaSuccess &&
           cudaGraphNodeGetDependentNodes(node, behind->node, behind->data, &behind->count) == cudaSuccess &&
           before->count < EDGES && behind->count < EDGES;
}

static cudaError_t replace(cudaGraph_t graph, cudaGraphNode_t node, const struct cudaMemsetParams *fill,
                           const edges *before, const edges *behind)
{
    cudaGraphNode_t made[EDGES];
    cudaError_t status = pc__cuda_fill_node(&made[0], graph, fill);
    for (int i = 1; i < EDGES; i++)
        made[i] = made[0];
    if (status == cudaSuccess && before->count)
        status = cudaGraphAddDependencies(graph, before->node, made, before->data, before->count);
    if (status == cudaSuccess && behind->count)
        status = cudaGraphAddDependencies(graph, made, behind->node, behind->data, behind->count);
    return status == cudaSuccess ? cudaGraphDestroyNode(node) : status;
}

cudaError_t pc__cuda_fills_by_kernels(cudaGraph_t graph)
{
    size_t count = 0;
    cudaError_t status = cudaGraphGetNodes(graph, NULL, &count);
    if (status == cudaSuccess && count == 0) /* a list without room is an error */
        return cudaSuccess;
    cudaGraphNode_t *nodes = status == cudaSuccess ? pc__alloc(count * sizeof *nodes) : NULL;
    if (!nodes)
        return status == cudaSuccess ? cudaErrorMemoryAllocation : status;
    status = cudaGraphGetNodes(graph, nodes, &count);
    for (size_t i = 0; i < count && status == cudaSuccess; i++) {
        struct cudaMemsetParams fill;
        edges before, behind;
        if (look(nodes[i], &fill, &before, &behind))
            status = replace(graph, nodes[i], &fill, &before, &behind);
    }
    pc__free(nodes);
    (void)cudaGetLastError(); /* questions that a node has no answer to */
    return status;
}

#else

cudaError_t pc__cuda_fills_by_kernels(cudaGraph_t graph)
{
    (void)graph;
    return cudaSuccess;
}

#endif
