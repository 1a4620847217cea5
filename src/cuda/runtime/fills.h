/* fills.h: fills that foreign libraries have put into a graph, as kernels. */
#ifndef PC__CUDA_FILLS_H
#define PC__CUDA_FILLS_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A node that fills as `fill` says, of up to PC__FILL_MOST bytes in one row of whole words; with no edges yet. */
#define PC__FILL_MOST (4 << 20)
cudaError_t pc__cuda_fill_node(cudaGraphNode_t *made, cudaGraph_t graph, const struct cudaMemsetParams *fill);

/* Before the graph is instantiated. */
cudaError_t pc__cuda_fills_by_kernels(cudaGraph_t graph);

#ifdef __cplusplus
}
#endif
#endif
