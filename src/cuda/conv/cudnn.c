/* cudnn.c: opening cuDNN. Its front, libcudnn.so.9, ends the process where a part of it is missing; the part behind it
 * that makes and runs plans says so instead, and is the one that is opened. */
#include "cuda/conv/cudnn.h"

#include "base/base.h"

#if PC__HAVE_CUDNN

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define FILE_NAME "libcudnn_graph.so.9"

pc__cudnn_functions pc__cudnn;

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

#else

const char *pc__cudnn_missing(void)
{
    return "this build has no cuDNN: it was made where the headers of cuDNN 9 were not";
}

#endif
