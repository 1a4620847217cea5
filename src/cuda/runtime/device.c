/* device.c: which GPUs there are and why none, their memory. Asking how many there are opens none of them: a context
 * takes a while and hundreds of megabytes of the GPU. */
#include "cuda/runtime/state.h"

#include <stdlib.h>

pc__cuda_device pc__cuda_devices[PC__DEVICES_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over opening */
static atomic_int last_open = -1;
static _Thread_local int here = -1; /* the thread's current device */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int devices;
static char why_none[384];

/* "535.104.05" out of the driver's line about itself; "" when it is not loaded. */
static void driver_release(char text[32])
{
    text[0] = 0;
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    char line[256];
    if (file && fgets(line, sizeof line, file))
        for (char *rest = NULL, *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
            if (word[0] >= '1' && word[0] <= '9' && strchr(word, '.')) {
                snprintf(text, 32, "%.31s", word);
                break;
            }
    if (file)
        fclose(file);
}

static void say_driver(int runtime, int driver)
{
    char release[32];
    driver_release(release);
    if (!release[0] && !driver)
        snprintf(why_none, sizeof why_none,
                 "the NVIDIA driver is not loaded; install it, or load it (modprobe nvidia)");
    else if (!driver)
        snprintf(
            why_none, sizeof why_none,
            "driver %s is loaded, but its library libcuda.so.1 is not found; in a container, let it in (for docker: "
            "--gpus all)",
            release);
    else
        snprintf(why_none, sizeof why_none, "driver %s supports CUDA %d.%d, this build needs %d.%d: update the driver",
                 release[0] ? release : "(release unknown)", driver / 1000, driver % 1000 / 10, runtime / 1000,
                 runtime % 1000 / 10);
}

/* What CUDA's word for it does not say: where it comes from, and the way out. */
static const struct {
    cudaError_t status;
    const char *words;
} ways_out[] = {
    {cudaErrorSystemDriverMismatch, "after an upgrade libcuda.so.1 and the kernel module are of different releases: "
                                    "restart the machine"},
    {cudaErrorSystemNotReady, "on machines with NVSwitch the fabric manager must run: systemctl start "
                              "nvidia-fabricmanager"},
    {cudaErrorCompatNotSupportedOnDevice,
     "a cuda-compat libcuda.so.1 is found first, which this GPU cannot use: take it out "
     "of LD_LIBRARY_PATH, update the driver"},
    {cudaErrorStubLibrary, "the libcuda.so.1 that is found first is the toolkit's stub: take its stubs folder out of "
                           "LD_LIBRARY_PATH"},
    {cudaErrorOperatingSystem,
     "the device files /dev/nvidia* cannot be opened: ls -l /dev/nvidia*; in a container, let "
     "them in"},
    {cudaErrorDevicesUnavailable,
     "the GPU is in exclusive or prohibited mode and another process has it: nvidia-smi -q -d "
     "COMPUTE"},
    {cudaErrorUnknown, "often /dev/nvidia-uvm is missing (nvidia-modprobe -u -c=0), or a suspend broke the module "
                       "nvidia_uvm: unload and load it"},
};

static void say_none(cudaError_t status)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *words = NULL;
    for (int i = 0; i < PC__COUNT(ways_out); i++)
        if (ways_out[i].status == status)
            words = ways_out[i].words;
    if (status != cudaSuccess && status != cudaErrorNoDevice)
        snprintf(why_none, sizeof why_none, "CUDA does not start: %s (%s)%s%s", cudaGetErrorString(status),
                 cudaGetErrorName(status), words ? "; " : "", words ? words : "");
    else if (visible)
        snprintf(why_none, sizeof why_none, "no GPU is visible (CUDA_VISIBLE_DEVICES=%.160s)", visible);
    else
        snprintf(why_none, sizeof why_none, "the NVIDIA driver finds no GPU");
}

/* The compute capability, 90 for 9.0; 0: unknown. */
static int capability(int index)
{
    int major = 0, minor = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) != cudaSuccess)
        return 0;
    return major * 10 + minor;
}

static void say_no_code(int index, char *why, size_t n)
{
    int has = capability(index);
    snprintf(why, n,
             "cuda:%d has compute capability %d.%d, and this build has code from %d.%d on; build with "
             "-DCMAKE_CUDA_ARCHITECTURES=%d",
             index, has / 10, has % 10, PC__CUDA_LOWEST / 10, PC__CUDA_LOWEST % 10, has);
}

static void count_once(void)
{
    int driver = 0, runtime = 0, found = 0, usable = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    cudaError_t status = cudaGetDeviceCount(&found);
    if (status != cudaSuccess)
        found = 0;
    (void)cudaGetLastError();
    for (int i = 0; i < found; i++)
        usable += capability(i) >= PC__CUDA_LOWEST;
    if (!driver || status == cudaErrorInsufficientDriver)
        say_driver(runtime, driver);
    else if (!found)
        say_none(status);
    else if (!usable)
        say_no_code(0, why_none, sizeof why_none);
    devices = usable ? PC__MIN(found, PC__DEVICES_MAX) : 0;
}

int pc__cuda_count(char *why, size_t n)
{
    pthread_once(&once, count_once);
    if (!devices)
        snprintf(why, n, "%s", why_none);
    return devices;
}

int pc__cuda_here(void)
{
    return PC__MAX(here, 0);
}

static pc_status lost(int index)
{
    return pc__error_put(&pc__cuda_devices[index].loss);
}

