/* start.c: a kernel is made ready once for each device and launched by the driver's own call, which spares the
 * runtime's search for it.
 *
 * Ready means that it asks for the division of first-level memory and shared memory that all others ask for: a
 * multiprocessor that must divide it anew waits until it is empty (docs/kernels-diary.md). Long launches of some kernels
 * (staged.h) ask for another. And that its blocks may have all the shared memory that there is: the limit is the kernel's, so
 * that launches of other shapes in other threads would undo a lower one. */
#include "cuda/runtime/start.h"

#include "cuda/runtime/staged.h"
#include "cuda/runtime/state.h"

#include <cuda.h>
#include <pthread.h>

/* Of first-level memory as shared memory, in percent: room for four blocks of the linear layers' kernels on compute
 * capability 9.0, where it is 164 KB of 228. A kernel that needs more gets it. */
enum { SHARED = 60, SHARED_THEN = 72 /* percent of the most that this is there; less on other capabilities */ };

enum { PLACES = 4096, TRIES = 16 }; /* of the table, a power of two; kernels that find no place go by the runtime */

typedef struct known {
    _Atomic(const void *) kernel;
    _Atomic(void *) handle;  /* the driver's */
    _Atomic(uint64_t) ready; /* a bit for each device */
    _Atomic(bool) staged;
    _Atomic(int) registers; /* of a thread of a staged one */
} known;

_Static_assert(PC__DEVICES_MAX <= 64, "a bit for each device");

static known table[PLACES];

static known *place_of(const void *kernel)
{
    const uintptr_t at = (uintptr_t)kernel / 16;
    for (uintptr_t i = 0; i < TRIES; i++) {
        known *k = &table[(at + i) % PLACES];
        const void *there = atomic_load_explicit(&k->kernel, memory_order_relaxed);
        if (there == kernel || (!there && atomic_compare_exchange_strong(&k->kernel, &there, kernel)) ||
            there == kernel)
            return k;
    }
    return NULL;
}

void pc__cuda_is_staged(const void *kernel)
{
    known *k = place_of(kernel);
    if (k && !atomic_load_explicit(&k->staged, memory_order_relaxed))
        atomic_store_explicit(&k->staged, true, memory_order_relaxed);
}

static _Thread_local struct {
    cudaStream_t queue;
    int count;
} starts;

void pc__cuda_starts_count(cudaStream_t queue)
{
    starts.queue = queue;
    starts.count = 0;
}

void pc__cuda_started(cudaStream_t queue)
{
    starts.count += queue == starts.queue;
}

int pc__cuda_starts_counted(void)
{
    return starts.count;
}

#if CUDART_VERSION >= 12050

typedef CUresult (*launcher)(const CUlaunchConfig *how, CUfunction kernel, void **list, void **extra);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static launcher driver;

static void find_driver(void)
{
    void *call = NULL;
    enum cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuLaunchKernelEx", &call, 12000, cudaEnableDefault, &found) != cudaSuccess)
        (void)cudaGetLastError();
    else if (found == cudaDriverEntryPointSuccess)
        driver = (launcher)call;
}

static void find_handle(known *k, const void *kernel)
{
    cudaKernel_t handle = NULL;
    pthread_once(&once, find_driver);
    if (!driver)
        return;
    if (cudaGetKernel(&handle, kernel) == cudaSuccess)
        atomic_store_explicit(&k->handle, handle, memory_order_relaxed);
    else
        (void)cudaGetLastError();
}

#if CUDART_VERSION >= 13000
/* How much should be shared memory for this launch, in percent of the most: 0 where the usual share does, since no more blocks
 * would fit, also by their threads and registers, or they are too few turns to pay for another division. */
static unsigned carveout_of(const cudaLaunchConfig_t *how, int registers)
{
    enum { SYSTEM = 1024 /* bytes of each block */, TURNS = 3, GRAIN = 8 /* registers that are given out together */ };
    const pc__cuda_device *device = &pc__cuda_devices[pc__cuda_here()];
    const uint64_t threads = (uint64_t)how->blockDim.x * how->blockDim.y * how->blockDim.z;
    const uint64_t each = threads * (uint64_t)((registers + GRAIN - 1) / GRAIN * GRAIN);
    if (each == 0)
        return 0;
    const uint64_t fit =
        PC__MIN((uint64_t)device->registers / each, (uint64_t)device->threads / threads); /* whatever they share */
    const uint64_t room = (uint64_t)device->shared_room, bytes = how->dynamicSmemBytes + SYSTEM;
    const uint64_t most = PC__MIN(fit, room / bytes), usual = room * SHARED_THEN / 100 / bytes;
    const uint64_t blocks = (uint64_t)how->gridDim.x * how->gridDim.y * how->gridDim.z;
    if (most <= usual || blocks < TURNS * most * (uint64_t)device->multiprocessors)
        return 0;
    return (unsigned)((100 * most * bytes + room - 1) / room);
}
#endif

