/* library.c: opening cuDNN, and running what was planned. Its front, libcudnn.so.9, ends the process where a part of it is missing; the part behind it
 * that makes and runs plans says so instead, and is the one that is opened. */
#include "cuda/cudnn/library.h"

#include "device/backend.h"

#if PC__HAVE_CUDNN

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define FILE_NAME "libcudnn_graph.so.9"

pc__cudnn_functions pc__cudnn;

static cudnnHandle_t handles[PC__DEVICES_MAX];
static pthread_mutex_t using_handles = PTHREAD_MUTEX_INITIALIZER; /* one has one stream at a time */

static char missing[256]; /* why it cannot be used; empty: it can */
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_library(void)
{
    void *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        snprintf(missing, sizeof missing, "cuDNN cannot be opened: %s", why ? why : "no reason given");
        return;
    }
    *(void **)&pc__cudnn.GetVersion = dlsym(library, "cudnnGetVersion");
    const size_t version = pc__cudnn.GetVersion ? pc__cudnn.GetVersion() : 0;
    if (version && version / 10000 != CUDNN_MAJOR) /* 8.9.7 was 8907 */
        snprintf(missing, sizeof missing, "cuDNN is of version %zu, this build needs %d: install cuDNN %d",
                 version < 10000 ? version / 1000 : version / 10000, CUDNN_MAJOR, CUDNN_MAJOR);
#define FIND(name)                                                                                                     \
    *(void **)&pc__cudnn.name = dlsym(library, "cudnn" #name);                                                         \
    if (!pc__cudnn.name && !missing[0])                                                                                \
        snprintf(missing, sizeof missing, "cuDNN (" FILE_NAME ") lacks the function cudnn" #name);
    PC__CUDNN_EACH(FIND)
#undef FIND
}

const char *pc__cudnn_missing(void)
{
    pthread_once(&opened, open_library);
    return missing[0] ? missing : NULL;
}

void pc__cudnn_words(char *words, size_t n)
{
    words[0] = 0;
    pc__cudnn.GetLastErrorString(words, n);
    words[n - 1] = 0;
    words[strcspn(words, "\n")] = 0;
}

cudnnHandle_t pc__cudnn_handle(int device)
{
    pthread_mutex_lock(&using_handles);
    if (!handles[device] && pc__cudnn.Create(&handles[device]) != CUDNN_STATUS_SUCCESS)
        handles[device] = NULL;
    const cudnnHandle_t handle = handles[device];
    pthread_mutex_unlock(&using_handles);
    return handle;
}

static cudnnStatus_t set(cudnnBackendDescriptor_t pack, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    return pc__cudnn.BackendSetAttribute(pack, name, type, count, values);
}

static cudnnStatus_t queue_it(cudnnHandle_t handle, const pc__cudnn_run *run, cudnnBackendDescriptor_t pack)
{
    cudnnStatus_t status = set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, run->count, run->ids);
    if (status == CUDNN_STATUS_SUCCESS)
        status = set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, run->count, run->pointers);
    if (status == CUDNN_STATUS_SUCCESS)
        status = set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &run->workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = pc__cudnn.BackendFinalize(pack);
    return status == CUDNN_STATUS_SUCCESS ? pc__cudnn.BackendExecute(handle, run->plan, pack) : status;
}

cudnnStatus_t pc__cudnn_execute(int device, cudaStream_t queue, const pc__cudnn_run *run, char *words, size_t n)
{
    cudnnBackendDescriptor_t pack = NULL;
    const cudnnHandle_t handle = pc__cudnn_handle(device);
    pthread_mutex_lock(&using_handles);
    cudnnStatus_t status = pc__cudnn.SetStream(handle, queue);
    if (status == CUDNN_STATUS_SUCCESS)
        status = pc__cudnn.BackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = queue_it(handle, run, pack);
    if (status != CUDNN_STATUS_SUCCESS)
        pc__cudnn_words(words, n);
    if (pack)
        (void)pc__cudnn.BackendDestroyDescriptor(pack);
    pthread_mutex_unlock(&using_handles);
    return status;
}

#else

const char *pc__cudnn_missing(void)
{
    return "this build has no cuDNN: it was made where the headers of cuDNN 9 were not";
}

#endif