pc_status pc__cuda_enter(int index)
{
    if (atomic_load_explicit(&pc__cuda_devices[index].lost, memory_order_acquire))
        return lost(index);
    if (here == index)
        return PC_OK;
    PC__TRY(pc__cuda_check(cudaSetDevice(index), "using the GPU"));
    here = index;
    return PC_OK;
}

/* Recordings keep the overlap from CUDA 12.3 on. The code must be what was compiled for the device: that for older ones
 * does not wait. */
static bool can_start_early(int index)
{
    int driver = 0;
    return CUDART_VERSION >= 12030 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030 &&
           capability(index) >= 90 && pc__cuda_code_version() >= 90;
}

static pc_status ask_for_room(pc__cuda_device *device, int index)
{
    const struct {
        int *to;
        enum cudaDeviceAttr what;
    } asked[] = {{&device->shared_room, cudaDevAttrMaxSharedMemoryPerMultiprocessor},
                 {&device->registers, cudaDevAttrMaxRegistersPerMultiprocessor},
                 {&device->threads, cudaDevAttrMaxThreadsPerMultiProcessor}};
    for (int i = 0; i < PC__COUNT(asked); i++)
        PC__TRY(pc__cuda_check(cudaDeviceGetAttribute(asked[i].to, asked[i].what, index),
                               "asking the GPU for the room of its multiprocessors"));
    return PC_OK;
}

static pc_status open_now(int index)
{
    pc__cuda_device *device = &pc__cuda_devices[index];
    if (capability(index) < PC__CUDA_LOWEST) {
        char why[256];
        say_no_code(index, why, sizeof why);
        return pc__fail(PC_ERR_UNSUPPORTED, "%s", why);
    }
    PC__TRY(pc__cuda_enter(index));
    PC__TRY(pc__cuda_check(cudaDeviceGetAttribute(&device->multiprocessors, cudaDevAttrMultiProcessorCount, index),
                           "asking the GPU for its size"));
    PC__TRY(pc__cuda_check(cudaDeviceGetAttribute(&device->block_room, cudaDevAttrMaxSharedMemoryPerBlockOptin, index),
                           "asking the GPU for its shared memory"));
    PC__TRY(ask_for_room(device, index));
    PC__TRY(pc__cuda_check(cudaDeviceGetStreamPriorityRange(&device->least, &device->greatest),
                           "asking the GPU for its priorities"));
    device->early = can_start_early(index);
    atomic_store(&last_open, index);
    atomic_store_explicit(&device->open, true, memory_order_release);
    return PC_OK;
}

pc_status pc__cuda_open(int index)
{
    if (atomic_load_explicit(&pc__cuda_devices[index].open, memory_order_acquire))
        return pc__cuda_enter(index);
    pthread_mutex_lock(&lock);
    pc_status status = atomic_load(&pc__cuda_devices[index].open) ? pc__cuda_enter(index) : open_now(index);
    pthread_mutex_unlock(&lock);
    return status;
}

int pc__cuda_multiprocessors(const pc_stream *stream)
{
    return pc__cuda_devices[stream->device.index].multiprocessors;
}

int pc__cuda_block_room_of(const pc_stream *stream)
{
    return pc__cuda_devices[stream->device.index].block_room;
}

bool pc__cuda_early(const pc_stream *stream)
{
    pc__cuda_stream *face = &pc__cuda_state_of(stream)->face;
    face->met_asked = face->met;
    return pc__cuda_devices[stream->device.index].early && !face->met;
}

/* Too little memory is for the caching allocator to report. */
static pc_status given(cudaError_t status, const char *what)
{
    if (status != cudaErrorMemoryAllocation)
        return pc__cuda_check(status, what);
    (void)cudaGetLastError();
    return PC_ERR_MEMORY;
}

pc_status pc__cuda_allocate(int index, size_t bytes, void **block)
{
    *block = NULL;
    PC__TRY(pc__cuda_open(index));
    return given(cudaMalloc(block, bytes ? bytes : 1), "allocating memory of the GPU");
}

/* Nothing uses the block any more. What CUDA says now is about something else, and said again there. */
void pc__cuda_release(int index, void *block, size_t bytes)
{
    (void)bytes;
    pc_error before = pc__error_take();
    if (pc__cuda_enter(index) == PC_OK && cudaFree(block) != cudaSuccess)
        (void)cudaGetLastError();
    (void)pc__error_take();
    (void)pc__error_put(&before);
}

pc_status pc__cuda_memory(int index, pc__memory_info *info)
{
    PC__TRY(pc__cuda_open(index));
    size_t left, total;
    PC__TRY(pc__cuda_check(cudaMemGetInfo(&left, &total), "asking the GPU for its memory"));
    *info = (pc__memory_info){.total = (int64_t)total, .free = (int64_t)left, .largest = (int64_t)left};
    return PC_OK;
}

/* Portable: every GPU copies it directly. Mapped: kernels use it, by the same address. A device that is open anyway does
 * it. */
pc_status pc__cuda_allocate_host(size_t bytes, void **block)
{
    *block = NULL;
    int index = atomic_load(&last_open);
    PC__TRY(pc__cuda_open(here >= 0 ? here : PC__MAX(index, 0)));
    return given(cudaHostAlloc(block, bytes ? bytes : 1, cudaHostAllocPortable | cudaHostAllocMapped),
                 "allocating pinned memory");
}

void pc__cuda_release_host(void *block, size_t bytes)
{
    (void)bytes;
    if (cudaFreeHost(block) != cudaSuccess)
        (void)cudaGetLastError();
}