static bool launched_by_driver(const cudaLaunchConfig_t *how, known *k, void **list)
{
    CUfunction handle = k ? atomic_load_explicit(&k->handle, memory_order_relaxed) : NULL;
    if (!handle)
        return false;
    CUlaunchAttribute wishes[2] = {0};
    unsigned count = how->numAttrs > 0;
    if (count > 0) {
        wishes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        wishes[0].value.programmaticStreamSerializationAllowed = 1;
    }
#if CUDART_VERSION >= 13000
    const int registers = atomic_load_explicit(&k->registers, memory_order_relaxed);
    const unsigned carveout = atomic_load_explicit(&k->staged, memory_order_relaxed) ? carveout_of(how, registers) : 0;
    if (carveout > 0) {
        wishes[count].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        wishes[count++].value.sharedMemCarveout = carveout;
    }
#endif
    const CUlaunchConfig config = {.gridDimX = how->gridDim.x,
                                   .gridDimY = how->gridDim.y,
                                   .gridDimZ = how->gridDim.z,
                                   .blockDimX = how->blockDim.x,
                                   .blockDimY = how->blockDim.y,
                                   .blockDimZ = how->blockDim.z,
                                   .sharedMemBytes = (unsigned)how->dynamicSmemBytes,
                                   .hStream = how->stream,
                                   .attrs = wishes,
                                   .numAttrs = count};
    return driver(&config, handle, list, NULL) == CUDA_SUCCESS;
}

#else

static void find_handle(known *k, const void *kernel)
{
    (void)k, (void)kernel;
}

static bool launched_by_driver(const cudaLaunchConfig_t *how, known *k, void **list)
{
    (void)how, (void)k, (void)list;
    return false;
}

#endif

int pc__cuda_block_room(void)
{
    return pc__cuda_devices[pc__cuda_here()].block_room;
}

/* Where that fails the launch will say why. */
static bool worked(cudaError_t status)
{
    if (status != cudaSuccess)
        (void)cudaGetLastError();
    return status == cudaSuccess;
}

static bool set(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    return worked(cudaFuncSetAttribute(kernel, attribute, value));
}

/* The shared memory that a kernel declares is not there for what its launches ask for. */
static void divide_memory(const void *kernel)
{
    const int room = pc__cuda_block_room();
    struct cudaFuncAttributes own;
    (void)set(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, SHARED);
    if (!set(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, room) && worked(cudaFuncGetAttributes(&own, kernel)))
        (void)set(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, room - (int)own.sharedSizeBytes);
}

/* Another time where CUDA still has an error to tell, of a launch before. */
static void prepare(known *k, const void *kernel, uint64_t device)
{
    if (cudaPeekAtLastError() != cudaSuccess)
        return;
    divide_memory(kernel);
    struct cudaFuncAttributes own;
    if (atomic_load_explicit(&k->staged, memory_order_relaxed) && worked(cudaFuncGetAttributes(&own, kernel)))
        atomic_store_explicit(&k->registers, own.numRegs, memory_order_relaxed);
    find_handle(k, kernel);
    atomic_fetch_or_explicit(&k->ready, device, memory_order_release);
}

cudaError_t pc__cuda_start(const cudaLaunchConfig_t *how, const void *kernel, void **list)
{
    const uint64_t device = (uint64_t)1 << pc__cuda_here();
    known *k = place_of(kernel);
    if (k && !(atomic_load_explicit(&k->ready, memory_order_acquire) & device))
        prepare(k, kernel, device);
    else if (!k && how->dynamicSmemBytes && cudaPeekAtLastError() == cudaSuccess)
        divide_memory(kernel);
    return launched_by_driver(how, k, list) ? cudaSuccess : cudaLaunchKernelExC(how, kernel, list);
}
