/* device.cpp: the CUDA runtime's functions about devices, kernels and errors: one GPU of the generation that most of
 * the plug-in's kernels are for. */
#include "device.h"

#include "block.h"

#include <cstdlib>
#include <cstring>

namespace
{

constexpr int MULTIPROCESSORS = 132, VERSION = 13000, MAJOR = 9;
thread_local cudaError_t last;

} // namespace

cudaError_t emulator::told(cudaError_t error)
{
    if (error != cudaSuccess)
        last = error;
    return error;
}

size_t emulator::most_shared()
{
    static const size_t most = [] {
        const char *bytes = getenv("PARACORD_EMULATOR_SHARED");
        const size_t n = bytes ? strtoul(bytes, nullptr, 10) : 0;
        return n > 0 && n < MOST_SHARED ? n : MOST_SHARED;
    }();
    return most;
}

extern "C" {

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last;
    last = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError(void)
{
    return last;
}
const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an error of the emulated device";
}
const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorEmulated";
}

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
    p->totalGlobalMem = emulator::MEMORY;
    p->major = MAJOR;
    p->multiProcessorCount = MULTIPROCESSORS;
    p->warpSize = emulator::LANES;
    p->maxThreadsPerBlock = emulator::MOST_THREADS;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
        *value = MAJOR;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = MULTIPROCESSORS;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = int(emulator::most_shared());
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
    return emulator::told(cudaErrorPeerAccessUnsupported);
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute attribute, int value)
{
    const bool fits = attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value <= int(emulator::most_shared());
    return emulator::told(fits ? cudaSuccess : cudaErrorInvalidValue);
}
/* Never called: `translate` makes launches of its own. */
cudaError_t cudaGetKernel(cudaKernel_t *, const void *)
{
    return emulator::told(cudaErrorNotSupported);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **)
{
    return emulator::told(cudaErrorNotSupported);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *)
{
    return emulator::told(cudaErrorNotSupported);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *)
{
    *attributes = {};
    attributes->binaryVersion = attributes->ptxVersion = 10 * MAJOR;
    attributes->maxThreadsPerBlock = emulator::MOST_THREADS;
    return cudaSuccess;
}

/* The linker puts this before the plug-in's calls of dlopen. NVIDIA's libraries would look for a real GPU, and find one
 * where there is one, which knows nothing of this device's memory. */
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    bool of_nvidia = name && (strstr(name, "cublas") || strstr(name, "cudnn"));
    return __real_dlopen(of_nvidia ? "/not on the emulated device" : name, flags);
}
}
