/* runtime.cpp: the CUDA runtime of a device that does everything when it is told: streams, events, graphs, as
 * far as the plug-in calls them. A stream that is captured keeps its work; a graph is that list. */
#include "device.h"
#include "language.h"

#include <ctime>
#include <vector>

using work = std::function<void()>;

struct CUgraph_st {
    std::vector<work> works;
};
struct CUgraphExec_st {
    std::vector<work> works;
};
struct CUstream_st {
    cudaGraph_t capture = nullptr;
};
struct CUevent_st {
    double at = 0;
};

namespace
{

cudaError_t submit(cudaStream_t queue, work w)
{
    if (queue && queue->capture)
        queue->capture->works.push_back(std::move(w));
    else
        w();
    return cudaSuccess;
}

double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

} // namespace

void emulator::submit_kernel(const shape &how, std::function<void()> body)
{
    const dim3 &g = how.grid, &b = how.block;
    bool empty = !g.x || !g.y || !g.z || !b.x || !b.y || !b.z;
    if (empty || 1ul * b.x * b.y * b.z > MOST_THREADS || g.y > 65535 || g.z > 65535 || how.shared > MOST_SHARED) {
        emulator::told(cudaErrorInvalidConfiguration);
        return;
    }
    submit(how.queue, [how, body] { run_grid(how.grid, how.block, how.shared, body); });
}

extern "C" {

/* Streams. */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *queue, unsigned)
{
    *queue = new CUstream_st;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *queue, unsigned, int)
{
    return cudaStreamCreateWithFlags(queue, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t queue)
{
    delete queue;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind, cudaStream_t queue)
{
    return submit(queue, [=] { memcpy(to, from, n); });
}
cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t n, cudaStream_t queue)
{
    return submit(queue, [=] { memcpy(to, from, n); });
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t queue)
{
    return submit(queue, [=] { memset(to, value, n); });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t queue, cudaHostFn_t function, void *data)
{
    return submit(queue, [=] { function(data); });
}

/* Events. */

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = new CUevent_st;
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    event->at = now();
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t)
{
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    *milliseconds = static_cast<float>(to->at - from->at);
    return cudaSuccess;
}

/* Graphs. */

cudaError_t cudaStreamBeginCapture(cudaStream_t queue, cudaStreamCaptureMode)
{
    queue->capture = new CUgraph_st;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t queue, cudaGraph_t *graph)
{
    *graph = queue->capture;
    queue->capture = nullptr;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long)
{
    *made = new CUgraphExec_st{graph->works};
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t queue)
{
    for (const work &w : graph->works)
        submit(queue, w);
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    delete graph;
    return cudaSuccess;
}
}
