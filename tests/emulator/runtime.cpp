/* runtime.cpp: the CUDA runtime of a device that does everything when it is told: streams, events, as far as the
 * plug-in calls them. Work of a stream that is captured goes into a graph (graph.h). */
#include <memory> /* in front of language.h, whose words it has for names of its own */

#include "device.h"
#include "graph.h"
#include "language.h"

#include <cstdlib>
#include <ctime>

struct CUevent_st {
    double at = 0;
    emulator::capture capture; /* that it was recorded in, and behind what */
};

namespace
{

cudaError_t submit(cudaStream_t queue, std::function<void()> work, bool early = false)
{
    if (queue && queue->capture.graph)
        emulator::capture_work(queue->capture, std::move(work), early);
    else
        work();
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
    if (empty || getenv("PARACORD_EMULATOR_REFUSES") || 1ul * b.x * b.y * b.z > MOST_THREADS || g.y > 65535 ||
        g.z > 65535 || how.shared > most_shared()) {
        emulator::told(cudaErrorInvalidConfiguration);
        return;
    }
    submit(
        how.queue, [how, body] { run_grid(how.grid, how.block, how.shared, body); }, how.early);
}

cudaError_t emulator::launch_list(const cudaLaunchConfig_t &how, void (*kernel)(),
                                  void (*now)(void (*)(), void *const *), std::initializer_list<size_t> bytes,
                                  void *const *list)
{
    constexpr size_t MOST = 16, ROOM = 4096, APART = 64; /* arguments, what CUDA has for them, and their alignment */
    struct room {
        alignas(APART) char bytes[ROOM];
        void *list[MOST];
    };
    auto copy = std::make_shared<room>();
    size_t count = 0, end = 0;
    for (size_t n : bytes) {
        if (count == MOST || end + n > ROOM)
            fail("%s", "a launch with too many arguments");
        copy->list[count] = memcpy(copy->bytes + end, list[count], n);
        end += (n + APART - 1) / APART * APART;
        count++;
    }
    submit_kernel({how.gridDim, how.blockDim, how.dynamicSmemBytes, how.stream, how.numAttrs > 0},
                  [=] { now(kernel, copy->list); });
    return cudaPeekAtLastError();
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
    emulator::capture_forgets(queue);
    delete queue;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t queue, cudaEvent_t event, unsigned)
{
    return emulator::told(emulator::capture_waits(queue, event->capture));
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
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t queue)
{
    event->at = now();
    event->capture = queue->capture;
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
}
