/* parallel.c: the process-wide limit on threads of kernels. */
#include "parallel.h"

#include "base/base.h"

#include <stdatomic.h>

/* What one core does in 8 (AVX-512) to 45 (SSE) microseconds, several times what a waiting team needs to start. */
#define WORK_PER_THREAD 2000000

static atomic_int limit;
static atomic_int cores;

void pc_set_threads(int n)
{
    atomic_store(&limit, n > 0 ? n : 0);
}

int pc_get_threads(void)
{
#ifdef _OPENMP
    int n = atomic_load_explicit(&limit, memory_order_relaxed);
    if (n)
        return n;
    n = atomic_load_explicit(&cores, memory_order_relaxed);
    if (!n)
        atomic_store(&cores, n = pc__cpu_count());
    return n;
#else
    return 1;
#endif
}

int pc__threads(int64_t work)
{
    if (work < 2 * WORK_PER_THREAD)
        return 1;
#ifdef _OPENMP
    if (omp_in_parallel())
        return 1;
#endif
    int64_t pieces = work / WORK_PER_THREAD, most = pc_get_threads();
    return (int)PC__MIN(pieces, most);
}
