/* library.c: opening NCCL. */
#include "cuda/dist/nccl.h"

#if PC__HAVE_NCCL

#include <dlfcn.h>

#define FILE_NAME "libnccl.so.2"

enum { OLDEST = 21400 }; /* the first with ncclCommInitRankConfig */

pc__nccl_functions pc__nccl;

static char missing[384]; /* empty: it can be used */
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_library(void)
{
    void *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        snprintf(missing, sizeof missing,
                 "NCCL cannot be opened: %.200s; install NCCL 2.14 or newer (libnccl2), or name its folder in "
                 "LD_LIBRARY_PATH; one GPU alone needs none",
                 why ? why : "no reason given");
        return;
    }
#define FIND(name)                                                                                                     \
    *(void **)&pc__nccl.name = dlsym(library, "nccl" #name);                                                           \
    if (!pc__nccl.name && !missing[0])                                                                                 \
        snprintf(missing, sizeof missing, "NCCL (" FILE_NAME ") lacks the function nccl" #name);
    PC__NCCL_EACH(FIND)
#undef FIND
    int version = 0;
    if (!missing[0] && (pc__nccl.GetVersion(&version) != ncclSuccess || version < OLDEST))
        snprintf(missing, sizeof missing, "NCCL is of version %d, and groups need 2.14 or newer; update it (libnccl2)",
                 version);
}

const char *pc__nccl_missing(void)
{
    pthread_once(&opened, open_library);
    return missing[0] ? missing : NULL;
}

pc_status pc__nccl_check(ncclResult_t result, ncclComm_t comm, const char *what)
{
    if (result == ncclSuccess)
        return PC_OK;
    const char *words = pc__nccl.GetLastError(comm);
    return pc__fail_cause(result == ncclInvalidArgument || result == ncclInvalidUsage ? PC_ERR_ARGUMENT
                                                                                      : PC_ERR_BACKEND,
                          words && words[0] ? words : pc__nccl.GetErrorString(result),
                          "%s: NCCL says %s; NCCL_DEBUG=WARN says more", what, pc__nccl.GetErrorString(result));
}

#else

const char *pc__nccl_missing(void)
{
    return "this build has no NCCL: it was made where nccl.h was not";
}

#endif
