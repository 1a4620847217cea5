/* copy.c: copies between GPUs and the host, and between GPUs. */
#include "cuda/runtime/state.h"

/* Two GPUs that can reach each other's memory copy without a detour through the host's. Where that cannot be had, CUDA
 * takes the detour by itself. */
static void let_peer_in(int index, int other)
{
    static atomic_bool done[PC__DEVICES_MAX][PC__DEVICES_MAX];
    int can = 0;
    if (atomic_exchange(&done[index][other], true))
        return;
    if (cudaDeviceCanAccessPeer(&can, index, other) == cudaSuccess && can)
        (void)cudaDeviceEnablePeerAccess(other, 0);
    (void)cudaGetLastError();
}

static enum cudaMemcpyKind kind_of(pc_device to, pc_device from)
{
    if (from.type == PC_CPU)
        return to.type == PC_CPU ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return to.type == PC_CPU ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

pc_status pc__cuda_copy(pc_stream *stream, void *to, pc_device to_device, const void *from, pc_device from_device,
                        size_t bytes, const pc__work *work)
{
    pc__cuda_queuing q = {.stream = stream,
                          .work = work,
                          .engine = from_device.type == PC_CPU ? "copy in" : "copy out",
                          .bytes = (int64_t)bytes};
    PC__TRY(pc__cuda_queue_begin(&q));
    cudaStream_t queue = pc__cuda_queue(stream);
    cudaError_t status;
    if (to_device.type == PC_CUDA && from_device.type == PC_CUDA && to_device.index != from_device.index) {
        int here = stream->device.index, other = to_device.index == here ? from_device.index : to_device.index;
        let_peer_in(here, other);
        status = cudaMemcpyPeerAsync(to, to_device.index, from, from_device.index, bytes, queue);
    } else
        status = cudaMemcpyAsync(to, from, bytes, kind_of(to_device, from_device), queue);
    return pc__cuda_queue_end(&q, pc__cuda_check(status, work->name));
}
