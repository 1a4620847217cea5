/* graph.h: captured work, and behind what each piece of it comes. */
#ifndef PC_EMULATOR_GRAPH_H
#define PC_EMULATOR_GRAPH_H

#include <cuda_runtime.h>

#include <functional>
#include <set>

namespace emulator
{

/* Where a stream or an event stands in a graph that is captured (NULL: in none): what comes next comes behind these. */
struct capture {
    cudaGraph_t graph = nullptr;
    std::set<size_t> behind;
};

/* early: a kernel that may start before the one in front is done. */
void capture_work(capture &at, std::function<void()> work, bool early);

/* The stream waits for an event, and becomes part of its capture. */
cudaError_t capture_waits(cudaStream_t queue, const capture &event);

/* The stream goes. */
void capture_forgets(cudaStream_t queue);

} // namespace emulator

struct CUstream_st {
    emulator::capture capture;
};

#endif
