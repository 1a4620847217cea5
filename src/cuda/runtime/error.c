/* error.c: CUDA's errors as the library's. */
#include "cuda/runtime/state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* After these the device's context answers nothing but the same error. */
bool pc__cuda_is_loss(cudaError_t status)
{
    switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
#if CUDART_VERSION >= 13000
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
#endif
        return true;
    default:
        return false;
    }
}

pc_status pc__cuda_lose(int index, cudaError_t status, const char *where)
{
    pc__cuda_device *device = &pc__cuda_devices[index];
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&device->lost, memory_order_relaxed)) {
        pc_error before = pc__error_take();
        (void)pc__fail_cause(PC_ERR_LOST, cudaGetErrorString(status),
                             "cuda:%d is lost: it stopped %s; what was on it is gone, start the program again%s", index,
                             where, pc__cuda_sync ? "" : " (with PARACORD_CUDA_SYNC=1 to learn which op it was)");
        device->loss = pc__error_take();
        if (before.status != PC_OK)
            (void)pc__error_put(&before);
        atomic_store_explicit(&device->lost, true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return pc__error_put(&device->loss);
}

pc_status pc__cuda_check(cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return PC_OK;
    (void)cudaGetLastError(); /* CUDA says it again otherwise, about something else */
    if (pc__cuda_is_loss(status)) {
        char where[160];
        snprintf(where, sizeof where, "at %.80s or in work queued before it", what);
        return pc__cuda_lose(pc__cuda_here(), status, where);
    }
    const char *words = cudaGetErrorString(status);
    switch (status) {
    case cudaErrorMemoryAllocation:
        return pc__fail_cause(PC_ERR_MEMORY, words, "%s: the GPU has too little memory left", what);
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidKernelImage:
        return pc__fail_cause(PC_ERR_UNSUPPORTED, words,
                              "%s: this build has no machine code for the GPU; build with "
                              "-DCMAKE_CUDA_ARCHITECTURES=native",
                              what);
    default:
        return pc__fail_cause(PC_ERR_BACKEND, words, "%s failed", what);
    }
}

pc_status pc__cuda_launched(const pc_call *call)
{
    cudaError_t status = cudaGetLastError();
    return pc__cuda_check(status, call->op->name);
}
