/* nvtx.c: names for NVIDIA's tools (Nsight Systems, Nsight Compute): each piece of queued work is an NVTX range of the
 * thread that queues it, inside the program's own ranges. NVTX is headers of the CUDA toolkit; a tool that listens is
 * found through NVTX_INJECTION64_PATH, which the tools set, and without one each call returns at once. */
#include "cuda/runtime/state.h"

bool pc__cuda_nvtx;

#if __has_include(<nvtx3/nvToolsExt.h>)

#include <nvtx3/nvToolsExt.h>

static nvtxDomainHandle_t domain;

void pc__cuda_nvtx_push(const char *name)
{
    const nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                              .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                              .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                              .message.ascii = name ? name : ""};
    (void)nvtxDomainRangePushEx(domain, &attributes);
}

void pc__cuda_nvtx_pop(void)
{
    (void)nvtxDomainRangePop(domain);
}

void pc__cuda_nvtx_start(const pc__host_api *host)
{
    static const pc__trace_ranges ranges = {pc__cuda_nvtx_push, pc__cuda_nvtx_pop};
    domain = nvtxDomainCreateA("Paracord");
    pc__cuda_nvtx = true;
    host->trace_ranges_set(&ranges);
}

#else

void pc__cuda_nvtx_push(const char *name)
{
    (void)name;
}

void pc__cuda_nvtx_pop(void)
{
}

void pc__cuda_nvtx_start(const pc__host_api *host)
{
    host->log(PC_LOG_WARNING,
              "PARACORD_NVTX: this build has no NVTX: the CUDA toolkit that it was built with lacks nvtx3");
}

#endif
