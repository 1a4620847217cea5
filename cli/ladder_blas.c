/* ladder_blas.c: OpenBLAS by its C interface, which has been the same since it began. */
#include "ladder_blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <paracord/threads.h>

enum { ROW_MAJOR = 101, AS_IT_IS = 111 }; /* as in cblas.h */

bool cli_blas_open(cli_blas *blas)
{
    void (*set_threads)(int);
    const char *(*configuration)(void);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&blas->multiply = dlsym(library, "cblas_sgemm");
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&configuration = dlsym(library, "openblas_get_config");
    if (!blas->multiply || !set_threads || !configuration) { /* a build without them, or another library's name */
        dlclose(library);
        return false;
    }
    set_threads(pc_threads_get());
    const char *words = configuration(); /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." */
    const size_t name = strcspn(words, " ");
    const size_t version = words[name] ? 1 + strcspn(words + name + 1, " ") : 0;
    snprintf(blas->name, sizeof blas->name, "%.*s, cblas_sgemm on %d thread%s", (int)(name + version), words,
             pc_threads_get(), pc_threads_get() == 1 ? "" : "s");
    return true; /* it stays open: its threads live in it */
}

void cli_blas_multiply(const cli_blas *blas, int n, const float *a, const float *b, float *c)
{
    blas->multiply(ROW_MAJOR, AS_IT_IS, AS_IT_IS, n, n, n, 1, a, n, b, n, 0, c, n);
}
