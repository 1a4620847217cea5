/* runtime.cpp: the CUDA runtime of one device that does everything when it is told: the functions that the plug-in
 * calls. A stream that is captured keeps its work, a graph is that list. What is asked for is granted as a GPU would.
 */
#include "language.h"

#undef cudaFuncGetAttributes
#undef cudaFuncSetAttribute

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

constexpr size_t MEMORY = static_cast<size_t>(8) << 30;
constexpr size_t POISONED = static_cast<size_t>(16) << 20; // of an allocation: NaN, so that nobody counts on zeros
constexpr int MULTIPROCESSORS = 132, VERSION = 13000;

thread_local cudaError_t last_error;

cudaError_t told(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

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
        told(cudaErrorInvalidConfiguration);
        return;
    }
    submit(how.queue, [how, body] { run_grid(how.grid, how.block, how.shared, body); });
}

extern "C" {

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}
const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an error of the emulated device";
}
const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorEmulated";
}

/* The device, of the generation whose kernels are the most. */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version)
{
    *version = VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = {};
    strcpy(p->name, "Emulated");
    p->totalGlobalMem = MEMORY;
    p->major = 9;
    p->multiProcessorCount = MULTIPROCESSORS;
    p->warpSize = emulator::LANES;
    p->maxThreadsPerBlock = emulator::MOST_THREADS;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = MULTIPROCESSORS;
        break;
    default:
        *value = 1; // it can
    }
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int, int)
{
    *can = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned)
{
    return told(cudaErrorPeerAccessUnsupported);
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *)
{
    *attributes = {};
    attributes->binaryVersion = attributes->ptxVersion = 90;
    attributes->maxThreadsPerBlock = emulator::MOST_THREADS;
    return cudaSuccess;
}

/* Memory. */

cudaError_t cudaMalloc(void **p, size_t n)
{
    constexpr size_t ALIGNED = 512;
    *p = n > MEMORY ? nullptr : aligned_alloc(ALIGNED, (n + ALIGNED - 1) / ALIGNED * ALIGNED);
    if (!*p)
        return told(cudaErrorMemoryAllocation);
    memset(*p, 0xff, n < POISONED ? n : POISONED);
    return cudaSuccess;
}
cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned)
{
    return cudaMalloc(p, n);
}
cudaError_t cudaFreeHost(void *p)
{
    return cudaFree(p);
}
cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    *left = *total = MEMORY;
    return cudaSuccess;
}

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
